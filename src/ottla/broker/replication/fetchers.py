"""Which partitions this node follows, and over which of the `num.replica.fetchers` connections to their leader.

A request that waits for records at the leader holds up what comes after it, for up to `replica.fetch.wait.max.ms`. A
partition that gets a new leader must not wait for that: its producers do. So each connection has a second one beside
it, for partitions that come while a request is under way on the first.
"""

from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.base.ports import Timers
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.replication.fetcher import Fetcher
from ottla.broker.replication.leader_connections import LeaderConnections

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions


class Fetchers:
    def __init__(
        self, partitions: "Partitions", timers: Timers, events: PartitionEvents, leaders: LeaderConnections
    ) -> None:
        self._partitions = partitions
        self._timers = timers
        self._events = events
        self._leaders = leaders
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._homes: dict[TopicPartition, tuple[Partition, int, Fetcher]] = {}
        self._is_stopped = False

    def __len__(self) -> int:
        """How many partitions are followed."""
        return len(self._homes)

    def on_leadership(self, partition: Partition) -> None:
        """A partition that this node holds has a new leader, or is gone."""
        home = self._homes.get(partition.name)
        if home is not None:
            if home[0] is partition and home[1] == partition.leader_epoch and self._follows(partition):
                return
            self._leave(partition.name)
        if self._follows(partition):
            fetcher = self._fetcher_for(partition)
            self._homes[partition.name] = partition, partition.leader_epoch, fetcher
            fetcher.follow(partition)

    def _follows(self, partition: Partition) -> bool:
        is_followers = partition.state is None and partition.leader_id >= 0
        return is_followers and self._partitions.holds(partition) and not self._is_stopped

    def _fetcher_for(self, partition: Partition) -> Fetcher:
        first = 2 * self._slot_of(partition)
        fetcher = self._fetcher(partition.leader_id, first)
        return self._fetcher(partition.leader_id, first + 1) if fetcher.is_asking else fetcher

    def _slot_of(self, partition: Partition) -> int:
        count = self._partitions.node_settings.effective.integer("num.replica.fetchers")
        return (int.from_bytes(partition.topic_id[-4:], "big") + partition.name.partition) % count

    def _fetcher(self, leader_id: int, number: int) -> Fetcher:
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            fetcher = self._fetchers[leader_id, number] = Fetcher(
                self._partitions, self._timers, self._events, self._leaders, leader_id, number
            )
        return fetcher

    def _leave(self, name: TopicPartition) -> None:
        partition, _, fetcher = self._homes.pop(name)
        fetcher.leave((partition.topic_id, name.partition))
        if not fetcher.followed:
            del self._fetchers[fetcher.leader_id, fetcher.number]
            fetcher.stop()

    def on_flushed(self, partition: Partition) -> None:
        """A flush of a partition's log has ended."""
        home = self._homes.get(partition.name)
        if home is not None and not partition.must_be_flushed:
            home[2].on_flushed(partition)

    def on_settings(self) -> None:
        """There may be to be more fetchers, or fewer (KIP-226)."""
        for name in list(self._homes):
            partition, _, fetcher = self._homes[name]
            if fetcher.number // 2 != self._slot_of(partition):
                self._leave(name)
                self.on_leadership(partition)

    def stop(self) -> None:
        """The node goes: it follows nobody any more."""
        self._is_stopped = True
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._fetchers.clear()
        self._homes.clear()
