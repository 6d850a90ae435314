"""Whoever may be elected without loss has every acknowledged record: the ISR, and the eligible leaders (KIP-966).

By the metadata of the node that knows most of what is committed. A replica counts in the life that the metadata speak
of: a broker that has just started may have lost records, and is out of both before it leads again.
"""

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.cluster_health import broker_epoch
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.workloads.history import History, SentRecord


class LeadersToBeHaveAll(PeriodicInvariant):
    name = "ISR and eligible leaders have every acknowledged record"
    every_us = 20_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._last: dict[TopicPartition, int] = {}
        """The last offset that was acknowledged."""
        self._known_offset = 0
        """Of the metadata, that some node has known to be committed."""

    def on_acknowledged(self, record: SentRecord) -> None:
        self._last[record.partition] = max(record.offset, self._last.get(record.partition, -1))

    def look(self) -> None:
        known = [one.metadata for one in self.cluster.machines.values() if one.metadata is not None]
        if not known:
            return
        latest = max(known, key=lambda metadata: metadata.committed_offset)
        if latest.committed_offset < self._known_offset:
            return  # The nodes that know most are down, and the others may not know who was taken out.
        self._known_offset, image = latest.committed_offset, latest.image
        epochs = {id: broker.epoch for id, broker in image.brokers.by_id.items()}
        for name, offset in self._last.items():
            topic = image.topics.by_name.get(name.topic)
            partition = topic.partitions.get(name.partition) if topic is not None else None
            if partition is not None:
                for broker_id in {*partition.isr, *partition.eligible_leader_replicas}:
                    self._check(broker_id, epochs.get(broker_id, -1), name, offset)

    def _check(self, broker_id: int, epoch: int, name: TopicPartition, offset: int) -> None:
        machine = self.cluster.machines[broker_id]
        if not machine.is_serving or machine.may_fail or broker_epoch(machine) != epoch:
            return
        broker = machine.node.broker if machine.node is not None else None
        replica = broker.partitions.get(name) if broker is not None else None
        if replica is None or replica.directory in machine.failed_directories:
            return
        if replica.log.log_end_offset <= offset:
            self.violated(f"node {broker_id} ends {name} at {replica.log.log_end_offset}; {offset} was acknowledged")
