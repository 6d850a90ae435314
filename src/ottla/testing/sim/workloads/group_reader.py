"""A program that reads topics as a member of a group, and commits what it has read."""

from collections.abc import Sequence
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import make_member
from ottla.client.errors import KafkaError
from ottla.client.promise import Promise, spawn
from ottla.client.settings import read_settings
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor, Settles
from ottla.testing.sim.workloads.history import History

STRATEGIES: Final = ("range", "cooperative-sticky", "consumer")
_PAUSES_MS = (5, 50, 300)
_COMMIT_MS = 5_000


class _Listener:
    """What the consumer tells the program about its partitions."""

    def __init__(self, reader: "GroupReader") -> None:
        self._reader = reader

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._reader.on_assigned(partitions)

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._reader.on_taken_away(partitions)

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._reader.on_taken_away(partitions)


class GroupReader(Actor):
    """Reads committed records only. It continues until it is told to `finish`."""

    settles = Settles.WHEN_ALL_IS_READ

    def __init__(
        self,
        cluster: SimulatedCluster,
        history: History,
        name: str,
        group: str,
        strategy: str,
        topics: Sequence[str],
    ) -> None:
        super().__init__(cluster, history, name)
        self.group = group
        self._strategy = strategy
        self._topics = topics
        self._core: ConsumerCore
        self._read: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, int | None] = {}
        """Of the last record that was read: without it, a leader that was deposed cannot be distinguished from one that
        is."""
        self._committing: Promise[None] | None = None

    def _begin_life(self) -> None:
        settings: dict[str, object] = {
            **self.client_settings,
            "group.id": self.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "max.poll.interval.ms": 30_000,
            "fetch.max.wait.ms": 200,
            "default.api.timeout.ms": 20_000,
        }
        if self._strategy == "consumer":
            settings["group.protocol"] = "consumer"
        else:
            settings["session.timeout.ms"] = 10_000
            settings["heartbeat.interval.ms"] = 1_000
            settings["partition.assignment.strategy"] = self._strategy
        core = self._core = ConsumerCore(self.client.world, read_settings(Scope.CONSUMER, settings, {}), make_member)
        self._read = {}
        self._committing = None
        core.subscribe(self._topics, _Listener(self))
        self._run(self._live(core))

    async def _live(self, core: ConsumerCore) -> None:
        while not self.is_finishing:
            self._poll(core)
            if self._read and (self._committing is None or self._committing.is_done) and self.chance.random() < 0.3:
                self._committing = spawn(self._commit(core))
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
        core.stop()

    def _poll(self, core: ConsumerCore) -> None:
        while core.tasks:
            task = core.tasks.popleft()
            task.run()
            task.done(None)
        for record in core.poll(self.chance.choice((1, 20, 500))):
            partition = TopicPartition(record.topic, record.partition)
            self._read[partition] = record.offset + 1
            self._epochs[partition] = record.leader_epoch
            self.history.note_read(self.group, self.life_name, partition, record.offset, bytes(record.value or b""))

    async def _commit(self, core: ConsumerCore) -> None:
        offsets, self._read = self._read, {}
        for partition, offset in offsets.items():
            self.history.note_commit_sent(self.group, partition, offset)
        try:
            await core.offsets.commit(
                {one: OffsetAndMetadata(offset, "", self._epochs[one]) for one, offset in offsets.items()}, _COMMIT_MS
            )
        except KafkaError as error:
            self.note_error(error)
            return
        for partition, offset in offsets.items():
            self.history.note_committed(self.group, partition, offset)

    def on_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.history.note_assigned(self.group, self.life_name, self._core.identity.generation, partitions)

    def on_taken_away(self, partitions: tuple[TopicPartition, ...]) -> None:
        """What was read of them and not committed, another member reads again."""
        for partition in partitions:
            self._read.pop(partition, None)
