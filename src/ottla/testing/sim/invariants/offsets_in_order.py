"""A log's offsets are in their order, and what was committed once every later leader has.

    log start offset <= last stable offset <= high watermark <= log end offset
    recovery point, as memory and as the checkpoint have it <= log end offset

The high watermark of a partition, over all lives of all nodes: a leader of the same or a later epoch has everything
before it in its log, and in the end it is as high again. The metadata's, too.
"""

from typing import Any, Final

from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.invariants.replicas import Replica, replicas_of
from ottla.testing.sim.workloads.history import History

_METADATA: Final = "the metadata"


class OffsetsInOrder(PeriodicInvariant):
    name = "the offsets of a log are in their order"
    every_us = 50_000

    def look(self) -> None:
        for replica in replicas_of(self.cluster):
            self._look_at(replica)

    def _look_at(self, replica: Replica) -> None:
        machine, partition = replica
        log = partition.log
        offsets = start, stable, watermark, end = (
            log.log_start_offset,
            log.last_stable_offset,
            log.high_watermark,
            log.log_end_offset,
        )
        if not start <= stable <= watermark <= end:
            self.violated(f"start, stable, high watermark and end of {partition.name} on {_who(machine)} are {offsets}")
        if log.recovery_point > log.log_end_offset:
            self.violated(f"{partition.name} on {_who(machine)} ends at {log.log_end_offset}, before what is flushed")
        broker = machine.node.broker if machine.node is not None else None
        directory = broker.partitions.logs.online.get(partition.directory) if broker is not None else None
        saved = 0 if directory is None else directory.saved_recovery_point(partition.name)
        if saved > log.log_end_offset:
            self.violated(
                f"the checkpoint of {_who(machine)} says that {partition.name} is sound up to {saved}, "
                f"and it ends at {log.log_end_offset}"
            )


class CommittedStays(PeriodicInvariant):
    name = "what was below the high watermark stays there"
    every_us = 50_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._highest: dict[Any, tuple[int, int]] = {}
        """Of each partition: the highest watermark, and the leader's epoch when it was seen."""

    def look(self) -> None:
        for replica in replicas_of(self.cluster):
            partition = replica.partition
            if partition.is_leader:
                key = partition.topic_id, partition.name.partition
                log = partition.log
                what = f"{partition.name} on {_who(replica.machine)}"
                self._see(key, partition.leader_epoch, log.high_watermark, log.log_end_offset, what)
        for machine in self.cluster.machines.values():
            metadata = machine.metadata
            if metadata is not None and metadata.raft.is_leader:
                end = metadata.log_end_offset
                self._see(
                    _METADATA, metadata.raft.epoch, metadata.committed_offset, end, f"the metadata of {_who(machine)}"
                )

    def _see(self, key: Any, epoch: int, watermark: int, end_offset: int, what: str) -> None:
        highest, of_epoch = self._highest.get(key, (0, -1))
        if epoch >= of_epoch and end_offset < highest:
            self.violated(f"{what} ends at {end_offset} in epoch {epoch}; {highest} was the high watermark before")
        if watermark > highest:
            self._highest[key] = watermark, epoch

    def pending(self) -> str:
        for replica in replicas_of(self.cluster):
            partition = replica.partition
            highest, _ = self._highest.get((partition.topic_id, partition.name.partition), (0, -1))
            if partition.is_leader and partition.log.high_watermark < highest:
                return f"the high watermark of {partition.name} is {partition.log.high_watermark}, and was {highest}"
        return ""


def _who(machine: Machine) -> str:
    return f"node {machine.node_id}"
