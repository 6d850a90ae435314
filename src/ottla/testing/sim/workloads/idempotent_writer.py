"""A program that writes records with an idempotent producer and `acks=all`."""

from collections.abc import Sequence

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.producing import SimulatedProducer

_PAUSES_MS = (5, 60, 400)
_MOST_AT_ONCE = 6


class IdempotentWriter(Actor):
    def __init__(
        self, cluster: SimulatedCluster, history: History, name: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions

    def _begin_life(self) -> None:
        settings = {**self.client_settings, "delivery.timeout.ms": 20_000, "linger.ms": self.chance.choice((0, 5, 50))}
        producer = SimulatedProducer(self.client, self.history, settings)
        producer.on_error = self.note_error
        self._run(self._write(producer))

    async def _write(self, producer: SimulatedProducer) -> None:
        number = 0
        while not self.is_finishing:
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            for _ in range(self.chance.randrange(_MOST_AT_ONCE)):
                record = self.history.send(self.life_name, number, self.chance.choice(self._partitions))
                number += 1
                await producer.send(record)
        await producer.core.flush()
        producer.core.close()
