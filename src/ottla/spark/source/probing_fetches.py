"""What a driver looks at with small fetches: whether new records have come, and how large records are.

An idle query asks for the latest offsets a hundred times a second, each time anew. A fetch that waits at the ends of
all partitions costs next to nothing instead, and is answered when a record comes. (With read committed: when it
becomes stable.)
"""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.blocking.range_consumer import RangeConsumer
from ottla.client.errors import KafkaError, OffsetOutOfRange
from ottla.spark.source.ranges import OffsetRange

_SAMPLE_BYTES: Final = 1 << 16
_SAMPLE_PATIENCE_S: Final = 10.0
_WEIGHED_FOR_S: Final = 60.0
_WEIGHING_PATIENCE_S: Final = 2.0
"""Tasks can do without the answer."""


class Prober:
    """One query's, made when it is first needed."""

    def __init__(self, client_settings: Mapping[str, str]) -> None:
        self._settings = {
            **client_settings,
            "max.partition.fetch.bytes": str(_SAMPLE_BYTES),
            "auto.offset.reset": "none",
            "enable.auto.commit": "false",
        }
        self._consumer: RangeConsumer | None = None
        self._weights: dict[str, float] = {}
        self._weighed_s: dict[str, float] = {}

    def wait_for_records(self, ends: Mapping[TopicPartition, int], timeout_s: float) -> None:
        """Returns when there is a record at one of these offsets or behind it, or when the time is over.

        What is wrong with the partitions is for those who look the offsets up to find.
        """
        deadline_s = monotonic() + timeout_s
        try:
            self._made().wait_at(ends, timeout_s)
        except OffsetOutOfRange:
            return
        except KafkaError:
            # The brokers may be away for a while: asking them at once, again and again, would not help.
            from time import sleep

            sleep(max(min(deadline_s - monotonic(), 1.0), 0.0))

    def bytes_per_offset(
        self, begins: Mapping[TopicPartition, int], patience_s: float = _SAMPLE_PATIENCE_S
    ) -> dict[TopicPartition, float]:
        """How large the records are that begin at these offsets, as the log has them; only where some are."""
        found: dict[TopicPartition, float] = {}
        for partition, begin in begins.items():
            try:
                found[partition] = self._made().bytes_per_offset(partition, begin, patience_s)
            except KafkaError:
                continue  # what was lost is reported by those who read it
        return found

    def bytes_by_topic(self, ranges: Sequence[OffsetRange]) -> Mapping[str, float]:
        """How many bytes an offset has in each topic, going by the largest range of it; asked once in a while."""
        largest = {one.partition.topic: one for one in sorted(ranges, key=lambda one: one.size)}
        for topic, one in largest.items():
            known_s = self._weighed_s.get(topic)
            if known_s is None or monotonic() - known_s > _WEIGHED_FOR_S:
                self._weighed_s[topic] = monotonic()
                found = self.bytes_per_offset({one.partition: one.begin}, _WEIGHING_PATIENCE_S)
                self._weights[topic] = found.get(one.partition, self._weights.get(topic, 0.0))
        return self._weights

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close(timeout=1)
            self._consumer = None

    def _made(self) -> RangeConsumer:
        if self._consumer is None:
            self._consumer = RangeConsumer(self._settings)
        return self._consumer
