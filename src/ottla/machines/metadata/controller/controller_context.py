"""What decisions look at: the image, the node's own settings, and the ports through which chance comes in.

Nothing here changes state. `replay` of the image does, and the sessions of brokers, which are known to one controller
and to no log: see `sessions`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

from ottla.base.ids import Uuid
from ottla.config.parse import Values
from ottla.config.values import Value
from ottla.machines.decision import VersionedRecord
from ottla.machines.metadata.controller.broker_sessions import BrokerSessions
from ottla.machines.metadata.image import directory_ids, features
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.settings.effective_settings import effective_value
from ottla.wire.message import like
from ottla.wire.messages import PartitionChangeRecord

ItemT = TypeVar("ItemT")


class Random(Protocol):
    """The part of `random.Random` that placing replicas needs."""

    def randrange(self, stop: int, /) -> int: ...

    def shuffle(self, items: list[ItemT], /) -> None: ...


Admit: TypeAlias = Callable[[int], bool]
"""Whether a client may make or remove so many partitions now, which are counted then (KIP-599)."""


def without_limit(_partitions: int) -> bool:
    return True


class ControllerContext:
    """What every decision is made from."""

    def __init__(
        self,
        image: MetadataImage,
        node_id: int,
        cluster_id: str,
        config: Values,
        new_uuid: Callable[[], Uuid],
        random: Random,
        next_offset: int = 0,
    ) -> None:
        self.image = image
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.config = config
        """The controller's own settings, from its file."""
        self.new_uuid = new_uuid
        self.random = random
        self.sessions = BrokerSessions()
        self.next_offset = next_offset
        """The offset that the next record gets. The driver keeps it; a broker's epoch is taken from it."""
        self.admit: Admit = without_limit
        """For the request that is being decided."""
        self.kraft_version = 0
        """The level of the Raft layer's own feature, which is in no record of the image. The driver keeps it."""
        self.kraft_upgrade_problem: str | None = "Nothing is known of the voters."
        """Why kraft.version cannot be raised, as the Raft layer says; None if it can."""

    @property
    def metadata_version(self) -> int:
        return self.image.features.metadata_version

    def is_active(self, broker_id: int) -> bool:
        broker = self.image.brokers.by_id.get(broker_id)
        return broker is not None and broker.is_active

    def default_directory(self, broker_id: int) -> Uuid:
        """Where a new replica continues a broker: with one log directory that is known, with more it is the broker's
        choice.
        """
        broker = self.image.brokers.by_id.get(broker_id)
        if not features.has_directory_assignment(self.metadata_version):
            return directory_ids.MIGRATING
        if broker is None or len(broker.directories) > 1:
            return directory_ids.UNASSIGNED
        return broker.directories[0] if broker.directories else directory_ids.MIGRATING

    def can_lead(self, broker_id: int, partition: PartitionImage, *, assume_unfenced: bool = False) -> bool:
        """Active, and the replica's log directory works."""
        directory = partition.directory(broker_id)
        broker = self.image.brokers.by_id.get(broker_id)
        if broker is None or directory is None:
            return False
        is_active = broker.is_active or (assume_unfenced and not broker.in_controlled_shutdown)
        return is_active and directory_ids.is_online(directory, broker.directories)

    def topic_setting(self, topic: str, key: str) -> Value:
        configs = self.image.configs
        return effective_value(
            key, configs.of_topic(topic), configs.of_broker(self.node_id), configs.of_cluster(), self.config
        )

    def is_unclean_election_allowed(self, topic: str) -> bool:
        return bool(self.topic_setting(topic, "unclean.leader.election.enable"))

    def partition_record(self, topic_id: Uuid, partition_id: int, partition: PartitionImage) -> VersionedRecord:
        record = partition.record(topic_id, partition_id)
        if not features.has_directory_assignment(self.metadata_version):
            record.directories = ()
        return VersionedRecord(record, features.partition_version(self.metadata_version))

    def partition_records(
        self, topic_id: Uuid, partitions: Sequence[PartitionImage], first: int = 0
    ) -> list[VersionedRecord]:
        """The records of new partitions. There may be thousands, of which most are alike."""
        alike: dict[PartitionImage, VersionedRecord] = {}
        records = []
        for number, partition in enumerate(partitions, start=first):
            same = alike.get(partition)
            if same is None:
                same = alike[partition] = self.partition_record(topic_id, number, partition)
                records.append(same)
            else:
                record = like(same.message)
                record.partition_id = number  # type: ignore[attr-defined]
                records.append(VersionedRecord(record, same.version))
        return records

    def partition_change(self, record: PartitionChangeRecord) -> VersionedRecord:
        return VersionedRecord(record, features.partition_version(self.metadata_version))

    def partitions(self) -> Iterator[tuple[str, Uuid, int, PartitionImage]]:
        """Every partition with its topic's name and id."""
        for topic in self.image.topics.by_id.values():
            for partition_id, partition in topic.partitions.items():
                yield topic.name, topic.id, partition_id, partition
