"""All of a transaction is seen, or nothing; nothing of one that was aborted; and none hangs."""

from ottla.base.ids import TopicPartition
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead


class TransactionsAreAtomic(Invariant):
    name = "transactions are atomic"

    def on_read(self, group: str, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        record = self.history.sent.get(value)
        if record is not None and record.must_be_hidden:
            assert record.transaction is not None
            what = record.transaction
            self.violated(f"{reader} read {value!r} at {offset} of {partition}: {what.name} is {what.ending.value}")

    def at_end(self, found: FinalRead) -> None:
        visible = {value for records in found.committed.values() for _, value in records}
        for transaction in self.history.transactions:
            seen = [record for record in transaction.records if record.value in visible]
            if seen and len(seen) < len(transaction.records):
                missing = next(record for record in transaction.records if record.value not in visible)
                self.violated(f"of {transaction.name} one sees {seen[0]} and not {missing}")
            if seen and seen[0].must_be_hidden:
                self.violated(f"{transaction.name} is {transaction.ending.value}, and {seen[0]} is seen")
