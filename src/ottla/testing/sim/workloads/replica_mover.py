"""A program that moves replicas between the log directories of their brokers (KIP-113), at random.

Nothing is promised of a move but that no record is lost by it, so nothing is kept of what it was told.
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


class ReplicaMover(Actor):
    def __init__(
        self, cluster: SimulatedCluster, history: History, name: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions
        self._brokers = list(cluster.settings.brokers())

    def _begin_life(self) -> None:
        settings = read_settings(Scope.ADMIN, {**self.client_settings, "default.api.timeout.ms": _CALL_MS}, {})
        self._run(self._move(Asking(Cluster(self.client.world, settings))))

    async def _move(self, asking: Asking) -> None:
        while not self.is_finishing:
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            partition = self.chance.choice(self._partitions)
            broker_id = self.chance.choice(self._brokers)
            path = self.chance.choice(self.cluster.machines[broker_id].log_dirs)
            replica = TopicPartitionReplica(partition.topic, partition.partition, broker_id)
            try:
                (await alter_replica_log_dirs(asking, {replica: path})).raise_first()
            except KafkaError as error:
                self.note_error(error)
        asking.cluster.close()
