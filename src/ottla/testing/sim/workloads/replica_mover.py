"""A program that moves replicas between the log directories of their brokers (KIP-113), at random.

Leaders more often than others: what a leader has that nobody else does is cut when it is none any more, and a move must
not keep it. Nothing is promised of a move but that no record is lost by it, so nothing is kept of what it was told.
"""

from collections.abc import Sequence

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking
from ottla.client.admin.log_dirs import TopicPartitionReplica, alter_replica_log_dirs
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import History

_PAUSES_MS = (100, 400, 2_000)
_CALL_MS = 4_000
_LEADERS = 0.6
"""How many of the moves are of a leader."""
_LEFT_ALONE_MS = 6_000
"""For how long a replica is not told to move again: a move that is told to go elsewhere is over."""
_HASTY = 0.2
"""How many moves do not heed that."""


class ReplicaMover(Actor):
    def __init__(
        self, cluster: SimulatedCluster, history: History, name: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions
        self._brokers = list(cluster.settings.brokers())
        self._moved_ms: dict[TopicPartitionReplica, int] = {}

    def _begin_life(self) -> None:
        settings = read_settings(Scope.ADMIN, {**self.client_settings, "default.api.timeout.ms": _CALL_MS}, {})
        self._run(self._move(Asking(Cluster(self.client.world, settings))))

    async def _move(self, asking: Asking) -> None:
        while not self.is_finishing:
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            partition = self.chance.choice(self._partitions)
            broker_id = self.chance.choice(self._leaders_of(partition) or self._brokers)
            path = self.chance.choice(self.cluster.machines[broker_id].log_dirs)
            replica = TopicPartitionReplica(partition.topic, partition.partition, broker_id)
            if not self._may_move(replica):
                continue
            try:
                (await alter_replica_log_dirs(asking, {replica: path})).raise_first()
            except KafkaError as error:
                self.note_error(error)
        asking.cluster.close()

    def _leaders_of(self, partition: TopicPartition) -> list[int]:
        """The brokers that take themselves for its leader, mostly: one that is cut off still does."""
        if self.chance.random() >= _LEADERS:
            return []
        nodes = {id: machine.node for id, machine in self.cluster.machines.items() if machine.is_serving}
        brokers = {id: node.broker for id, node in nodes.items() if node is not None and node.broker is not None}
        held = {id: broker.partitions.get(partition) for id, broker in brokers.items()}
        return [id for id, one in held.items() if one is not None and one.is_leader]

    def _may_move(self, replica: TopicPartitionReplica) -> bool:
        now_ms = self.cluster.simulation.clock.elapsed_us() // 1000
        moved_ms = self._moved_ms.get(replica)
        if moved_ms is not None and now_ms - moved_ms < _LEFT_ALONE_MS and self.chance.random() >= _HASTY:
            return False
        self._moved_ms[replica] = now_ms
        return True
