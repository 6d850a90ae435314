"""What the driver asks of the cluster: which partitions there are, and where they begin and end."""

import re
from collections.abc import Callable, Collection, Mapping
from time import sleep
from typing import Final, TypeVar

from ottla.base.errors import OttlaError
from ottla.base.ids import ZERO_UUID, TopicPartition
from ottla.client.blocking.range_consumer import RangeConsumer
from ottla.client.errors import Disconnected, KafkaError, RequestTimedOut, UnknownTopicOrPartition
from ottla.spark.options import OptionError
from ottla.spark.sink.names import SinkNames
from ottla.spark.source.offsets_json import EARLIEST, LATEST, Offsets, TopicIds
from ottla.spark.source.source_options import Boundary, SourceOptions

T = TypeVar("T")
_PATIENCE_MS: Final = "40000"
"""A query that cannot reach its brokers says so within a minute."""
_SINKS_OWN: Final = frozenset(SinkNames()[:2])
"""Topics that hold no user's records. They are internal to the sink, and no broker knows it."""


class SourceError(OttlaError, RuntimeError):
    """The cluster does not have what the job was to read, or does not answer. The message names the option."""


class Lookups:
    """One job's. Closed by `close`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self.ids: TopicIds = {}
        """Of the topics that `partitions` has found last, if the checkpoint keeps them."""
        self.consumer = RangeConsumer(
            {
                "default.api.timeout.ms": _PATIENCE_MS,
                **options.client,
                "auto.offset.reset": "none",
                "enable.auto.commit": "false",
            }
        )

    def close(self) -> None:
        self.consumer.close(timeout=5)

    def partitions(self) -> list[TopicPartition]:
        """All that the options name, in order. Raises `SourceError` for what is not there."""
        options = self._options
        topics = list(options.topics or ())
        if options.assigned is not None:
            topics = list(dict.fromkeys(partition.topic for partition in options.assigned))
        if options.pattern is not None:
            matches = re.compile(options.pattern).fullmatch
            skips = options.client.get("exclude.internal.topics", "true").strip().lower() != "false"
            existing = {
                name: found
                for name, found in self._ask(self.consumer.existing_topics).items()
                if matches(name) and not (skips and (found.is_internal or name in _SINKS_OWN))
            }
        else:
            existing = self._ask(lambda: self.consumer.existing_topics(topics))
        if options.keeps_topic_ids:
            self.ids = {
                name: bytes(found.topic_id).hex() for name, found in existing.items() if found.topic_id != ZERO_UUID
            }
        found = sorted(
            TopicPartition(name, one.partition) for name, topic in existing.items() for one in topic.partitions
        )
        if options.assigned is None:
            return found
        return sorted(set(found) & set(options.assigned))

    def missing(self, found: Collection[TopicPartition]) -> list[str]:
        """What the options name and the cluster does not have."""
        if self._options.assigned is not None:
            return [str(one) for one in self._options.assigned if one not in found]
        topics = {partition.topic for partition in found}
        return [topic for topic in self._options.topics or () if topic not in topics]

    def required_partitions(self) -> list[TopicPartition]:
        found = self.partitions()
        if missing := self.missing(found):
            option = "assign" if self._options.assigned is not None else "subscribe"
            servers = self._options.client["bootstrap.servers"]
            raise SourceError(f"option {option} names what the brokers at {servers} do not have: {', '.join(missing)}")
        return found

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._ask(lambda: self.consumer.beginning_offsets(partitions)) if partitions else {}

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The ends; with read committed, those of what is stable."""
        return self._ask(lambda: self.consumer.end_offsets(partitions)) if partitions else {}

    def at_time(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """None where no record is as young."""
        found = self._ask(lambda: self.consumer.offsets_for_times(times_ms)) if times_ms else {}
        return {partition: None if one is None else one.offset for partition, one in found.items()}

    def at(self, boundary: Boundary, partitions: Collection[TopicPartition], *, none_is_latest: bool) -> Offsets:
        """The boundary as an offset in each partition. Raises `OptionError` where it names other partitions."""
        if boundary.everywhere is not None:
            return self.earliest(partitions) if boundary.everywhere == EARLIEST else self.latest(partitions)
        if boundary.offsets is not None:
            _check_same(boundary.option, boundary.offsets, partitions, " (-2 stands for earliest, -1 for latest)")
            begins = self.earliest([one for one, offset in boundary.offsets.items() if offset == EARLIEST])
            ends = self.latest([one for one, offset in boundary.offsets.items() if offset == LATEST])
            return {**boundary.offsets, **begins, **ends}
        if boundary.timestamps_ms is not None:
            _check_same(boundary.option, boundary.timestamps_ms, partitions, "")
            times_ms = boundary.timestamps_ms
        else:
            times_ms = dict.fromkeys(partitions, boundary.timestamp_ms or 0)
        found = self.at_time(times_ms)
        too_old = [partition for partition, offset in found.items() if offset is None]
        if too_old and not none_is_latest:
            raise SourceError(
                f"no record of {', '.join(map(str, too_old))} is as young as option {boundary.option} asks for; "
                "with startingOffsetsByTimestampStrategy=latest such partitions are read from their end"
            )
        ends = self.latest(too_old)
        return {partition: ends[partition] if offset is None else offset for partition, offset in found.items()}

    def _ask(self, question: Callable[[], T]) -> T:
        """Asks again after what may pass; what has waited for its whole time out already is not asked again."""
        for left in range(self._options.lookup_retries, -1, -1):
            try:
                return question()
            except (RequestTimedOut, Disconnected) as problem:
                servers = self._options.client["bootstrap.servers"]
                raise SourceError(
                    f"the brokers of option kafka.bootstrap.servers ({servers}) did not answer: {problem}"
                ) from problem
            except UnknownTopicOrPartition:
                raise
            except KafkaError as problem:
                if not problem.retriable or not left:
                    raise SourceError(f"the cluster could not say what is to be read: {problem}") from problem
                sleep(self._options.lookup_pause_ms / 1000)
        raise AssertionError("the last attempt returns or raises")


def _check_same(option: str, given: Collection[TopicPartition], there: Collection[TopicPartition], hint: str) -> None:
    if missing := sorted(set(there) - set(given)):
        raise OptionError(f"option {option} says nothing of {', '.join(map(str, missing))}: name every partition{hint}")
    if unknown := sorted(set(given) - set(there)):
        raise OptionError(f"option {option} names {', '.join(map(str, unknown))}, which the job does not read")
