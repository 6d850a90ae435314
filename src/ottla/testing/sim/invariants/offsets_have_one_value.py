"""Whoever sees an offset of a partition, now or later, sees the same record there."""

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History, SentRecord


class OffsetsHaveOneValue(Invariant):
    name = "an offset has one value"

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._seen: dict[tuple[TopicPartition, int], tuple[bytes, str]] = {}

    def on_acknowledged(self, record: SentRecord) -> None:
        self._see(record.partition, record.offset, record.value, f"acknowledged to {record.writer}")

    def on_read(self, group: str, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        self._see(partition, offset, value, f"read by {reader}")

    def at_end(self, found: FinalRead) -> None:
        for partition, records in found.everything.items():
            for offset, value in records:
                self._see(partition, offset, value, "read at the end")

    def _see(self, partition: TopicPartition, offset: int, value: bytes, by: str) -> None:
        before, by_before = self._seen.setdefault((partition, offset), (value, by))
        if before != value:
            self.violated(f"{partition} at {offset}: {before!r} was {by_before}, {value!r} was {by}")
