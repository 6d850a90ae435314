"""No acknowledged record is lost, at the offset that was told; and no record is there that nobody sent."""

from ottla.base.ids import TopicPartition
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import Fate


class AcknowledgedIsThere(Invariant):
    name = "no acknowledged record is lost"

    def on_read(self, group: str, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        record = self.history.sent.get(value)
        if record is None or record.partition != partition:
            self.violated(f"{reader} read {value!r} at {offset} of {partition}, which nobody sent there")

    def at_end(self, found: FinalRead) -> None:
        places = {
            (partition, offset): value for partition, records in found.everything.items() for offset, value in records
        }
        for value in places.values():
            if value not in self.history.sent:
                self.violated(f"{value!r} was never sent")
        for record in self.history.sent.values():
            if record.fate is Fate.ACKNOWLEDGED and (record.partition, record.offset) not in places:
                self.violated(f"{record} was acknowledged at {record.offset} and is not there")
        self._check_committed(found)

    def _check_committed(self, found: FinalRead) -> None:
        committed = {value for records in found.committed.values() for _, value in records}
        for record in self.history.sent.values():
            if record.must_be_there and record.value not in committed:
                self.violated(f"a consumer of committed records does not see {record}")
