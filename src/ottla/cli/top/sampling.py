"""One look at the cluster: ends of partitions, sizes, and what groups have committed."""

import re
import time
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

_EARLIEST, _LATEST = -2, -1


class TopicSample(NamedTuple):
    partitions: int
    starts: dict[int, int]
    ends: dict[int, int]
    """By partition. One without a leader is in neither."""
    size_bytes: int | None
    """Of all replicas; None if brokers do not tell."""
    offline: int = 0
    under_replicated: int = 0


class GroupSample(NamedTuple):
    state: str
    members: int
    committed: dict[TopicPartition, int]


class Sample(NamedTuple):
    at_s: float
    """Of a clock that only goes forward; for differences."""
    brokers: int
    topics: dict[str, TopicSample]
    groups: dict[str, GroupSample]


class Wanted(NamedTuple):
    topic: re.Pattern[str] | None = None
    group: re.Pattern[str] | None = None
    internal: bool = False


def take_sample(admin: "Admin", wanted: Wanted) -> Sample:
    """Raises `KafkaError` when the cluster cannot be asked at all; what one topic or group refuses is left out."""
    names = [
        topic.name
        for topic in admin.list_topics(include_internal=wanted.internal)
        if wanted.topic is None or wanted.topic.search(topic.name)
    ]
    cluster = admin.describe_cluster()
    broker_ids = [node.id for node in cluster.nodes]
    return Sample(time.monotonic(), len(broker_ids), _topics(admin, names, broker_ids), _groups(admin, wanted))


def _topics(admin: "Admin", names: list[str], broker_ids: list[int]) -> dict[str, TopicSample]:
    described = admin.describe_topics(names).succeeded
    led = [
        TopicPartition(name, one.partition)
        for name, topic in described.items()
        for one in topic.partitions
        if one.leader is not None
    ]
    ends = admin.list_offsets(dict.fromkeys(led, _LATEST)).succeeded
    starts = admin.list_offsets(dict.fromkeys(led, _EARLIEST)).succeeded
    sizes = _sizes(admin, broker_ids)
    found: dict[str, TopicSample] = {}
    for name, topic in described.items():
        own = [TopicPartition(name, one.partition) for one in topic.partitions]
        found[name] = TopicSample(
            len(own),
            {one.partition: starts[one].offset or 0 for one in own if one in starts},
            {one.partition: ends[one].offset or 0 for one in own if one in ends},
            None if sizes is None else sum(sizes.get(one, 0) for one in own),
            sum(one.leader is None for one in topic.partitions),
            sum(len(one.in_sync_replicas) < len(one.replicas) for one in topic.partitions),
        )
    return found


def _sizes(admin: "Admin", broker_ids: list[int]) -> dict[TopicPartition, int] | None:
    try:
        brokers = admin.describe_log_dirs(broker_ids).succeeded
    except KafkaError:
        return None  # not allowed to see it
    sizes: dict[TopicPartition, int] = {}
    for directories in brokers.values():
        for directory in directories.values():
            for partition, replica in directory.replicas.items():
                sizes[partition] = sizes.get(partition, 0) + replica.size_bytes
    return sizes


def _groups(admin: "Admin", wanted: Wanted) -> dict[str, GroupSample]:
    ids = [
        listed.group_id
        for listed in admin.list_consumer_groups()
        if wanted.group is None or wanted.group.search(listed.group_id)
    ]
    if not ids:
        return {}
    described = admin.describe_consumer_groups(ids).succeeded
    committed = admin.list_consumer_group_offsets(list(described)).succeeded
    return {
        group_id: GroupSample(
            group.state.value,
            len(group.members),
            {
                partition: place.offset
                for partition, place in committed.get(group_id, {}).items()
                if place is not None and (wanted.topic is None or wanted.topic.search(partition.topic))
            },
        )
        for group_id, group in described.items()
    }
