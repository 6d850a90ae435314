"""A newcomer's share of a target that was divided evenly, without looking at every member.

When hundreds of members join one after the other, each of them gets a target, and all others with it. But where all
read the same topics and the target is even, only the newcomer's share moves: the few partitions that it gets, taken
from the members that have most. The group knows which they are (`target_sizes`); so a join costs what moves, and not
what there is. Anything else (a member has gone, a topic has grown, subscriptions differ) is divided anew for everybody.
"""

from collections.abc import Mapping
from itertools import islice

from ottla.base.ids import Uuid
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.member import Target


def with_newcomer(
    group: ConsumerGroup, member_id: str, partition_counts: Mapping[Uuid, int]
) -> dict[str, Target] | None:
    """The targets that change; None if the group's target is not one from which a share can simply be taken.

    As even as `assignors.assign_uniformly` makes it: everybody has `share` partitions, and `extra` members one more.
    """
    if not group.has_even_target or member_id in group.target or len(group.target) != len(group.members):
        return None
    if group.target_topics != {id: count for id, count in partition_counts.items() if count}:
        return None
    share, extra = divmod(sum(partition_counts.values()), len(group.members) + 1)
    if min(group.target_sizes, default=0) < share:
        return None
    changed: dict[str, Target] = {}
    moved: dict[Uuid, frozenset[int]] = {}
    for loser, keeps in _losers(group, share, extra):
        kept, lost = _divided(group.target[loser], keeps)
        changed[loser] = kept
        for topic_id, indexes in lost.items():
            moved[topic_id] = moved.get(topic_id, frozenset()) | indexes
    changed[member_id] = moved
    return changed


def _losers(group: ConsumerGroup, share: int, extra: int) -> list[tuple[str, int]]:
    """The members that have more than they may keep, and how much they keep. The largest keep one more than others."""
    found: list[tuple[str, int]] = []
    for size in sorted((size for size in group.target_sizes if size > share), reverse=True):
        members = group.target_sizes[size]
        keep_more = min(extra, len(members))
        extra -= keep_more
        if size > share + 1:
            found += [(member_id, share + 1) for member_id in islice(members, keep_more)]
        found += [(member_id, share) for member_id in islice(members, keep_more, None)]
    return found


def _divided(target: Target, keeps: int) -> tuple[Target, Target]:
    """The first so many partitions, and the rest."""
    kept: dict[Uuid, frozenset[int]] = {}
    lost: dict[Uuid, frozenset[int]] = {}
    for topic_id, indexes in target.items():
        ordered = sorted(indexes)
        first, rest = ordered[:keeps], ordered[keeps:]
        keeps -= len(first)
        if first:
            kept[topic_id] = frozenset(first)
        if rest:
            lost[topic_id] = frozenset(rest)
    return kept, lost
