"""The log of each partition, put together from all that was acknowledged and all that was read."""

from bisect import bisect_right
from collections.abc import Sequence

from ottla.testing.chaos.operations import Operation, Outcome


class PartitionLog:
    """`values` has all values that were seen at an offset: one, unless the cluster contradicts itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[int, list[int]] = {}
        self.offsets: list[int] = []
        """Of the records that are there, sorted: acknowledged and not aborted, or read."""
        self.highest_read = -1
        self.last_values: set[int] | None = None
        """Of all records that were there when the run was over, if somebody looked."""

    def note(self, offset: int, value: int) -> None:
        found = self.values.get(offset)
        if found is None:
            self.values[offset] = [value]
        elif value not in found:
            found.append(value)

    def first_after(self, offset: int) -> int | None:
        """The offset of the next record that is there."""
        index = bisect_right(self.offsets, offset)
        return self.offsets[index] if index < len(self.offsets) else None


class History:
    """Operations in the order in which they began, and what follows from all of them together."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = sorted(operations, key=lambda operation: operation.began_us)
        self.logs: dict[str, PartitionLog] = {}
        self.writers: dict[int, int] = {}
        """By value: the index of the operation that sent it."""
        self.read_values: set[int] = set()
        for index, operation in enumerate(self.operations):
            self._take(index, operation)
        for log in self.logs.values():
            log.offsets = sorted(log.values)

    def _take(self, index: int, operation: Operation) -> None:
        for sent in operation.sends:
            assert sent.value not in self.writers, f"value {sent.value} was sent by two operations"
            self.writers[sent.value] = index
            log = self.log(sent.partition)
            # A record of a transaction with an open outcome is there only if somebody reads it.
            if sent.offset is not None and operation.outcome is Outcome.OK:
                log.note(sent.offset, sent.value)
        for partition, offset, value in operation.polls:
            log = self.log(partition)
            log.note(offset, value)
            log.highest_read = max(log.highest_read, offset)
            self.read_values.add(value)
        if operation.reads_to_the_end:
            for name in operation.assigned:
                self.log(name).last_values = {one.value for one in operation.polls if one.partition == name}

    def log(self, partition: str) -> PartitionLog:
        found = self.logs.get(partition)
        if found is None:
            found = self.logs[partition] = PartitionLog(partition)
        return found
