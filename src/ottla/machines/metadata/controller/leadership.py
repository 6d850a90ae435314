"""Partition changes that follow from brokers coming and going: new leaders, and replicas that take part again."""

from collections.abc import Iterable, Iterator

from ottla.base.ids import Uuid
from ottla.config.values import Value
from ottla.machines.decision import VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.partition_change import Election, PartitionChange, without
from ottla.machines.metadata.image.configs_image import MIN_INSYNC_REPLICAS
from ottla.machines.metadata.image.directory_ids import is_online
from ottla.machines.metadata.image.partition_image import NO_LEADER, PartitionImage

Located = tuple[str, Uuid, int, PartitionImage]
"""A partition with its topic's name and id, and its number."""

NOBODY = -1
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class ElectionRules:
    """The settings of topics that elections go by. Most topics have none of their own: the brokers' are read once."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._of_brokers: dict[str, Value] = {}

    def of(self, topic: str, key: str) -> Value:
        if key in self._context.image.configs.of_topic(topic):
            return self._context.topic_setting(topic, key)
        if key not in self._of_brokers:
            self._of_brokers[key] = self._context.topic_setting(topic, key)
        return self._of_brokers[key]

    def min_insync_replicas(self, topic: str, replica_count: int) -> int:
        """No more than the topic has replicas."""
        wanted = self.of(topic, MIN_INSYNC_REPLICAS)
        assert isinstance(wanted, int)
        return min(wanted, replica_count)

    def election(self, topic: str) -> Election:
        return Election.UNCLEAN if self.of(topic, UNCLEAN_ELECTION) else Election.ONLINE


def change_of(
    context: ControllerContext, topic: str, topic_id: Uuid, partition_id: int, rules: ElectionRules | None = None
) -> PartitionChange:
    """A change in the making, with the brokers that may lead at this moment."""
    rules = ElectionRules(context) if rules is None else rules
    partition = context.image.topics.by_id[topic_id].partitions[partition_id]
    return PartitionChange(
        partition,
        topic_id,
        partition_id,
        lambda broker_id: context.can_lead(broker_id, partition),
        context.default_directory,
        context.metadata_version,
        rules.min_insync_replicas(topic, len(context.image.topics.by_id[topic_id].partitions[0].replicas)),
        context.image.features.is_elr_enabled,
        rules.election(topic),
    )


def changes_when_removed(
    context: ControllerContext, broker_id: int, partitions: Iterable[Located] | None = None
) -> Iterator[VersionedRecord]:
    """A broker leaves the ISR of every partition, or of those given, and leads none of them."""
    affected = _in_isr(context, broker_id) if partitions is None else partitions
    yield from _changes(context, affected, removed=broker_id)


def changes_when_added(context: ControllerContext, broker_id: int) -> Iterator[VersionedRecord]:
    """An unfenced broker leads what nobody leads, where it may."""
    leaderless = (located for located in context.partitions() if located[3].leader == NO_LEADER)
    yield from _changes(context, leaderless, added=broker_id)


def changes_when_unregistered(context: ControllerContext, broker_id: int) -> Iterator[VersionedRecord]:
    eligible = (located for located in context.partitions() if broker_id in located[3].eligible_leader_replicas)
    yield from _changes(context, [*_in_isr(context, broker_id), *eligible], removed=broker_id)


def changes_when_restarted(
    context: ControllerContext, broker_id: int, directories: tuple[Uuid, ...], *, is_clean: bool
) -> Iterator[VersionedRecord]:
    """A broker registers anew. One that stopped uncleanly may have lost records: it is no eligible leader (KIP-966).

    Nor is it where the replica's directory is gone, however clean the stop was: it would begin anew in another one.
    """
    if not context.image.features.is_elr_enabled:
        yield from changes_when_removed(context, broker_id)
        return
    lost: list[Located] = []
    kept: list[Located] = []
    for located in context.partitions():
        partition = located[3]
        directory = partition.directory(broker_id)
        if broker_id in partition.isr or broker_id in partition.eligible_leader_replicas:
            is_there = is_clean and directory is not None and is_online(directory, directories)
            (kept if is_there else lost).append(located)
    yield from _changes(context, lost, unclean=broker_id)
    yield from changes_when_removed(context, broker_id, (one for one in kept if broker_id in one[3].isr))


def leads_something(context: ControllerContext, broker_id: int) -> bool:
    return any(partition.leader == broker_id for _, _, _, partition in context.partitions())


def _in_isr(context: ControllerContext, broker_id: int) -> Iterator[Located]:
    return (located for located in context.partitions() if broker_id in located[3].isr)


def _changes(
    context: ControllerContext,
    partitions: Iterable[Located],
    *,
    removed: int = NOBODY,
    added: int = NOBODY,
    unclean: int = NOBODY,
) -> Iterator[VersionedRecord]:
    """`added` counts as unfenced though its record is yet to be replayed; `removed` and `unclean` as gone."""
    rules = ElectionRules(context)
    for topic, topic_id, partition_id, partition in partitions:
        change = change_of(context, topic, topic_id, partition_id, rules)

        def can_lead(broker_id: int, partition: PartitionImage = partition) -> bool:
            if broker_id in (removed, unclean):
                return False
            return context.can_lead(broker_id, partition, assume_unfenced=broker_id == added)

        change.can_lead = can_lead
        change.unclean_shutdown = unclean
        change.isr = without(partition.isr, (removed, unclean))
        record = change.record()
        if record is not None:
            yield context.partition_change(record)
