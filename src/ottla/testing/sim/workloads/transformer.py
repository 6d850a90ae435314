"""A program that consumes, transforms and produces, exactly once: what it has read is committed with what came of it.

Members of one group share the work. A member that dies, or is late, is fenced by its group's generation (KIP-447) or
by its producer's epoch, and what it left open is aborted; another reads the same records again.
"""

from collections.abc import Sequence
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import group_metadata, make_member
from ottla.client.errors import KafkaError
from ottla.client.settings import read_settings
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.replicas import leader_of
from ottla.testing.sim.workloads.actor import Actor, Settles
from ottla.testing.sim.workloads.history import Ending, History, SentRecord
from ottla.testing.sim.workloads.producing import SimulatedProducer
from ottla.testing.sim.workloads.topics import CLICKS, OUTCOMES, partitions_of

_PAUSES_MS: Final = (5, 50, 300)
_GROUP: Final = "transformers"
_ABORTED: Final = 0.1
_AT_ONCE: Final = (1, 20, 100)
_MOST_AT_ONCE: Final = 1_000
"""In the end: where links are slow a transaction takes three seconds, however many records it has."""


class Transformed:
    """What came of each record, whoever made it and whatever became of that; and what the group is done with."""

    def __init__(self) -> None:
        self.outcomes: dict[tuple[TopicPartition, int], list[SentRecord]] = {}
        self.read_to_the_end: set[TopicPartition] = set()


class Transformer(Actor):
    """It finishes when its group has read everything that was written before."""

    settles = Settles.WHEN_ALL_IS_WRITTEN

    def __init__(self, cluster: SimulatedCluster, history: History, name: str, transformed: Transformed) -> None:
        super().__init__(cluster, history, name)
        self.transformed = transformed
        self._strategy = cluster.simulation.chance("strategy of transformers").choice(("range", "consumer"))
        self._number = 0

    def _begin_life(self) -> None:
        settings: dict[str, object] = {
            **self.client_settings,
            "group.id": _GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "max.poll.interval.ms": 30_000,  # A member waits a little longer for what came of its JoinGroup.
            "fetch.max.wait.ms": 200,
            "default.api.timeout.ms": 20_000,
        }
        if self._strategy == "consumer":
            settings["group.protocol"] = "consumer"
        else:
            settings |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1_000}
        core = ConsumerCore(self.client.world, read_settings(Scope.CONSUMER, settings, {}), make_member)
        core.subscribe([CLICKS], None)
        producer = SimulatedProducer(
            self.client,
            self.history,
            {
                **self.client_settings,
                "transactional.id": self.name,
                "transaction.timeout.ms": 10_000,
                "delivery.timeout.ms": 8_000,
                "compression.type": self.chance.choice(("none", "lz4", "zstd")),
            },
        )
        producer.on_error = self.note_error
        self._run(self._live(core, producer))

    async def _live(self, core: ConsumerCore, producer: SimulatedProducer) -> None:
        await producer.core.the_transactions().init()
        while not self._is_done(core):
            while core.tasks:
                task = core.tasks.popleft()
                task.run()
                task.done(None)
            most = _MOST_AT_ONCE if self.is_finishing else self.chance.choice(_AT_ONCE)
            read = [(TopicPartition(record.topic, record.partition), record.offset) for record in core.poll(most)]
            if read:
                await self._transform(core, producer, read)
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
        core.stop()
        producer.core.close()

    async def _transform(
        self, core: ConsumerCore, producer: SimulatedProducer, read: Sequence[tuple[TopicPartition, int]]
    ) -> None:
        transactions = producer.core.the_transactions()
        transaction = self.history.begin_transaction(f"{self.life_name} transformation {self._number}")
        member = group_metadata(core)
        transactions.begin()
        try:
            for source in read:
                self._number += 1
                target = self.chance.choice(partitions_of(OUTCOMES))
                record = self.history.send(self.life_name, self._number, target, transaction)
                self.transformed.outcomes.setdefault(source, []).append(record)
                await producer.send(record)
            await producer.core.send_offsets({partition: offset + 1 for partition, offset in read}, member)
            if self.chance.random() >= _ABORTED:
                transaction.ending = Ending.COMMITTING
                await transactions.commit()
                transaction.ending = Ending.COMMITTED
                return
        except KafkaError as error:
            self.note_error(error)
            if error.fatal or transaction.ending is Ending.COMMITTING:
                raise  # Only the next life's `init` decides what became of it.
        await transactions.abort()
        transaction.ending = Ending.ABORTED
        self._go_back(core, read)

    @staticmethod
    def _go_back(core: ConsumerCore, read: Sequence[tuple[TopicPartition, int]]) -> None:
        for partition, offset in reversed(read):
            if partition in core.subscription.partitions:
                core.seek(partition, OffsetAndMetadata(offset))

    def _is_done(self, core: ConsumerCore) -> bool:
        """Whether every partition was read to its end, and what came of it committed, by a member of the group."""
        if not self.is_finishing:
            return False
        for partition, state in core.subscription.partitions.items():
            leader = leader_of(self.cluster, partition)  # What the consumer was told last may be of the past.
            if leader is None or state.position is None:
                continue
            if state.position.offset >= leader.log.log_end_offset == leader.log.last_stable_offset:
                self.transformed.read_to_the_end.add(partition)
        return len(self.transformed.read_to_the_end) == len(partitions_of(CLICKS))
