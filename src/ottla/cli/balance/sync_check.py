"""Whether all is where it should be: replicas in sync, brokers up, controllers caught up. What is not has a name."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.cli.balance.cluster_load import registered_brokers

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

_NAMED: Final = 3
_FETCHED_WITHIN_MS: Final = 5000
"""A controller fetches from the leader of the quorum many times a second."""
_BEHIND_RECORDS: Final = 1000


def lagging_partitions(admin: "Admin") -> dict[TopicPartition, str]:
    """Partitions without a leader, or of which a replica is not in sync."""
    names = [one.name for one in admin.list_topics(include_internal=True)]
    found: dict[TopicPartition, str] = {}
    for topic in admin.describe_topics(names).succeeded.values() if names else ():
        for one in topic.partitions:
            if one.leader is None:
                found[TopicPartition(topic.name, one.partition)] = "no leader"
            elif missing := sorted(set(one.replicas) - set(one.in_sync_replicas)):
                out = ", ".join(map(str, missing))
                found[TopicPartition(topic.name, one.partition)] = f"not in sync on {out}"
    return found


def problems(admin: "Admin", *, brokers: Collection[int] = (), moving: Collection[TopicPartition] = ()) -> list[str]:
    """What is wrong now, shortly. `brokers` must be up; partitions that are `moving` may be behind."""
    found: list[str] = []
    up, fenced = registered_brokers(admin)
    down = sorted({*fenced, *brokers} - up.keys())
    if down:
        found.append(f"not up: {_listed([f'broker {broker}' for broker in down])}")
    lagging = {at: why for at, why in lagging_partitions(admin).items() if at not in set(moving)}
    if lagging:
        found.append(_listed([f"{at}: {why}" for at, why in sorted(lagging.items())]))
    found += _quorum_problems(admin)
    return found


def _quorum_problems(admin: "Admin") -> list[str]:
    from ottla.client.errors import KafkaError

    try:
        quorum = admin.describe_metadata_quorum()
    except KafkaError as problem:
        if problem.retriable:
            return [f"the quorum of controllers: {problem}"]
        return []  # of another kind, or not for this principal to see
    now_ms = max((voter.last_fetch_timestamp_ms or 0 for voter in quorum.voters), default=0)
    behind = [
        f"controller {voter.replica_id} does not fetch from controller {quorum.leader_id}"
        for voter in quorum.voters
        if voter.replica_id != quorum.leader_id and (voter.last_fetch_timestamp_ms or 0) < now_ms - _FETCHED_WITHIN_MS
    ]
    behind += [
        f"controller {voter.replica_id} is {quorum.high_watermark - voter.log_end_offset} records behind"
        for voter in quorum.voters
        if voter.log_end_offset < quorum.high_watermark - _BEHIND_RECORDS
    ]
    return [_listed(behind)] if behind else []


def _listed(items: list[str]) -> str:
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return "; ".join(items[:_NAMED]) + more
