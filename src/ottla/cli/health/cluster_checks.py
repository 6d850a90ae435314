"""What is wrong with a cluster, area by area, as any client with rights to look can see it. Apache Kafka's too.

An area that cannot be looked at, because the cluster does not serve the request or this principal may not ask, is a
note and no problem.
"""

from collections.abc import Callable, Iterable, Iterator
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.cli.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding
from ottla.cli.text_tables import counted, duration, size

if TYPE_CHECKING:
    from ottla.cli.records.connecting import Cluster
    from ottla.client.admin.topics import TopicDescription
    from ottla.client.blocking.admin import Admin

_NAMED: Final = 3
_QUORUM_SILENT_MS: Final = 3_000
"""A controller fetches twice a second; after two seconds without an answer it looks for another leader."""
_QUORUM_BEHIND: Final = 1_000
_LITTLE_ROOM, _NO_ROOM = 0.1, 0.03
_MOST_PARTITIONS: Final = 5_000
"""Whose producers are looked at for transactions that hang."""
_HANGING_AFTER_MS: Final = 15 * 60_000 + 5 * 60_000
"""The longest transaction that brokers allow by default, and Kafka's five minutes more."""
_SOON_S: Final = 14 * 86_400
_TLS_TIMEOUT_S: Final = 5.0


class Look(NamedTuple):
    """One look at a cluster. `late_s` is from when on a group is late."""

    cluster: "Cluster"
    admin: "Admin"
    late_s: float
    now_ms: int

    def topics(self) -> "list[TopicDescription]":
        names = [one.name for one in self.admin.list_topics(include_internal=True)]
        return list(self.admin.describe_topics(names).succeeded.values()) if names else []


def check_cluster(cluster: "Cluster", admin: "Admin", late_s: float) -> list[Finding]:
    """Raises `KafkaError` if the cluster cannot be reached."""
    look = Look(cluster, admin, late_s, int(time() * 1000))
    found = list(_nodes(look))
    topics = look.topics()
    areas: dict[str, Callable[[], Iterable[Finding]]] = {
        "quorum": lambda: _quorum(look),
        "partitions": lambda: _partitions(look, topics),
        "disks": lambda: _disks(look),
        "groups": lambda: _groups(look),
        "transactions": lambda: _transactions(look, topics),
        "certificates": lambda: _certificates(look),
        "features": lambda: _features(look),
    }
    for area, check in areas.items():
        found += _guarded(area, check)
    return found


def _guarded(area: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    from ottla.client.errors import KafkaError

    try:
        return list(check())
    except (KafkaError, TimeoutError) as problem:
        return [Finding(area, NOTE, f"could not be looked at: {problem}")]


def _named(names: Iterable[object]) -> str:
    listed = [str(name) for name in names]
    more = len(listed) - _NAMED
    return ", ".join(listed[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


# Areas


def _nodes(look: Look) -> Iterator[Finding]:
    from ottla.client.errors import UnsupportedVersion

    try:
        cluster = look.admin.describe_cluster(include_fenced_brokers=True)
    except UnsupportedVersion:
        cluster = look.admin.describe_cluster()
    up = [node for node in cluster.nodes if node.id not in cluster.fenced]
    what = f"{counted(len(up), 'broker')} of cluster {cluster.cluster_id}"
    if cluster.fenced:
        yield Finding(
            "nodes",
            PROBLEM,
            f"{what} up; fenced: {_named(f'broker {one}' for one in sorted(cluster.fenced))}",
            "Start them; a broker that is gone for good is taken out with `ottla node remove ID`.",
        )
    else:
        yield Finding("nodes", OK, f"{what} up")


def _quorum(look: Look) -> Iterator[Finding]:
    quorum = look.admin.describe_metadata_quorum()
    newest_ms = max((voter.last_fetch_timestamp_ms or 0 for voter in quorum.voters), default=0)
    end = max((voter.log_end_offset for voter in quorum.voters), default=0)
    silent = [
        voter.replica_id
        for voter in quorum.voters
        if voter.replica_id != quorum.leader_id and (voter.last_fetch_timestamp_ms or 0) < newest_ms - _QUORUM_SILENT_MS
    ]
    behind = [
        voter.replica_id
        for voter in quorum.voters
        if voter.replica_id not in silent and end - voter.log_end_offset > _QUORUM_BEHIND
    ]
    what = f"{counted(len(quorum.voters), 'controller')}, {quorum.leader_id} leads in epoch {quorum.leader_epoch}"
    if silent:
        left = len(quorum.voters) - len(silent) - (len(quorum.voters) // 2 + 1)
        more = "one more loss stops the cluster" if left <= 0 else f"{left} more may be lost"
        yield Finding(
            "quorum",
            PROBLEM,
            f"{what}; silent: {_named(silent)}; {more}",
            "Start them; one that is gone for good: `kafka-metadata-quorum remove-controller`.",
        )
    elif behind:
        yield Finding("quorum", WARNING, f"{what}; behind: {_named(behind)}", "See their logs and disks.")
    else:
        yield Finding("quorum", OK, what)


def _partitions(look: Look, topics: "list[TopicDescription]") -> Iterator[Finding]:
    offline, lagging = [], []
    for topic in topics:
        for one in topic.partitions:
            place = TopicPartition(topic.name, one.partition)
            if one.leader is None:
                offline.append(place)
            elif len(one.in_sync_replicas) < len(one.replicas):
                lagging.append((place, len(one.in_sync_replicas)))
    if offline:
        yield Finding(
            "offline",
            PROBLEM,
            f"{counted(len(offline), 'partition')} without a leader: {_named(offline)}",
            "Start the brokers of their ISR (`kafka-topics --describe --unavailable-partitions`).",
        )
    short = _under_min_isr(look, lagging)
    if short:
        yield Finding(
            "min ISR",
            PROBLEM,
            f"{counted(len(short), 'partition')} with too few replicas in sync, writes fail: {_named(short)}",
            "Start the brokers that are down (`kafka-topics --describe --under-min-isr-partitions`).",
        )
    if lagging:
        yield Finding(
            "replicas",
            PROBLEM,
            f"{counted(len(lagging), 'partition')} under-replicated: {_named(place for place, _ in lagging)}",
            "Mostly one broker is down, slow or full (`kafka-topics --describe --under-replicated-partitions`).",
        )
    if not offline and not lagging:
        count = sum(len(topic.partitions) for topic in topics)
        yield Finding(
            "partitions", OK, f"{counted(count, 'partition')} of {counted(len(topics), 'topic')}, all in sync"
        )


def _under_min_isr(look: Look, lagging: list[tuple[TopicPartition, int]]) -> list[TopicPartition]:
    from ottla.client.admin.configs import ConfigResource

    if not lagging:
        return []
    resources = {place.topic: ConfigResource.topic(place.topic) for place, _ in lagging}
    configs = look.admin.describe_configs({key: ["min.insync.replicas"] for key in resources.values()}).succeeded
    least = {
        topic: int(configs[resource]["min.insync.replicas"].value or 1)
        for topic, resource in resources.items()
        if resource in configs
    }
    return [place for place, in_sync in lagging if in_sync < least.get(place.topic, 1)]


def _disks(look: Look) -> Iterator[Finding]:
    failed, full, short = [], [], []
    count = 0
    advice = "Make room: lower retention, or `ottla balance` to brokers with more."
    for broker, directories in look.admin.describe_log_dirs().succeeded.items():
        for path, one in directories.items():
            count += 1
            name = f"broker {broker} {path}"
            if one.error is not None:
                failed.append(name)
            elif one.total_bytes and one.usable_bytes is not None:
                room = one.usable_bytes / one.total_bytes
                shown = f"{name} ({size(one.usable_bytes)} of {size(one.total_bytes)} free)"
                if room < _NO_ROOM:
                    full.append(shown)
                elif room < _LITTLE_ROOM:
                    short.append(shown)
    if failed:
        yield Finding("disks", PROBLEM, f"failed: {_named(failed)}", "Replace the disk, and restart the broker.")
    if full:
        yield Finding("disks", PROBLEM, f"full: {_named(full)}", advice)
    if short:
        yield Finding("disks", WARNING, f"little room: {_named(short)}", advice)
    if not failed and not full and not short:
        yield Finding("disks", OK, f"{counted(count, 'log directory').replace('directorys', 'directories')}, with room")


def _groups(look: Look) -> Iterator[Finding]:
    from ottla.cli.top.sampling import Wanted, take_sample
    from ottla.cli.top.unread_ages import UnreadAges

    sample = take_sample(look.admin, Wanted(internal=True))
    if not sample.groups:
        yield Finding("groups", OK, "no groups")
        return
    with look.cluster.consumer(enable_auto_commit=False, fetch_max_bytes=1 << 20) as consumer:
        times_ms = UnreadAges(consumer).look(sample)
    late: dict[str, float] = {}
    for group_id, group in sample.groups.items():
        ages = [look.now_ms - at for place in group.committed.items() if (at := times_ms.get(place)) is not None]
        if ages and max(ages) / 1000 > look.late_s:
            late[group_id] = max(ages) / 1000
    if late:
        worst = sorted(late, key=lambda one: -late[one])
        yield Finding(
            "groups",
            WARNING,
            f"{len(late)} of {counted(len(sample.groups), 'group')} late: "
            + _named(f"{one} ({duration(late[one])} behind)" for one in worst),
            "`ottla group describe GROUP` shows its members and partitions.",
        )
    else:
        yield Finding("groups", OK, f"{counted(len(sample.groups), 'group')}, none later than {duration(look.late_s)}")


def _transactions(look: Look, topics: "list[TopicDescription]") -> Iterator[Finding]:
    from ottla.cli.transactions.hanging import hanging_transactions

    places = [
        TopicPartition(topic.name, one.partition)
        for topic in topics
        for one in topic.partitions
        if one.leader is not None
    ]
    looked = places[:_MOST_PARTITIONS]
    hanging = hanging_transactions(look.admin, looked, None, _HANGING_AFTER_MS, look.now_ms)
    if hanging:
        yield Finding(
            "transactions",
            PROBLEM,
            f"{len(hanging)} hang: {_named(one.partition for one in hanging)}",
            "`kafka-transactions find-hanging` names them, `kafka-transactions abort` ends them.",
        )
    elif len(looked) < len(places):
        yield Finding("transactions", NOTE, f"none hangs in the first {len(looked):,} of {len(places):,} partitions")
    else:
        yield Finding("transactions", OK, "none hangs")


def _certificates(look: Look) -> Iterator[Finding]:
    if "SSL" not in str(look.cluster.setting("security.protocol") or "").upper():
        return
    import ssl

    from ottla.security.tls.distinguished_names import valid_until

    soon, over, count = [], [], 0
    for node in look.admin.describe_cluster().nodes:
        try:
            shown = ssl.get_server_certificate((node.host, node.port), timeout=_TLS_TIMEOUT_S)
            left_s = ssl.cert_time_to_seconds(valid_until(ssl.PEM_cert_to_DER_cert(shown))) - look.now_ms / 1000
        except (OSError, ValueError) as problem:
            yield Finding("certificates", NOTE, f"broker {node.id} shows none that can be read: {problem}")
            continue
        count += 1
        if left_s <= 0:
            over.append(f"broker {node.id}")
        elif left_s < _SOON_S:
            soon.append(f"broker {node.id} ({duration(left_s)})")
    advice = "Put new ones into the same files: brokers take them up without a restart."
    if over:
        yield Finding("certificates", PROBLEM, f"expired: {_named(over)}", advice)
    if soon:
        yield Finding("certificates", WARNING, f"expire soon: {_named(soon)}", advice)
    if count and not over and not soon:
        yield Finding("certificates", OK, f"{counted(count, 'certificate')}, valid for two weeks and more")


def _features(look: Look) -> Iterator[Finding]:
    """What brokers support differs while versions do."""
    by_support: dict[tuple[object, ...], list[int]] = {}
    finalized: dict[str, int] = {}
    for node in look.admin.describe_cluster().nodes:
        features = look.admin.describe_features(node_id=node.id)
        support = tuple(sorted((name, levels.low, levels.high) for name, levels in features.supported.items()))
        by_support.setdefault(support, []).append(node.id)
        finalized |= {name: levels.high for name, levels in features.finalized.items()}
    if len(by_support) > 1:
        kinds = "; ".join(f"brokers {', '.join(map(str, ids))}" for ids in by_support.values())
        yield Finding(
            "features",
            WARNING,
            f"brokers of different versions: {kinds}",
            "Finish the upgrade before features are raised (`kafka-features`).",
        )
    else:
        level = finalized.get("metadata.version")
        yield Finding("features", OK, "the same on all brokers" + (f"; metadata.version {level}" if level else ""))
