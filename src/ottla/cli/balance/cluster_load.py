"""What the brokers of a cluster have: replicas with their sizes, traffic, leaders, and the room on their disks.

Traffic is measured by looking twice: how many offsets a partition has grown by, times how large its records are on
average. Brokers that are registered and not up are among them: a replica there is to be seen, and not to be put there.
"""

from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.cli.balance.proposing import BrokerPlace, PartitionLoad

if TYPE_CHECKING:
    from ottla.client.admin.topics import TopicDescription
    from ottla.client.blocking.admin import Admin


class ClusterLoad(NamedTuple):
    brokers: dict[int, BrokerPlace]
    """Those that are up."""
    fenced: frozenset[int]
    """Those that are registered and not up."""
    partitions: list[PartitionLoad]
    topics: "list[TopicDescription]"


def registered_brokers(admin: "Admin") -> tuple[dict[int, str | None], frozenset[int]]:
    """Racks of the brokers that are up, by id; and the ids of those that are registered and not up."""
    from ottla.client.errors import UnsupportedVersion

    try:
        cluster = admin.describe_cluster(include_fenced_brokers=True)
    except UnsupportedVersion:  # a broker before version 4.0
        cluster = admin.describe_cluster()
    up = {node.id: node.rack for node in cluster.nodes if node.id not in cluster.fenced}
    return up, frozenset(cluster.fenced)


def described_topics(admin: "Admin", is_chosen: Callable[[str], bool]) -> "list[TopicDescription]":
    names = [one.name for one in admin.list_topics(include_internal=True) if is_chosen(one.name)]
    return list(admin.describe_topics(names).succeeded.values()) if names else []


def read_load(admin: "Admin", is_chosen: Callable[[str], bool], sample_s: float) -> ClusterLoad:
    """Of the chosen topics. Takes `sample_s` seconds to see their traffic; without traffic if that is 0."""
    racks, fenced = registered_brokers(admin)
    topics = described_topics(admin, is_chosen)
    found = admin.describe_log_dirs(sorted(racks))
    sizes: dict[TopicPartition, int] = {}
    brokers: dict[int, BrokerPlace] = {}
    for broker, rack in racks.items():
        directories = found[broker] if broker not in found.errors else {}
        free = total = 0
        is_known = bool(directories)
        for directory in directories.values():
            is_known = is_known and directory.usable_bytes is not None and directory.total_bytes is not None
            free += directory.usable_bytes or 0
            total += directory.total_bytes or 0
            for at, replica in directory.replicas.items():
                if not replica.is_future:
                    sizes[at] = max(sizes.get(at, 0), replica.size_bytes)
        brokers[broker] = BrokerPlace(broker, rack, free if is_known else None, total if is_known else None)
    traffic = _traffic(admin, topics, sizes, sample_s) if sample_s > 0 else {}
    partitions = [
        PartitionLoad(at, one.replicas, sizes.get(at, 0), traffic.get(at, 0.0))
        for topic in topics
        for one in topic.partitions
        for at in (TopicPartition(topic.name, one.partition),)
    ]
    return ClusterLoad(brokers, fenced, sorted(partitions), topics)


def _traffic(
    admin: "Admin", topics: "list[TopicDescription]", sizes: dict[TopicPartition, int], sample_s: float
) -> dict[TopicPartition, float]:
    from ottla.client.admin.records import OffsetSpec

    led = [
        TopicPartition(topic.name, one.partition)
        for topic in topics
        for one in topic.partitions
        if one.leader is not None
    ]
    if not led:
        return {}

    def offsets(spec: OffsetSpec) -> dict[TopicPartition, int]:
        listed = admin.list_offsets(dict.fromkeys(led, spec)).succeeded
        return {at: one.offset or 0 for at, one in listed.items()}

    first, before, began_s = offsets(OffsetSpec.EARLIEST), offsets(OffsetSpec.LATEST), monotonic()
    sleep(sample_s)
    after, took_s = offsets(OffsetSpec.LATEST), monotonic() - began_s
    found: dict[TopicPartition, float] = {}
    for at in after.keys() & before.keys() & first.keys():
        records = max(after[at] - first[at], 1)
        found[at] = (after[at] - before[at]) * sizes.get(at, 0) / records / took_s
    return found
