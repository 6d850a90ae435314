"""A program that does to a cluster what its operators do: moves replicas between brokers and takes that back, elects
preferred leaders, changes settings and features, unregisters brokers that are down.

Nothing is promised of these but that no record is lost by them, and that a reassignment comes to its end.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final, TypeAlias

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking
from ottla.client.admin.cluster_nodes import unregister_broker
from ottla.client.admin.configs import ConfigResource, incremental_alter_configs
from ottla.client.admin.feature_levels import FeatureUpdate, UpgradeType, describe_features, update_features
from ottla.client.admin.replicas import (
    ElectionType,
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import History

_PAUSES_MS: Final = (100, 600, 2_500)
_CALL_MS: Final = 5_000
_FEATURES: Final = {"transaction.version": (0, 1, 2), "eligible.leader.replicas.version": (0, 1)}
_SETTINGS: Final = {
    "min.insync.replicas": ("1", "2", None),
    "compression.type": ("producer", "zstd", "lz4", "gzip", None),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "segment.ms": ("1000", "60000"),
    "segment.index.bytes": ("48", "10485760"),
    "flush.messages": ("1", None),
}
_FLUSHES: Final = "flush.messages"
_LEVELS: Final = ("1", "2", "3")
_QUICK_MS: Final = (50, 300)


Deed: TypeAlias = Callable[[Asking], Awaitable[bool]]
"""Returns whether it was done."""


class Operator(Actor):
    pauses_ms: ClassVar[tuple[int, ...]] = _PAUSES_MS

    def __init__(
        self, cluster: SimulatedCluster, history: History, name: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions
        self._brokers = list(cluster.settings.brokers())
        self._before: dict[TopicPartition, tuple[int, ...]] = {}
        """The replicas that a partition had before it was told to move."""
        self.done: dict[str, int] = {}
        """How often which deed was confirmed."""

    def _begin_life(self) -> None:
        settings = read_settings(Scope.ADMIN, {**self.client_settings, "default.api.timeout.ms": _CALL_MS}, {})
        self._run(self._operate(Asking(Cluster(self.client.world, settings))))

    def _deeds(self) -> list[Deed]:
        return [
            self._reassign,
            self._reassign,
            self._take_back,
            self._take_back,
            self._elect,
            self._change_setting,
            self._change_setting,
            self._change_feature,
            *[self._unregister] * 4,  # Mostly, no broker is down.
        ]

    async def _operate(self, asking: Asking) -> None:
        deeds = self._deeds()
        is_done = False
        while not is_done:
            await self.client.world.sleep(self.chance.choice(self.pauses_ms))
            deed = self.chance.choice(deeds)
            self._restart_unregistered()
            try:
                if self.is_finishing:
                    is_done = not await list_partition_reassignments(asking)
                elif await deed(asking):
                    self.done[deed.__name__] = self.done.get(deed.__name__, 0) + 1
            except KafkaError as error:
                self.note_error(error)
        asking.cluster.close()

    async def _reassign(self, asking: Asking) -> bool:
        if len(self._brokers) < 3:
            return False
        partition = self.chance.choice(self._partitions)
        replicas = tuple(self.chance.sample(self._brokers, self.chance.choice((2, 3, 3))))
        known = self._replicas_of(partition)
        if known is None or known == replicas:
            return False
        self._before[partition] = known
        (await alter_partition_reassignments(asking, {partition: replicas})).raise_first()
        return True

    async def _take_back(self, asking: Asking) -> bool:
        """By cancelling it, or by naming the replicas that it had before, as a saved rollback file does."""
        if not self._before:
            return False
        partition, before = self.chance.choice(list(self._before.items()))
        wanted = self.chance.choice((None, before))
        (await alter_partition_reassignments(asking, {partition: wanted})).raise_first()
        return True

    async def _elect(self, asking: Asking) -> bool:
        partitions = self.chance.choice((None, self._partitions))
        elected = await elect_leaders(asking, ElectionType.PREFERRED, partitions)
        return len(elected.errors) < len(elected)

    async def _change_setting(self, asking: Asking) -> bool:
        topic = self.chance.choice(self._partitions).topic
        name = self.chance.choice(list(_SETTINGS))
        value = self.chance.choice(_SETTINGS[name])
        if name == "min.insync.replicas" and len(self._brokers) < 3:
            return False
        if name == _FLUSHES and self.cluster.settings.flushes:
            return False  # What faults may take was decided by it.
        changed = await incremental_alter_configs(asking, {ConfigResource.topic(topic): {name: value}})
        changed.raise_first()
        return True

    async def _change_feature(self, asking: Asking) -> bool:
        name = self.chance.choice(list(_FEATURES))
        level = self.chance.choice(_FEATURES[name])
        known = (await describe_features(asking)).finalized.get(name)
        before = 0 if known is None else known.high
        if level == before:
            return False
        kind = UpgradeType.UPGRADE if level > before else UpgradeType.SAFE_DOWNGRADE
        (await update_features(asking, {name: FeatureUpdate(level, kind)})).raise_first()
        return True

    async def _unregister(self, asking: Asking) -> bool:
        """One that is down, and that no partition needs: others are in sync. It registers again when it starts."""
        image = self._image()
        if image is None:
            return False
        in_sync = [partition.isr for topic in image.topics.by_name.values() for partition in topic.partitions.values()]
        down = [
            broker_id
            for broker_id in self._brokers
            if self.cluster.machines[broker_id].life is None and all(set(isr) - {broker_id} for isr in in_sync)
        ]
        if not down:
            return False
        await unregister_broker(asking, self.chance.choice(down))
        return True

    def _restart_unregistered(self) -> None:
        """A broker that lives and is not registered: the request came late. It registers when it starts again.

        So does one that is about to start, and has registered: it waits to be unfenced, as Apache Kafka's do.
        """
        known = self._newest_metadata()
        for broker_id in self._brokers if known is not None else ():
            machine = self.cluster.machines[broker_id]
            if known is None or broker_id in known.image.brokers.by_id:
                continue
            if machine.is_serving or -1 < machine.broker_epoch < known.committed_offset:
                machine.kill("killed: nobody knows it any more")
                machine.start()

    def _replicas_of(self, partition: TopicPartition) -> tuple[int, ...] | None:
        image = self._image()
        topic = image.topics.by_name.get(partition.topic) if image is not None else None
        known = topic.partitions.get(partition.partition) if topic is not None else None
        return None if known is None else tuple(known.replicas)

    def _image(self) -> MetadataImage | None:
        known = self._newest_metadata()
        return known.image if known is not None else None

    def _newest_metadata(self) -> MetadataLog[Controller] | None:
        """Those of the node that knows most."""
        known = [one.metadata for one in self.cluster.machines.values() if one.is_serving and one.metadata is not None]
        return max(known, key=lambda metadata: metadata.committed_offset, default=None)


class LevelChanger(Operator):
    """Raises and lowers `min.insync.replicas`, all the time: while an ISR becomes smaller, too."""

    pauses_ms = _QUICK_MS

    def _deeds(self) -> list[Deed]:
        return [self._change_level]

    async def _change_level(self, asking: Asking) -> bool:
        if self.cluster.settings.replication_factor < 3:
            return False
        topics = sorted({partition.topic for partition in self._partitions})
        level = {"min.insync.replicas": self.chance.choice(_LEVELS)}
        changed = await incremental_alter_configs(asking, {ConfigResource.topic(topic): level for topic in topics})
        changed.raise_first()
        return True


class LeaderElector(Operator):
    """Elects preferred leaders, all the time: one that is back leads at once, while the other takes its place up."""

    pauses_ms = _QUICK_MS

    def _deeds(self) -> list[Deed]:
        return [self._elect]
