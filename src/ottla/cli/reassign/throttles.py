"""What may be moved in a second: limits of brokers, and for which replicas of topics they count (KIP-73, KIP-113).

A replica that others copy from is limited as a leader's, one that is being made as a follower's. Which replicas these
are includes the moves that are under way already: the setting of a topic is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.cli.reassign.cluster_replicas import Replicas

if TYPE_CHECKING:
    from ottla.client.admin.replicas import PartitionReassignment
    from ottla.client.blocking.admin import Admin

BETWEEN_BROKERS: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_BETWEEN_DIRECTORIES: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"


class PartitionMove(NamedTuple):
    sources: frozenset[int]
    destinations: frozenset[int]


def partition_moves(
    proposed: Replicas, current: Replicas, under_way: Mapping[TopicPartition, PartitionReassignment]
) -> dict[TopicPartition, PartitionMove]:
    """The moves that are under way, and those that are to begin."""
    moves = {
        partition: PartitionMove(
            frozenset(move.replicas) - frozenset(move.adding_replicas), frozenset(move.adding_replicas)
        )
        for partition, move in under_way.items()
    }
    for partition, replicas in proposed.items():
        sources = moves[partition].sources if partition in moves else frozenset(current[partition])
        moves[partition] = PartitionMove(sources, frozenset(replicas) - sources)
    return moves


def topic_settings(moves: Mapping[TopicPartition, PartitionMove]) -> dict[str, dict[str, str]]:
    """Which replicas of each topic are limited."""
    return {
        topic: {
            LEADERS: ",".join(_entries(moves, topic, "sources")),
            FOLLOWERS: ",".join(_entries(moves, topic, "destinations")),
        }
        for topic in sorted({partition.topic for partition in moves})
    }


def limit_moves(admin: Admin, moves: Mapping[TopicPartition, PartitionMove], bytes_per_second: int) -> None:
    """Between brokers."""
    from ottla.client.admin.configs import ConfigResource

    brokers = sorted({broker for move in moves.values() for broker in move.sources | move.destinations})
    of_topics = {ConfigResource.topic(topic): settings for topic, settings in topic_settings(moves).items()}
    admin.incremental_alter_configs(of_topics).raise_first()
    set_rates(admin, brokers, dict.fromkeys(BETWEEN_BROKERS, str(bytes_per_second)))
    print(f"The inter-broker throttle limit was set to {bytes_per_second} B/s")


def limit_directory_moves(admin: Admin, brokers: Iterable[int], bytes_per_second: int) -> None:
    set_rates(admin, brokers, {_BETWEEN_DIRECTORIES: str(bytes_per_second)})
    print(f"The replica-alter-dir throttle limit was set to {bytes_per_second} B/s")


def clear_throttles(admin: Admin, target: Replicas) -> None:
    """Of all brokers that are up or in the assignment, and of the topics in it."""
    from ottla.client.admin.configs import ConfigResource

    brokers = {node.id for node in admin.describe_cluster().nodes}
    brokers |= {broker for replicas in target.values() for broker in replicas}
    print(f"Clearing broker-level throttles on broker{_plural(brokers)} {','.join(map(str, sorted(brokers)))}")
    set_rates(admin, brokers, dict.fromkeys((*BETWEEN_BROKERS, _BETWEEN_DIRECTORIES)))
    topics = sorted({partition.topic for partition in target})
    print(f"Clearing topic-level throttles on topic{_plural(topics)} {','.join(topics)}")
    cleared: dict[str, str | None] = dict.fromkeys((LEADERS, FOLLOWERS))
    admin.incremental_alter_configs({ConfigResource.topic(topic): cleared for topic in topics}).raise_first()


def _entries(moves: Mapping[TopicPartition, PartitionMove], topic: str, role: str) -> list[str]:
    return sorted(
        f"{partition.partition}:{broker}"
        for partition, move in moves.items()
        if partition.topic == topic
        for broker in getattr(move, role)
    )


def set_rates(admin: Admin, brokers: Iterable[int], settings: Mapping[str, str | None]) -> None:
    """The same for each of these brokers."""
    from ottla.client.admin.configs import ConfigResource

    changes = {ConfigResource.broker(broker): settings for broker in sorted(brokers)}
    admin.incremental_alter_configs(changes).raise_first()


def _plural(things: set[int] | list[str]) -> str:
    return "" if len(things) == 1 else "s"
