"""`ottla copy --keep-offsets`: every record of the copy has the offset that it has in the source.

A broker gives offsets one after the other, so that works where the source has no gaps, and where nobody else writes to
the destination. Then the end of the destination is the place to continue from: nothing else has to be kept, and nothing
is copied twice. Where it does not work the copy is refused, with the partition and the offset; what was copied before
is in its place.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.producer.append import Delivery
    from ottla.records.kernel import ConsumerRecord

_PATIENCE_S = 30.0


class CannotKeepOffsets(OttlaError):
    """Source and destination do not have the same offsets, and cannot get them."""


class KeptOffsets:
    """A `CopyProgress`. `source` and `copy` read the two topics."""

    def __init__(self, source: "Consumer", copy: "Consumer", destination: str) -> None:
        self._source = source
        self._copy = copy
        self._destination = destination
        self._next: dict[TopicPartition, int] = {}

    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        copies = {partition: TopicPartition(self._destination, partition.partition) for partition in partitions}
        there = {info.partition for info in self._copy.list_topics()[self._destination]}
        ends = self._copy.end_offsets([of_copy for of_copy in copies.values() if of_copy.partition in there])
        first, last = self._source.beginning_offsets(partitions), self._source.end_offsets(partitions)
        for partition, of_copy in copies.items():
            end = self._next[partition] = ends.get(of_copy, 0)
            if end < first[partition]:
                raise CannotKeepOffsets(
                    f"{partition} begins at offset {first[partition]}, and {of_copy} continues at {end}"
                )
            if end > last[partition]:
                raise CannotKeepOffsets(f"{of_copy} has {end} offsets already, and {partition} only {last[partition]}")
            if end > first[partition] and self._last(self._source, partition, end) != self._last(
                self._copy, of_copy, end
            ):
                raise CannotKeepOffsets(f"{of_copy} is not a copy of {partition}: their records at {end - 1} differ")
        return {partition: self._next[partition] for partition in partitions}

    def _last(self, consumer: "Consumer", partition: TopicPartition, end: int) -> tuple[object, ...]:
        """What the record before that offset is, but for where it is; nothing if there is none."""
        consumer.assign([partition])
        consumer.seek(partition, end - 1)
        for record in consumer.poll(_PATIENCE_S, 1):
            if record.offset == end - 1:
                return record.timestamp, record.key, record.value, record.headers
        return ()

    def save(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The destination has them."""

    def check(self, record: "ConsumerRecord") -> None:
        """Before the record is sent."""
        partition = TopicPartition(record.topic, record.partition)
        expected = self._next[partition]
        if record.offset != expected:
            raise CannotKeepOffsets(
                f"{partition} has no record at offset {expected}, the next is at {record.offset}: offsets of a topic "
                "that is compacted, or has transactions, cannot be kept"
            )
        self._next[partition] = expected + 1

    def check_delivery(self, record: "ConsumerRecord", delivery: "Delivery") -> Exception | None:
        """What is wrong with where the record was written."""
        problem = delivery.exception()
        if problem is not None:
            return problem
        written = delivery.result().offset
        if written == record.offset:
            return None
        return CannotKeepOffsets(
            f"record {record.offset} of {record.topic}-{record.partition} was given offset {written}: "
            f"somebody else writes to {self._destination}"
        )
