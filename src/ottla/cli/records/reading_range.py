"""Where reading begins and ends. It is worked out before the first record, so that a command knows when it is done."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.text_tables import did_you_mean

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer


class NothingToRead(OttlaError):
    """There is no such topic, or no such partition of it."""


class Start(NamedTuple):
    """The first of these that is given counts; without any, reading begins at the end."""

    at_beginning: bool = False
    since_ms: int | None = None
    last: int | None = None
    """This many records before the end of each partition."""
    offset: int | None = None
    """In each partition that has it; its end that is nearest otherwise."""


def partitions_of(consumer: "Consumer", topics: Iterable[str], wanted: Iterable[int] = ()) -> list[TopicPartition]:
    """All partitions of the topics, or those with these numbers.

    Looked for among all topics: asked for one that is not there, a client waits for it to come.
    """
    numbers = set(wanted)
    existing = consumer.list_topics()
    found: list[TopicPartition] = []
    for topic in topics:
        if topic not in existing:
            raise NothingToRead(no_topic(topic, existing))
        known = {info.partition for info in existing[topic]}
        if missing := numbers - known:
            raise NothingToRead(f"topic {topic} has no partition {min(missing)}; it has {len(known)}")
        found += [TopicPartition(topic, number) for number in sorted(numbers or known)]
    return found


def no_topic(name: str, existing: Iterable[str]) -> str:
    return f"there is no topic {name}{did_you_mean(name, existing)}"


def start_offsets(consumer: "Consumer", partitions: list[TopicPartition], start: Start) -> dict[TopicPartition, int]:
    if start.at_beginning:
        return consumer.beginning_offsets(partitions)
    ends = consumer.end_offsets(partitions)
    if start.since_ms is not None:
        return _at_time(consumer, ends, start.since_ms)
    if start.offset is not None:
        first = consumer.beginning_offsets(partitions)
        return {partition: min(max(first[partition], start.offset), end) for partition, end in ends.items()}
    if start.last:
        first = consumer.beginning_offsets(partitions)
        return {partition: max(first[partition], end - start.last) for partition, end in ends.items()}
    return ends


def end_offsets(
    consumer: "Consumer", partitions: list[TopicPartition], until_ms: int | None = None
) -> dict[TopicPartition, int]:
    """The offsets to stop before: the ends as they are now, or the first records that are later."""
    ends = consumer.end_offsets(partitions)
    return ends if until_ms is None else _at_time(consumer, ends, until_ms)


def records_between(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    """At most so many: some offsets have no record."""
    return sum(max(0, end - starts[partition]) for partition, end in ends.items())


def _at_time(consumer: "Consumer", ends: Mapping[TopicPartition, int], time_ms: int) -> dict[TopicPartition, int]:
    """Where no record is as late as that, the end."""
    found = consumer.offsets_for_times(dict.fromkeys(ends, time_ms))
    return {partition: place.offset if (place := found.get(partition)) else end for partition, end in ends.items()}


class Remaining:
    """The partitions that are not read to their end."""

    def __init__(self, consumer: "Consumer", ends: Mapping[TopicPartition, int]) -> None:
        self._consumer = consumer
        self._ends = dict(ends)

    def is_done(self) -> bool:
        """Asked after every poll. Positions, not records, decide: control records end a partition, too."""
        for partition, end in list(self._ends.items()):
            if self._consumer.position(partition) >= end:
                del self._ends[partition]
                self._consumer.pause(partition)
        return not self._ends

    def includes(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the record is before its partition's end: a fetch brings what comes after, too."""
        end = self._ends.get(TopicPartition(topic, partition))
        return end is not None and offset < end
