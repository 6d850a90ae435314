"""Topics and their partitions, by id and by name."""

from collections.abc import Iterator
from typing import Any

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_errors import CorruptMetadataError
from ottla.machines.metadata.image.partition_image import PartitionImage, partition_image
from ottla.wire.message import Message
from ottla.wire.messages import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class TopicImage:
    """A topic. `partitions` is keyed by partition number, from 0 without gaps."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, id: Uuid) -> None:
        self.name = name
        self.id = id
        self.partitions: dict[int, PartitionImage] = {}

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {len(self.partitions)} partitions)"


class TopicsImage:
    """New partitions with the same replicas are one object until they change: an image says nothing of the number."""

    __slots__ = ("_new", "_shared", "_unified", "by_id", "by_name")

    def __init__(self) -> None:
        self.by_id: dict[Uuid, TopicImage] = {}
        self.by_name: dict[str, TopicImage] = {}
        self._shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._new: dict[tuple[Any, ...], PartitionImage] = {}
        self._unified: dict[str, tuple[str, ...]] = {}

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.by_id.values())

    def partition(self, topic: str, partition_id: int) -> PartitionImage | None:
        found = self.by_name.get(topic)
        return found.partitions.get(partition_id) if found else None

    def colliding_with(self, name: str) -> str | None:
        """A topic whose name differs from this one in '.' and '_' alone: both would have the same metrics."""
        return next(iter(self._unified.get(_unify(name), ())), None)

    def replay_topic(self, record: TopicRecord, delta: MetadataDelta) -> None:
        if record.name in self.by_name or record.topic_id in self.by_id:
            raise CorruptMetadataError(f"topic {record.name} is created twice")
        topic = TopicImage(record.name, record.topic_id)
        self._add(topic)
        delta.topics_created[topic.id] = topic

    def replay_partition(self, record: PartitionRecord, delta: MetadataDelta) -> None:
        topic = self._topic(record.topic_id)
        delta.note_partition(topic.id, record.partition_id, topic.partitions.get(record.partition_id))
        topic.partitions[record.partition_id] = self._image_of(record)

    def _image_of(self, record: PartitionRecord) -> PartitionImage:
        if record.partition_epoch or record.leader_epoch or record.eligible_leader_replicas or record.last_known_elr:
            return partition_image(record, self._share)
        replicas, isr, directories = tuple(record.replicas), tuple(record.isr), tuple(record.directories)
        moving = tuple(record.removing_replicas), tuple(record.adding_replicas)
        key = replicas, isr, record.leader, record.leader_recovery_state, directories, moving
        image = self._new.get(key)
        if image is None:
            image = self._new[key] = partition_image(record, self._share)
        return image

    def replay_change(self, record: PartitionChangeRecord, delta: MetadataDelta) -> None:
        topic = self._topic(record.topic_id)
        before = topic.partitions.get(record.partition_id)
        if before is None:
            raise CorruptMetadataError(f"a change of {topic.name}-{record.partition_id}, which does not exist")
        delta.note_partition(topic.id, record.partition_id, before)
        topic.partitions[record.partition_id] = before.merge(record, self._share)

    def replay_remove(self, record: RemoveTopicRecord, delta: MetadataDelta) -> TopicImage:
        topic = self._topic(record.topic_id)
        del self.by_id[topic.id], self.by_name[topic.name]
        unified = _unify(topic.name)
        others = tuple(name for name in self._unified.pop(unified, ()) if name != topic.name)
        if others:
            self._unified[unified] = others
        delta.note_topic_deleted(topic)
        return topic

    def replay_clear_elr(self, record: ClearElrRecord, delta: MetadataDelta) -> None:
        """Of one topic, or with no name of all: `min.insync.replicas` changed, which the ELR was computed with."""
        if record.topic_name and record.topic_name not in self.by_name:
            raise CorruptMetadataError(f"the ELR of {record.topic_name} is cleared, which does not exist")
        topics = [self.by_name[record.topic_name]] if record.topic_name else list(self.by_id.values())
        for topic in topics:
            for partition_id, before in topic.partitions.items():
                after = before.without_elr()
                if after is not before:
                    delta.note_partition(topic.id, partition_id, before)
                    topic.partitions[partition_id] = after

    def records(self, *, with_elr: bool, with_directories: bool) -> Iterator[Message]:
        """Partitions follow their topic. What the cluster's metadata.version does not know of is left out.

        Eligible leaders are recorded while that feature is off, too: the log may have some from before, and who begins
        with a snapshot must know no less than who has replayed the log.
        """
        for topic in self.by_id.values():
            yield TopicRecord(name=topic.name, topic_id=topic.id)
            for partition_id in sorted(topic.partitions):
                record = topic.partitions[partition_id].record(topic.id, partition_id)
                if not with_elr:
                    record.eligible_leader_replicas = record.last_known_elr = None
                if not with_directories:
                    record.directories = ()
                yield record

    def copy(self) -> "TopicsImage":
        copied = TopicsImage()
        for topic in self.by_id.values():
            twin = TopicImage(topic.name, topic.id)
            twin.partitions = dict(topic.partitions)
            copied._add(twin)
        copied._shared = dict(self._shared)
        copied._new = dict(self._new)
        return copied

    def _add(self, topic: TopicImage) -> None:
        self.by_id[topic.id] = self.by_name[topic.name] = topic
        if "." in topic.name or "_" in topic.name:
            unified = _unify(topic.name)
            self._unified[unified] = (*self._unified.get(unified, ()), topic.name)

    def _topic(self, topic_id: Uuid) -> TopicImage:
        topic = self.by_id.get(topic_id)
        if topic is None:
            raise CorruptMetadataError(f"a record about the topic with id {topic_id.hex()}, which does not exist")
        return topic

    def _share(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._shared.setdefault(items, items)


def _unify(name: str) -> str:
    return name.replace(".", "_")
