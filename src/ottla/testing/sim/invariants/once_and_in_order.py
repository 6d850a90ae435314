"""Records of an idempotent producer are in the log once and in order; of one that never sends again, once."""

from collections import Counter

from ottla.base.ids import TopicPartition
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead


class OnceAndInOrder(Invariant):
    name = "idempotent records are there once and in order"

    def at_end(self, found: FinalRead) -> None:
        for partition, records in found.everything.items():
            self._check(partition, [value for _, value in records])

    def _check(self, partition: TopicPartition, values: list[bytes]) -> None:
        for value, times in Counter(values).items():
            if times > 1 and self._is_once(value):
                self.violated(f"{value[:60]!r} is in {partition} {times} times")
        last: dict[str, int] = {}
        for value in values:
            record = self.history.sent.get(value)
            if record is None or not record.care.is_in_order:
                continue
            if record.number < last.get(record.writer, -1):
                self.violated(f"{record} comes after number {last[record.writer]} of its writer")
            last[record.writer] = record.number

    def _is_once(self, value: bytes) -> bool:
        record = self.history.sent.get(value)
        return record is None or record.care.is_once
