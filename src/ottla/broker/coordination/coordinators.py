"""The coordinators of a broker, which hear what happens to their partitions and to the cluster."""

from typing import TYPE_CHECKING, TypeAlias

from ottla.base.ids import random_uuid, uuid_hex_text, uuid_text
from ottla.broker.coordination.topic_coordinator import TopicCoordinator
from ottla.broker.partitions.partition import Partition
from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.runtime.channels import PeerChannel
from ottla.runtime.world import World
from ottla.wire.record_values import CoordinatorTopic

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions
    from ottla.broker.transactions.producer_ids import ProducerIds
    from ottla.machines.group.group_coordinator import GroupCoordinator

Groups: TypeAlias = "TopicCoordinator[GroupCoordinator]"

GROUPS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"


class Coordinators:
    """One coordinator a topic. Machines are imported when a partition of theirs is first led."""

    def __init__(self, partitions: "Partitions", world: World, peers: PeerChannel, producer_ids: "ProducerIds") -> None:
        self._partitions = partitions
        self._randbytes = world.entropy.randbytes
        config = partitions.node_settings.effective
        self.groups: Groups = TopicCoordinator(
            partitions,
            world,
            CoordinatorTopic.CONSUMER_OFFSETS,
            GROUPS,
            "offsets.topic.num.partitions",
            self._make_groups,
            compression=config.integer("offsets.topic.compression.codec"),
            commit_timeout_ms=config.integer("offsets.commit.timeout.ms"),
            linger_ms=config.integer("group.coordinator.append.linger.ms"),
        )
        self.transactions = Transactions(partitions, world, peers, producer_ids)

    def _make_groups(self, _index: int, _leader_epoch: int) -> "GroupCoordinator":
        from ottla.machines.group.group_coordinator import GroupCoordinator
        from ottla.machines.group.membership import NewIds
        from ottla.machines.group.settings import group_settings

        partitions, randbytes = self._partitions, self._randbytes
        new_ids = NewIds(lambda: uuid_hex_text(random_uuid(randbytes)), lambda: uuid_text(random_uuid(randbytes)))
        return GroupCoordinator(group_settings(partitions.node_settings.effective), partitions.metadata.image, new_ids)

    def on_leadership(self, partition: Partition) -> None:
        """A partition that this node holds has a new leader, or is gone."""
        if partition.name.topic == GROUPS:
            self.groups.on_leadership(partition)
        elif partition.name.topic == TRANSACTIONS:
            self.transactions.on_leadership(partition)

    def on_metadata(self, delta: MetadataDelta) -> None:
        """The cluster has changed, and the broker has taken it up."""
        if delta.topics_deleted:
            self._forget_topics([topic.name for topic in delta.topics_deleted.values()])
        if delta.topics_deleted or delta.topics_created or delta.partitions or delta.acls:
            self._tell_groups_of_topics(delta)
        if delta.features or delta.configs:
            self.transactions.refresh_settings()

    def _forget_topics(self, topics: list[str]) -> None:
        for led in list(self.groups.active):
            led.submit(lambda machine, now_ms: machine.on_topics_deleted(topics, now_ms), _ignore, _ignore)

    def _tell_groups_of_topics(self, delta: MetadataDelta) -> None:
        by_id = self._partitions.metadata.image.topics.by_id
        names = {by_id[topic_id].name for topic_id, _ in delta.partitions}
        names |= {topic.name for topic in delta.topics_deleted.values()}
        # Rules of access decide what a member's pattern finds, as do the topics that there are.
        came_or_went = bool(delta.topics_deleted or delta.topics_created or delta.acls)
        for led in self.groups.active:
            led.machine.on_topics_changed(names, came_or_went=came_or_went)

    def close(self) -> None:
        self.groups.close()
        self.transactions.close()


def _ignore(_outcome: object) -> None:
    """Nobody waits for it."""
