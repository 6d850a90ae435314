"""Records that were taken for a loop over the consumer, and that the loop has not come to yet.

Theory of operation. `for record in consumer` takes records by the hundred, and hands them out one by one. A loop may
end at any of them, or commit, seek, pause or poll within its turn. So the records behind the one of this turn do not
count as consumed. Handing one out costs nothing extra: the iterator of a list knows how many are left, and a list that
is cut short behind that place ends the loop over it.
"""

from collections.abc import Iterator
from operator import length_hint

from ottla.base.ids import TopicPartition
from ottla.records.kernel import ConsumerRecord


class UnreadRecords:
    """One consumer's."""

    def __init__(self) -> None:
        self._records: list[ConsumerRecord] = []
        self._left: Iterator[ConsumerRecord] = iter(self._records)

    def hand_out(self, records: list[ConsumerRecord]) -> Iterator[ConsumerRecord]:
        """One by one. Those before must have been handed out or taken back."""
        self._records = records
        self._left = iter(records)
        return self._left

    def offsets(self) -> dict[TopicPartition, int]:
        """The lowest of each partition: an interceptor may have put them in another order."""
        first: dict[TopicPartition, int] = {}
        if left := length_hint(self._left):
            for record in self._records[-left:]:
                partition = TopicPartition(record.topic, record.partition)
                first[partition] = min(first.get(partition, record.offset), record.offset)
        return first

    def take_back(self) -> dict[TopicPartition, int]:
        """As `offsets`; none of them is handed out any more."""
        first = self.offsets()
        if first:
            del self._records[-length_hint(self._left) :]
        return first
