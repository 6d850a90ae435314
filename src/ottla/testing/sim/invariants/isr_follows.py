"""Who is taken into an ISR follows the leader in its epoch: a follower that has not heard of the epoch does not count.

It may have records that the epoch began without. Both its own log and its leader look for such, by the epochs of
records (KIP-595's `DivergingEpoch`), so nothing would be lost by it at once; it is what those checks rest on.
"""

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.cluster_health import broker_epoch
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.workloads.history import History


class IsrFollows(PeriodicInvariant):
    name = "who is taken into an ISR follows the leader in its epoch"
    every_us = 20_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._known_offset = 0
        """Of the metadata, that some node has known to be committed."""
        self._isrs: dict[tuple[bytes, int], tuple[int, frozenset[int]]] = {}
        """By partition: the ISR, and in which leader epoch."""

    def look(self) -> None:
        known = [one.metadata for one in self.cluster.machines.values() if one.metadata is not None]
        latest = max(known, key=lambda metadata: metadata.committed_offset, default=None)
        if latest is None or latest.committed_offset <= self._known_offset:
            return
        self._known_offset = latest.committed_offset
        epochs = {id: broker.epoch for id, broker in latest.image.brokers.by_id.items()}
        for topic in latest.image.topics.by_name.values():
            for index, partition in topic.partitions.items():
                now = partition.leader_epoch, frozenset(partition.isr)
                before = self._isrs.get((topic.id, index), (-1, frozenset()))
                self._isrs[topic.id, index] = now
                if now[0] == before[0]:
                    for broker_id in now[1] - before[1]:
                        self._check(broker_id, epochs.get(broker_id, -1), TopicPartition(topic.name, index), now[0])

    def _check(self, broker_id: int, epoch: int, name: TopicPartition, leader_epoch: int) -> None:
        machine = self.cluster.machines[broker_id]
        if not machine.is_serving or broker_epoch(machine) != epoch:
            return
        broker = machine.node.broker if machine.node is not None else None
        replica = broker.partitions.get(name) if broker is not None else None
        if replica is not None and replica.leader_epoch < leader_epoch:
            known = f"epoch {leader_epoch}; it knows of {replica.leader_epoch}"
            self.violated(f"node {broker_id} is taken into the ISR of {name} in {known}")
