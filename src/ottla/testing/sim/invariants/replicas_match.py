"""What is below the high watermark is the same on every replica, for ever; and a leader's watermark never goes back.

Each life of a node is followed from the beginning of its logs: a batch that it has below its high watermark must be the
one that others had there, or the first of its place. So this holds for logs that were recovered or fetched anew, too.
"""

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.partitions.partition import Partition
from ottla.log.scan import scan_headers
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History

_EVERY_US = 500_000
_Key = tuple[Uuid, TopicPartition]


class _Followed:
    """How far one life's log of a partition was compared."""

    __slots__ = ("leader_epoch", "next_offset", "watermark")

    def __init__(self) -> None:
        self.next_offset = 0
        self.leader_epoch = -1
        self.watermark = 0


class ReplicasMatch(Invariant):
    name = "replicas match below the high watermark"

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._batches: dict[tuple[_Key, int], tuple[int, int, int]] = {}
        """What is at a base offset: the last offset, the checksum, and the node that was seen to have it first."""
        self._followed: dict[tuple[int, _Key], tuple[object, _Followed]] = {}
        self._due_us = 0

    def on_step(self) -> None:
        now_us = self.cluster.simulation.clock.elapsed_us()
        if now_us >= self._due_us:
            self._due_us = now_us + _EVERY_US
            self._look()

    def at_end(self, found: FinalRead) -> None:
        self._look()

    def _look(self) -> None:
        for machine in self.cluster.machines.values():
            broker = machine.node.broker if machine.node is not None else None
            if broker is None or not machine.is_serving or machine.may_fail:
                continue
            for partition in broker.partitions.values():
                if not partition.log.config.is_compacted and not partition.is_removing:
                    self._compare(machine, partition)

    def _compare(self, machine: Machine, partition: Partition) -> None:
        key = partition.topic_id, partition.name
        life, followed = self._followed.get((machine.node_id, key), (None, None))
        if followed is None or life is not machine.life:
            followed = _Followed()
            self._followed[machine.node_id, key] = machine.life, followed
        watermark = partition.log.high_watermark
        if partition.is_leader:
            if partition.leader_epoch == followed.leader_epoch and watermark < followed.watermark:
                self.violated(f"the high watermark of {partition.name} at its leader goes back to {watermark}")
            followed.leader_epoch, followed.watermark = partition.leader_epoch, watermark
        if watermark > followed.next_offset:
            self._compare_up_to(watermark, machine, partition, key, followed)

    def _compare_up_to(
        self, watermark: int, machine: Machine, partition: Partition, key: _Key, followed: _Followed
    ) -> None:
        for segment in partition.log.segments:
            if segment.next_offset() <= followed.next_offset:
                continue
            found = segment.find(followed.next_offset)
            if found is None:
                continue
            for _, header in scan_headers(segment.file, found.position, segment.size):
                if header.base_offset < followed.next_offset:
                    continue
                if header.next_offset > watermark:
                    return
                had = header.last_offset, header.crc, machine.node_id
                known = self._batches.setdefault((key, header.base_offset), had)
                if known[:2] != had[:2]:
                    self.violated(
                        f"nodes {known[2]} and {machine.node_id} have other batches at {header.base_offset} of "
                        f"{partition.name}, below the high watermark {watermark}"
                    )
                    return
                followed.next_offset = header.next_offset
