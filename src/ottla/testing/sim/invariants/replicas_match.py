"""What is below the high watermark is the same on every replica, for ever; and a leader's watermark never goes back.

That of the metadata log, too: what one voter knows to be committed is what every other has there.
"""

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.partitions.partition import Partition
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.compared_logs import ComparedLogs
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History

_METADATA = "the metadata"


class ReplicasMatch(PeriodicInvariant):
    name = "replicas match below the high watermark"
    every_us = 500_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._logs = ComparedLogs()
        self._watermarks: dict[tuple[int, Uuid, TopicPartition], tuple[object, int, int]] = {}
        """Of leaders: the life and the leader epoch in which it was so high."""

    def at_end(self, found: FinalRead) -> None:
        self.look()

    def look(self) -> None:
        for machine in self.cluster.machines.values():
            if machine.life is None or machine.life.is_stopping or machine.may_fail:
                continue
            self._compare_metadata(machine)  # A controller leads before its node serves.
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            for partition in broker.partitions.values() if broker is not None else ():
                is_readable = partition.directory not in machine.failed_directories
                if is_readable and not partition.log.config.is_compacted and not partition.is_removing:
                    self._compare(machine, partition)

    def _compare_metadata(self, machine: Machine) -> None:
        metadata = machine.metadata
        if metadata is None:
            return
        different = self._logs.difference(machine, _METADATA, metadata._store.log, metadata.committed_offset)
        if different is not None:
            self.violated(f"{different} of the metadata, below {metadata.committed_offset}")

    def _compare(self, machine: Machine, partition: Partition) -> None:
        watermark = partition.log.high_watermark
        if partition.is_leader:
            self._check_watermark(machine, partition, watermark)
        name = partition.topic_id, partition.name
        different = self._logs.difference(machine, name, partition.log, watermark)
        if different is not None:
            self.violated(f"{different} of {partition.name}, below the high watermark {watermark}")

    def _check_watermark(self, machine: Machine, partition: Partition, watermark: int) -> None:
        key = machine.node_id, partition.topic_id, partition.name
        life, epoch, before = self._watermarks.get(key, (None, -1, 0))
        if life is machine.life and epoch == partition.leader_epoch and watermark < before:
            self.violated(f"the high watermark of {partition.name} at its leader goes back to {watermark}")
        self._watermarks[key] = machine.life, partition.leader_epoch, watermark
