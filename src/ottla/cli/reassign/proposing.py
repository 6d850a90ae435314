"""A new assignment of topics over a list of brokers, placed as a controller places new topics.

A topic keeps its number of replicas, that of its first partition. Where the stripes begin is up to chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse
from ottla.cli.reassign.cluster_replicas import Replicas

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin
    from ottla.machines.metadata.controller.replica_placement import UsableBroker


def broker_ids(text: str) -> list[int]:
    """Of the option `--broker-list`. As Java splits, what is empty at the end does not count."""
    words = text.rstrip(",").split(",")
    for word in words:
        if not word.removeprefix("-").removeprefix("+").isdecimal():
            raise Terse(f'For input string: "{word}"')
    ids = [int(word) for word in words]
    if twice := sorted(broker for broker, times in Counter(ids).items() if times > 1):
        raise Terse(f"Broker list contains duplicate entries: {twice}")
    return ids


def usable_brokers(admin: Admin, ids: Sequence[int], *, by_rack: bool) -> list[UsableBroker]:
    """Those of the list that are up."""
    from ottla.machines.metadata.controller.replica_placement import UsableBroker

    nodes = [node for node in admin.describe_cluster().nodes if node.id in ids]
    if by_rack and len({node.rack is None for node in nodes}) > 1:
        raise Terse(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return [UsableBroker(node.id, node.rack if by_rack else None, fenced=False) for node in nodes]


def proposed(current: Replicas, brokers: Sequence[UsableBroker]) -> dict[TopicPartition, tuple[int, ...]]:
    import random

    from ottla.machines.metadata.controller.replica_placement import place
    from ottla.machines.metadata.refusal import Refusal

    by_topic: dict[str, list[TopicPartition]] = {}
    for partition in sorted(current):
        by_topic.setdefault(partition.topic, []).append(partition)
    assignment: dict[TopicPartition, tuple[int, ...]] = {}
    for partitions in by_topic.values():
        placed = place(len(partitions), len(current[partitions[0]]), brokers, random)
        if isinstance(placed, Refusal):
            raise Terse(str(placed.message))
        assignment |= dict(zip(partitions, placed, strict=True))
    return assignment
