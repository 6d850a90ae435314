"""Every batch in a log matches its checksum, and every record in it is one that some client has sent to that partition.

On leaders and followers, as soon as it is written, whoever reads it: what was stored as other bytes is found here.
"""

from typing import Any

from ottla.base.ids import TopicPartition
from ottla.records.batch import checksum_matches
from ottla.records.header import CorruptBatch
from ottla.records.reader import read_records
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.invariants.replicas import FoundBatch, LogFollower, Replica, replicas_of
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.topics import ALL_TOPICS


class BatchesAreSound(PeriodicInvariant):
    name = "batches are sound, and of records that were sent"
    every_us = 200_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._logs: dict[tuple[int, TopicPartition], LogFollower] = {}
        self._known: set[Any] = set()
        """Batches whose records were looked at, on some replica."""

    def at_end(self, found: FinalRead) -> None:
        self.look()

    def look(self) -> None:
        for replica in replicas_of(self.cluster):
            key = replica.machine.node_id, replica.partition.name
            follower = self._logs.setdefault(key, LogFollower())
            last = -1
            try:
                for batch in follower.new_batches(replica.machine, replica.partition.log):
                    last = batch.header.base_offset
                    self._check(replica, batch)
            except CorruptBatch as problem:
                self.violated(f"{_where(replica)} after {last}: {problem}")

    def _check(self, replica: Replica, batch: FoundBatch) -> None:
        header = batch.header
        if not checksum_matches(batch.data, 0, header):
            self.violated(f"{_where(replica)} at {header.base_offset}: the batch does not match its checksum")
            return
        name = replica.partition.name
        key = name, header.base_offset, header.crc
        if header.is_control or name.topic not in ALL_TOPICS or key in self._known:
            return
        self._known.add(key)
        for record in read_records(batch.data, 0, header):
            sent = self.history.sent.get(bytes(record.value or b""))
            if sent is None or sent.partition != name:
                what = bytes(record.value or b"")[:40]
                self.violated(f"{_where(replica)} at {record.offset}: nobody has sent {what!r} there")


def _where(replica: Replica) -> str:
    return f"{replica.partition.name} of node {replica.machine.node_id}"
