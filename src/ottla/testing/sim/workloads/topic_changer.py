"""A program that creates topics, lets them grow, and deletes them; and what must be there of them in the end."""

from enum import Enum

from ottla.client.admin.asking import Asking
from ottla.client.admin.topics import NewPartitions, NewTopic, create_partitions, create_topics, delete_topics
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import History

_PAUSES_MS = (200, 1_500)
_CALL_MS = 10_000


class Presence(Enum):
    THERE = "there"
    GONE = "gone"
    UNKNOWN = "there or gone"


class TopicChanger(Actor):
    """`topics` is what is known of each: a change that was not confirmed leaves it unknown."""

    def __init__(self, cluster: SimulatedCluster, history: History, name: str) -> None:
        super().__init__(cluster, history, name)
        self.topics: dict[str, Presence] = {}
        self.partitions: dict[str, int] = {}
        """How many partitions a topic has at least."""
        self.ids: dict[str, str] = {}
        """Of those that were created. A name may come back: a creation that was sent twice may arrive late."""

    def _begin_life(self) -> None:
        settings = read_settings(Scope.ADMIN, {**self.client_settings, "default.api.timeout.ms": _CALL_MS}, {})
        self._run(self._change(Asking(Cluster(self.client.world, settings))))

    async def _change(self, asking: Asking) -> None:
        while not self.is_finishing:
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            there = [name for name, presence in self.topics.items() if presence is Presence.THERE]
            try:
                if there and self.chance.random() < 0.4:
                    await self._delete(asking, self.chance.choice(there))
                elif there and self.chance.random() < 0.4:
                    await self._grow(asking, self.chance.choice(there))
                else:
                    await self._create(asking)
            except KafkaError as error:
                self.note_error(error)
        asking.cluster.close()

    async def _create(self, asking: Asking) -> None:
        name = f"{self.name}-{len(self.topics)}"
        self.topics[name] = Presence.UNKNOWN
        created = await create_topics(asking, [NewTopic(name, 2)])
        self.ids[name] = str(created[name].topic_id)
        self.topics[name] = Presence.THERE
        self.partitions[name] = 2

    async def _grow(self, asking: Asking, name: str) -> None:
        count = self.partitions[name] + 1
        (await create_partitions(asking, {name: NewPartitions(count)})).raise_first()
        self.partitions[name] = count

    async def _delete(self, asking: Asking, name: str) -> None:
        self.topics[name] = Presence.UNKNOWN
        (await delete_topics(asking, [name])).raise_first()
        self.topics[name] = Presence.GONE
