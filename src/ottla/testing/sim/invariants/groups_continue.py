"""A group's member continues where the group had committed, and every record is read by every group at least once.

A partition has one owner in each generation of its group.
"""

from collections.abc import Sequence

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.topics import KEPT


class GroupsContinue(Invariant):
    name = "a group continues where it had committed"

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._committed: dict[tuple[str, TopicPartition], int] = {}
        self._floors: dict[tuple[str, TopicPartition], int] = {}
        """For a reader that was just given a partition: where its first record may be at the earliest."""
        self._lowest_sent: dict[tuple[str, TopicPartition], int] = {}
        """Of the commits since the partition was last given to a reader. Those before are of an older generation."""
        self._read: dict[str, set[bytes]] = {}

    def on_commit_sent(self, group: str, partition: TopicPartition, offset: int) -> None:
        """A commit that was sent twice may arrive late, and take the group back to where it was then; not further."""
        self._lowest_sent[group, partition] = min(offset, self._lowest_sent.get((group, partition), offset))

    def on_committed(self, group: str, partition: TopicPartition, offset: int) -> None:
        self._committed[group, partition] = max(offset, self._committed.get((group, partition), 0))

    def on_assigned(self, group: str, reader: str, generation: int, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            committed = self._committed.get((group, partition), 0)
            lowest_sent = self._lowest_sent.pop((group, partition), committed)
            self._floors[reader, partition] = min(committed, lowest_sent)

    def on_read(self, group: str, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        self._read.setdefault(group, set()).add(value)
        floor = self._floors.pop((reader, partition), 0)
        if offset < floor:
            self.violated(f"{reader} of {group} begins {partition} at {offset}, and {floor} was committed before")

    def count_read(self, group: str) -> int:
        """How many different records it has read."""
        return len(self._read.get(group, ()))

    def at_end(self, found: FinalRead) -> None:
        for group, read in self._read.items():
            for partition, records in found.committed.items():
                for offset, value in records if partition.topic in KEPT else ():
                    if value not in read:
                        self.violated(f"{group} has never read {value!r} at {offset} of {partition}")


class OneOwner(Invariant):
    name = "a partition has one owner in a generation"

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._owners: dict[tuple[str, int, TopicPartition], str] = {}

    def on_assigned(self, group: str, reader: str, generation: int, partitions: Sequence[TopicPartition]) -> None:
        if generation < 0:
            return
        for partition in partitions:
            owner = self._owners.setdefault((group, generation, partition), reader)
            if owner != reader:
                self.violated(f"{partition} belongs to {owner} and {reader} in generation {generation} of {group}")
