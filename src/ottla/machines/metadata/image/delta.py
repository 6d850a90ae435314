"""What a batch of records changed, for brokers to act on without comparing whole images.

A delta says which things changed, and of partitions and deleted topics what they were before; what they are now is in
the image. Things that were made and removed again within one delta leave no trace in it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ottla.base.ids import Uuid

if TYPE_CHECKING:  # the images fill deltas, and so import this module
    from ottla.machines.metadata.image.configs_image import ConfigResource
    from ottla.machines.metadata.image.metadata_image import MetadataImage
    from ottla.machines.metadata.image.partition_image import PartitionImage
    from ottla.machines.metadata.image.quotas_image import QuotaEntity
    from ottla.machines.metadata.image.topics_image import TopicImage


KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class MetadataDelta:
    """What has changed in an image, by the keys of what it was about."""

    def __init__(self) -> None:
        self.topics_created: dict[Uuid, TopicImage] = {}
        self.topics_deleted: dict[Uuid, TopicImage] = {}
        """The topics as they were, partitions included."""
        self.partitions: dict[tuple[Uuid, int], PartitionImage | None] = {}
        """Changed partitions as they were before the delta; None for a new one."""
        self.configs: set[ConfigResource] = set()
        self.brokers: set[int] = set()
        self.controllers: set[int] = set()
        self.features: set[str] = set()
        self.quotas: set[QuotaEntity] = set()
        self.producer_ids = False
        self.acls: set[Uuid] = set()
        self.scram_users: set[str] = set()
        self.tokens: set[str] = set()

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetadataDelta) and vars(self) == vars(other)

    def note_partition(self, topic_id: Uuid, partition_id: int, before: "PartitionImage | None") -> None:
        """Only the first change of a partition in a delta knows what it was before."""
        self.partitions.setdefault((topic_id, partition_id), before)

    def note_topic_deleted(self, topic: "TopicImage") -> None:
        before = {
            number: self.partitions.pop((topic.id, number), partition) for number, partition in topic.partitions.items()
        }
        if self.topics_created.pop(topic.id, None) is None:
            topic.partitions = {number: partition for number, partition in before.items() if partition is not None}
            self.topics_deleted[topic.id] = topic

    def partition_changes(self, image: "MetadataImage") -> Iterator["PartitionChange"]:
        """Partitions that are new or not as before, in topics that still exist. `image` is the one after the delta."""
        for (topic_id, partition_id), before in self.partitions.items():
            topic = image.topics.by_id[topic_id]
            yield PartitionChange(topic, partition_id, before, topic.partitions[partition_id])


class PartitionChange(NamedTuple):
    topic: "TopicImage"
    partition_id: int
    before: "PartitionImage | None"
    after: "PartitionImage"


def delta_between(before: "MetadataImage", after: "MetadataImage") -> MetadataDelta:
    """The delta that leads from one image to another: after loading a snapshot, or all of the log at start."""
    delta = MetadataDelta()
    old_topics, new_topics = before.topics.by_id, after.topics.by_id
    delta.topics_deleted = {id: topic for id, topic in old_topics.items() if id not in new_topics}
    for topic in new_topics.values():
        old = old_topics.get(topic.id)
        if old is None:
            delta.topics_created[topic.id] = topic
        for partition_id, partition in topic.partitions.items():
            was = old.partitions.get(partition_id) if old else None
            if was != partition:
                delta.partitions[topic.id, partition_id] = was
    delta.configs = _differing(before.configs.by_resource, after.configs.by_resource)
    delta.brokers = _differing(before.brokers.by_id, after.brokers.by_id)
    delta.controllers = _differing(before.brokers.controllers, after.brokers.controllers)
    delta.features = _differing(before.features.levels, after.features.levels)
    delta.quotas = _differing(before.quotas.by_entity, after.quotas.by_entity)
    delta.producer_ids = before.producer_ids.next_producer_id != after.producer_ids.next_producer_id
    delta.acls = _differing(before.security.acls, after.security.acls)
    delta.scram_users = {
        user for _, user in _differing(before.security.scram_credentials, after.security.scram_credentials)
    }
    delta.tokens = _differing(before.security.tokens, after.security.tokens)
    return delta


def _differing(before: dict[KeyT, ValueT], after: dict[KeyT, ValueT]) -> set[KeyT]:
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
