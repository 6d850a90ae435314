"""A program that writes to topics which forget: by DeleteRecords, by retention, by compaction."""

from typing import Final

from ottla.client.admin.asking import Asking
from ottla.client.admin.records import delete_records
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import Fate, SentRecord
from ottla.testing.sim.workloads.producing import SimulatedProducer
from ottla.testing.sim.workloads.topics import RINGS, STATES, TRAILS, partitions_of

_PAUSES_MS: Final = (5, 60, 400)
_MOST_AT_ONCE: Final = 8
_KEYS: Final = 5
_CALL_MS: Final = 5_000
_DELETES: Final = 0.1


class Housekeeper(Actor):
    def _begin_life(self) -> None:
        settings = {**self.client_settings, "delivery.timeout.ms": 20_000, "linger.ms": self.chance.choice((0, 20))}
        producer = SimulatedProducer(self.client, self.history, settings)
        producer.on_error = self.note_error
        asked = read_settings(Scope.ADMIN, {**self.client_settings, "default.api.timeout.ms": _CALL_MS}, {})
        self._run(self._live(producer, Asking(Cluster(self.client.world, asked))))

    async def _live(self, producer: SimulatedProducer, asking: Asking) -> None:
        number = 0
        places = partitions_of(RINGS, TRAILS, STATES)
        sent: list[SentRecord] = []
        while not self.is_finishing:
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            for _ in range(self.chance.randrange(_MOST_AT_ONCE)):
                place = self.chance.choice(places)
                key = b"key %d" % self.chance.randrange(_KEYS) if place.topic == STATES else None
                padding = b"." * self.chance.choice((0, 100, 900))
                record = self.history.send(self.life_name, number, place, key=key, padding=padding)
                number += 1
                if place.topic == RINGS:
                    sent.append(record)
                await producer.send(record)
            if self.chance.random() < _DELETES:
                await self._delete(asking, [record for record in sent if record.fate is Fate.ACKNOWLEDGED])
        await producer.core.flush()
        producer.core.close()
        asking.cluster.close()

    async def _delete(self, asking: Asking, acknowledged: list[SentRecord]) -> None:
        """Everything before some record that is known to be there."""
        if not acknowledged:
            return
        record = self.chance.choice(acknowledged)
        self.history.note_deletion_asked(record.partition, record.offset)
        try:
            (await delete_records(asking, {record.partition: record.offset})).raise_first()
        except KafkaError as error:
            self.note_error(error)
        else:
            self.history.note_deleted(record.partition, record.offset)
