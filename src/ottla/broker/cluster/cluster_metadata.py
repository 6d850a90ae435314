"""The cluster as its committed metadata tells of it: what handlers and partitions look things up in.

The image is changed by committed records alone; `on_metadata` says that it has been. A topic's settings are its own
from the image, over this node's.
"""

from typing import TYPE_CHECKING

from ottla.base.ids import Uuid
from ottla.broker.cluster.described_partitions import DescribedPartitions
from ottla.broker.partitions.topic_settings import SettingsOfTopics, TopicSettings
from ottla.config.parse import Values
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage

if TYPE_CHECKING:
    from ottla.runtime.metadata.quorum.quorum_view import QuorumView


class ClusterMetadata:
    """`offset` is that of the last committed record in the image; -1 while no quorum is known."""

    def __init__(self, image: MetadataImage, settings_of_topics: SettingsOfTopics) -> None:
        self.image = image
        self.offset = -1
        self.described_partitions = DescribedPartitions()
        self.quorum: QuorumView | None = None
        self._settings_of_topics = settings_of_topics

    def on_metadata(self, delta: MetadataDelta) -> None:
        """`image` has been changed by committed records, and `delta` says where."""
        self.note_offset()
        self.described_partitions.on_metadata(delta)

    def note_offset(self) -> None:
        """The image is as far as the log is committed whenever the broker gets it."""
        if self.quorum is not None:
            self.offset = self.quorum.high_watermark - 1

    def on_node_settings(self, values: Values) -> None:
        """The settings behind those of every topic have changed (KIP-226)."""
        self._settings_of_topics.on_broker_settings(values)

    def active_epoch(self, broker_id: int) -> int | None:
        """The epoch of a broker that is neither fenced nor about to stop; None of any other."""
        broker = self.image.brokers.by_id.get(broker_id)
        return broker.epoch if broker is not None and broker.is_active else None

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self.image.brokers.by_id.get(broker_id)
        return broker is not None and not broker.fenced

    def rack_of(self, broker_id: int, listener: str) -> str | None:
        """Where a broker stands that clients of a listener can reach; None if they cannot, or if it does not say."""
        broker = self.image.brokers.by_id.get(broker_id)
        is_there = broker is not None and not broker.fenced and broker.endpoint(listener) is not None
        return broker.rack if broker is not None and is_there else None

    def topic_settings(self, topic: str) -> TopicSettings:
        return self._settings_of_topics.of(self.image.configs.of_topic(topic))

    def topic_name(self, topic_id: Uuid) -> str | None:
        found = self.image.topics.by_id.get(topic_id)
        return found.name if found is not None else None

    def leader_of(self, topic: str, index: int) -> int | None:
        """The node that leads a partition, `NO_LEADER` while none does; None if the cluster has no such partition."""
        partition = self.image.topics.partition(topic, index)
        return partition.leader if partition is not None else None

    def knows(self, topic: str, index: int) -> bool:
        """Whether the cluster has such a partition."""
        found = self.image.topics.by_name.get(topic)
        return found is not None and index in found.partitions


# Who this node is in its cluster.


class NodeIdentity:
    """`broker_epoch` is that of the last registration, -1 before the first. `directory_ids` are those of the log
    directories that are online, by path.
    """

    __slots__ = ("broker_epoch", "cluster_id", "directory_ids", "node_id")

    def __init__(self, node_id: int, cluster_id: str, directory_ids: dict[str, Uuid] | None = None) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.broker_epoch = -1
        self.directory_ids = directory_ids or {}
