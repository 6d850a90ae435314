"""Descriptions of topics as kafka-topics prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.client.admin.topics import PartitionDescription, TopicDescription


class Reassigned(NamedTuple):
    """What becomes of a partition's replicas while it moves."""

    replicas: Sequence[int]
    adding: Sequence[int]
    removing: Sequence[int]


class Wanted(NamedTuple):
    """Which lines were asked for. A filter leaves the lines of topics out."""

    topics: bool = True
    partitions: bool = True
    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    @property
    def has_filter(self) -> bool:
        return self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr


class Overrides(NamedTuple):
    """Settings of a topic that are not the defaults, in the broker's order, and the one that the filters need."""

    values: Mapping[str, str | None]
    min_in_sync_replicas: int


def lines_of(
    topic: TopicDescription,
    overrides: Overrides,
    moves: Mapping[int, Reassigned],
    live_brokers: Iterable[int],
    wanted: Wanted,
) -> Iterator[str]:
    if wanted.topics and not wanted.has_filter and (wanted.partitions or overrides.values):
        yield _topic_line(topic, overrides, moves)
    if wanted.partitions:
        live = frozenset(live_brokers)
        for partition in topic.partitions:
            move = moves.get(partition.partition)
            if not wanted.has_filter or _is_wanted(partition, overrides.min_in_sync_replicas, move, live, wanted):
                yield _partition_line(topic.name, partition, move)


def json_of(
    topic: TopicDescription,
    overrides: Overrides,
    moves: Mapping[int, Reassigned],
    live_brokers: Iterable[int],
    wanted: Wanted,
) -> dict[str, object] | None:
    """The same for `--json`; None for a topic of which nothing was asked for."""
    live = frozenset(live_brokers)
    partitions = [
        _partition_json(one, moves.get(one.partition))
        for one in topic.partitions
        if wanted.partitions
        and (
            not wanted.has_filter
            or _is_wanted(one, overrides.min_in_sync_replicas, moves.get(one.partition), live, wanted)
        )
    ]
    if not partitions and (wanted.has_filter or not overrides.values):
        return None
    described: dict[str, object] = {"topic": topic.name, "topic_id": topic.topic_id, "configs": dict(overrides.values)}
    return described | {"partitions": partitions} if wanted.partitions else described


def _partition_json(partition: PartitionDescription, move: Reassigned | None) -> dict[str, object]:
    return {
        "partition": partition.partition,
        "leader": partition.leader,
        "replicas": partition.replicas,
        "in_sync_replicas": partition.in_sync_replicas,
        "eligible_leader_replicas": partition.eligible_leader_replicas,
        "last_known_eligible_leader_replicas": partition.last_known_eligible_leader_replicas,
        "adding_replicas": move.adding if move else [],
        "removing_replicas": move.removing if move else [],
    }


def _topic_line(topic: TopicDescription, overrides: Overrides, moves: Mapping[int, Reassigned]) -> str:
    first = topic.partitions[0]
    cells = [
        f"Topic: {topic.name}",
        *([] if topic.topic_id is None else [f"TopicId: {topic.topic_id}"]),
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {_replication_factor(first, moves.get(first.partition))}",
        "Configs: " + ",".join(f"{name}={value}" for name, value in overrides.values.items()),
    ]
    return "\t".join(cells)


def _partition_line(topic: str, partition: PartitionDescription, move: Reassigned | None) -> str:
    cells = [
        f"\tTopic: {topic}",
        f"Partition: {partition.partition}",
        f"Leader: {'none' if partition.leader is None else partition.leader}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.in_sync_replicas)}",
    ]
    if move is not None:
        cells += [f"Adding Replicas: {_ids(move.adding)}", f"Removing Replicas: {_ids(move.removing)}"]
    cells += [
        f"Elr: {_optional_ids(partition.eligible_leader_replicas)}",
        f"LastKnownElr: {_optional_ids(partition.last_known_eligible_leader_replicas)}",
    ]
    return "\t".join(cells)


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _optional_ids(ids: Sequence[int] | None) -> str:
    return "N/A" if ids is None else _ids(ids)


def _replication_factor(partition: PartitionDescription, move: Reassigned | None) -> int:
    """Of a partition that moves: how many replicas it has without those that are still to come."""
    if move is None or not set(partition.replicas) & {*move.adding, *move.removing}:
        return len(partition.replicas)
    return len(move.replicas) - len(move.adding)


def _is_wanted(
    partition: PartitionDescription, min_isr: int, move: Reassigned | None, live: frozenset[int], wanted: Wanted
) -> bool:
    in_sync = len(partition.in_sync_replicas)
    return (
        (wanted.under_replicated and _replication_factor(partition, move) > in_sync)
        or (wanted.unavailable and partition.leader not in live)
        or (wanted.under_min_isr and (partition.leader is None or in_sync < min_isr))
        or (wanted.at_min_isr and in_sync == min_isr)
    )
