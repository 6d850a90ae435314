"""The replicas of a cluster as invariants look at them: on nodes that serve, with disks that are sound.

Files are looked at past the disk's calls: these count, and may fail, for the node's own sake.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.log import file_names
from ottla.log.partition_log import PartitionLog
from ottla.records.batch import BatchHeader, complete_batches
from ottla.testing.crash_model import Content
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster


class Replica(NamedTuple):
    machine: Machine
    partition: Partition


class FoundBatch(NamedTuple):
    header: BatchHeader
    data: memoryview
    """Of its file; `position` is where it is."""
    position: int


def replicas_of(cluster: SimulatedCluster) -> Iterator[Replica]:
    for machine in cluster.machines.values():
        broker = machine.node.broker if machine.is_serving and machine.node is not None else None
        if broker is None or machine.may_fail:
            continue
        for partition in broker.partitions.values():
            if partition.directory not in machine.failed_directories and not partition.is_removing:
                yield Replica(machine, partition)


def leader_of(cluster: SimulatedCluster, name: TopicPartition) -> Partition | None:
    """The replica that leads in the highest epoch, whatever its disk may do."""
    leaders: list[Partition] = []
    for machine in cluster.machines.values():
        broker = machine.node.broker if machine.is_serving and machine.node is not None else None
        partition = broker.partitions.get(name) if broker is not None else None
        if partition is not None and partition.is_leader:
            leaders.append(partition)
    return max(leaders, key=lambda partition: partition.leader_epoch, default=None)


def batches_of(machine: Machine, log: PartitionLog, base_offset: int = 0, position: int = 0) -> Iterator[FoundBatch]:
    """Every batch of a log from a place in the segment with this base offset on. Raises `CorruptBatch`."""
    for segment in log.segments:
        if segment.base_offset < base_offset:
            continue
        content = machine.disk._find(segment.path(file_names.LOG))
        if not isinstance(content, Content):
            return
        start = position if segment.base_offset == base_offset else 0
        data = memoryview(bytes(content.data[start : segment.size]))
        for at, header in complete_batches(data):
            yield FoundBatch(header, data[at : at + header.size], start + at)


class LogFollower:
    """Gives out what is new in a log since it was looked at last. From the start again in another life of its node,
    after a cut, and when another log is in its place: what was swapped or recovered is looked at anew. So is a segment
    that compaction has put in the place of the one that was looked at last."""

    def __init__(self) -> None:
        self._seen: object = None
        self._segment: object = None
        self._base_offset = 0
        self._position = 0

    def new_batches(self, machine: Machine, log: PartitionLog) -> Iterator[FoundBatch]:
        seen = machine.life, log, log.cut_count, log.directory
        if seen != self._seen:
            self._seen, self._base_offset, self._position = seen, 0, 0
        for segment in list(log.segments):
            if segment.base_offset < self._base_offset:
                continue
            if segment is not self._segment:
                self._segment, self._base_offset, self._position = segment, segment.base_offset, 0
            content = machine.disk._find(segment.path(file_names.LOG))
            if not isinstance(content, Content) or self._position >= segment.size:
                continue
            start = self._position
            data = memoryview(bytes(content.data[start : segment.size]))
            for at, header in complete_batches(data):
                self._position = start + at + header.size
                yield FoundBatch(header, data[at : at + header.size], start + at)
