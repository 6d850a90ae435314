"""What clients name: partitions, places in them, and the brokers that hold them. All are plain tuples."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.base.ids import TopicPartition as TopicPartition


class OffsetAndMetadata(NamedTuple):
    """A place in a partition as a group commits it: the offset of the next record to read."""

    offset: int
    metadata: str = ""
    """Anything that the application wants to keep with the offset."""
    leader_epoch: int | None = None
    """Epoch of the last record that was read, if it is known; so that a cut log is noticed (KIP-320)."""


def with_epoch(place: OffsetAndMetadata, known: OffsetAndMetadata | None) -> OffsetAndMetadata:
    """With the leader epoch that is known of the same offset, if it has none of its own.

    Applications commit numbers. But one who goes on from an offset with an epoch is not misled by a leader that was
    deposed before that record: its log may end earlier, which is no reason to begin anew (KIP-320).
    """
    if place.leader_epoch is not None or known is None or known.offset != place.offset:
        return place
    return place._replace(leader_epoch=known.leader_epoch)


class OffsetAndTimestamp(NamedTuple):
    """A record that was found by its time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int | None = None


class RecordMetadata(NamedTuple):
    """Where a record was written."""

    topic: str
    partition: int
    offset: int | None
    """None if the broker was not asked to say (`acks=0`)."""
    timestamp_ms: int | None
    """The record's time as the log has it; None if neither producer nor broker set one."""
    serialized_key_size: int = -1
    """Bytes; -1 if there is no key."""
    serialized_value_size: int = -1
    """Bytes; -1 if there is no value."""


class Broker(NamedTuple):
    """One node of the cluster, and where clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.id} rack: {self.rack})"


class PartitionInfo(NamedTuple):
    """One partition of a topic as clients see it. Replicas are broker ids, the preferred leader first."""

    topic: str
    partition: int
    leader: int | None
    """None while no replica leads."""
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """The same, as requests have them: under their topics."""
    grouped: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        grouped.setdefault(partition.topic, []).append(partition)
    return grouped
