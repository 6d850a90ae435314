"""Which replicas the partitions of a cluster have, and in which directories they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ottla.base.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin.log_dirs import TopicPartitionReplica
    from ottla.client.admin.topics import TopicDescription
    from ottla.client.blocking.admin import Admin

Replicas: TypeAlias = Mapping[TopicPartition, tuple[int, ...]]
"""Broker ids of each partition, the preferred leader first."""


def replicas_of_topics(admin: Admin, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Raises `UnknownTopicOrPartition` for a topic that is not there."""
    from ottla.client.errors import UnknownTopicOrPartition

    described = admin.describe_topics(topics)
    for topic, error in described.errors.items():
        if isinstance(error, UnknownTopicOrPartition):
            raise UnknownTopicOrPartition(f"Topic {topic} not found.")
        raise error
    return _by_partition(described.values())


def replicas_of_partitions(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Raises `UnknownTopicOrPartition` for a partition that is not there."""
    from ottla.client.errors import UnknownTopicOrPartition

    wanted = list(partitions)
    found = replicas_of_topics(admin, {partition.topic for partition in wanted})
    if missing := sorted(set(wanted) - found.keys()):
        raise UnknownTopicOrPartition(f"Unable to find partition: {', '.join(map(str, missing))}")
    return {partition: found[partition] for partition in wanted}


def replicas_if_there(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """A partition that is not there has no replicas."""
    from ottla.client.errors import UnknownTopicOrPartition

    wanted = list(partitions)
    described = admin.describe_topics({partition.topic for partition in wanted})
    for error in described.errors.values():
        if not isinstance(error, UnknownTopicOrPartition):
            raise error
    found = _by_partition(described.succeeded.values())
    return {partition: found.get(partition, ()) for partition in wanted}


def directories_of(admin: Admin, replicas: Replicas) -> dict[TopicPartitionReplica, str]:
    """The directory of each replica whose broker is up and has it."""
    from ottla.client.admin.log_dirs import TopicPartitionReplica

    up = {node.id for node in admin.describe_cluster().nodes}
    asked = [
        TopicPartitionReplica(*partition, broker)
        for partition, brokers in replicas.items()
        for broker in brokers
        if broker in up
    ]
    places = admin.describe_replica_log_dirs(asked).raise_first()
    return {replica: place.current_path for replica, place in places.items() if place.current_path is not None}


def _by_partition(topics: Iterable[TopicDescription]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition(topic.name, one.partition): one.replicas for topic in topics for one in topic.partitions}
