"""No acknowledged record is lost, at the offset that was reported; and no record is there that nobody sent.

In topics that forget, records are gone only where that was asked for: see `Gone`.
"""

from ottla.base.ids import TopicPartition
from ottla.testing.sim.invariants.gone import Gone
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import Fate


class AcknowledgedIsThere(Invariant):
    name = "no acknowledged record is lost"

    def on_read(self, group: str, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        record = self.history.sent.get(value)
        if record is None or record.partition != partition:
            self.violated(f"{reader} read {value[:60]!r} at {offset} of {partition}, which nobody sent there")

    def at_end(self, found: FinalRead) -> None:
        gone = Gone(self.cluster, self.history, found)
        for problem in gone.problems():
            self.violated(problem)
        places = {
            (partition, offset): value for partition, records in found.everything.items() for offset, value in records
        }
        for (partition, offset), value in places.items():
            sent = self.history.sent.get(value)
            if sent is None or sent.partition != partition:
                self.violated(f"{value[:60]!r} at {offset} of {partition} was never sent there")
        for record in self.history.sent.values():
            is_acknowledged = record.fate is Fate.ACKNOWLEDGED and record.offset >= 0
            if is_acknowledged and (record.partition, record.offset) not in places and not gone.may_lack(record):
                self.violated(f"{record} was acknowledged at {record.offset} and is not there")
        self._check_committed(found, gone)

    def _check_committed(self, found: FinalRead, gone: Gone) -> None:
        committed = {value for records in found.committed.values() for _, value in records}
        for record in self.history.sent.values():
            if record.must_be_there and record.value not in committed and not gone.may_lack(record):
                self.violated(f"a consumer of committed records does not see {record}")
