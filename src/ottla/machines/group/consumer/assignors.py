"""Dividing partitions among members, on the coordinator.

`range`: in each topic, members in order get neighbouring partitions, as many as their share. Members with the same
subscription get the same numbers in all topics, which is what joins want.

`uniform`: everybody gets as many partitions as anybody else, as far as subscriptions allow, and keeps what it had as
far as that allows. Where all members read the same topics (most groups), one pass does it. Otherwise partitions are
moved one by one to the member that has fewest, as long as that makes the group more even.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.group.consumer.member import NO_TARGET, Target


class Candidate(NamedTuple):
    """A member to be given partitions of `topics`; `target` is what it was to have so far."""

    member_id: str
    instance_id: str | None
    topics: frozenset[Uuid]
    target: Target = NO_TARGET


Assignor = Callable[[Sequence[Candidate], Mapping[Uuid, int]], dict[str, Target]]
"""From members, and the number of partitions of each topic, to what each member is to have."""

_Place = tuple[Uuid, int]


def assign_range(members: Sequence[Candidate], partition_counts: Mapping[Uuid, int]) -> dict[str, Target]:
    ordered = sorted(members, key=_range_order)
    targets: dict[str, dict[Uuid, frozenset[int]]] = {member.member_id: {} for member in members}
    for topic_id, count in partition_counts.items():
        readers = [member for member in ordered if topic_id in member.topics]
        start = 0
        for position, member in enumerate(readers):
            share, extra = divmod(count, len(readers))
            end = start + share + (position < extra)
            if end > start:
                targets[member.member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(targets)


def _range_order(member: Candidate) -> tuple[bool, str]:
    """Static members come first, by their instance: so they keep their place when their id changes."""
    return (True, member.member_id) if member.instance_id is None else (False, member.instance_id)


def assign_uniformly(members: Sequence[Candidate], partition_counts: Mapping[Uuid, int]) -> dict[str, Target]:
    """A member that keeps what it had, and gets nothing else, gets the same object: most of a large group do."""
    if not members:
        return {}
    if all(member.topics is members[0].topics or member.topics == members[0].topics for member in members):
        return _divide_evenly(members, partition_counts)
    return {member_id: _target(places) for member_id, places in _balance(members, partition_counts).items()}


def _divide_evenly(members: Sequence[Candidate], partition_counts: Mapping[Uuid, int]) -> dict[str, Target]:
    free = {topic_id: set(range(partition_counts.get(topic_id, 0))) for topic_id in sorted(members[0].topics)}
    share, extra = divmod(sum(map(len, free.values())), len(members))
    targets: dict[str, Target] = {}
    sizes: dict[str, int] = {}
    for member in members:
        kept = targets[member.member_id] = _take_kept(member.target, free)
        sizes[member.member_id] = sum(map(len, kept.values()))
    # Who has most is the first to have one more than others, so that least is taken away.
    more = frozenset(sorted(sizes, key=sizes.__getitem__, reverse=True)[:extra])
    lacking: list[tuple[str, int]] = []
    for member_id, size in sizes.items():
        lacks = share + (member_id in more) - size
        if lacks < 0:
            places = _places(targets[member_id])
            targets[member_id] = _target(places[:lacks])
            for topic_id, index in places[lacks:]:
                free[topic_id].add(index)
        elif lacks:
            lacking.append((member_id, lacks))
    left = iter([(topic_id, index) for topic_id, indexes in free.items() for index in sorted(indexes)])
    for member_id, lacks in lacking:
        targets[member_id] = _target([*_places(targets[member_id]), *islice(left, lacks)])
    return targets


def _take_kept(target: Target, free: Mapping[Uuid, set[int]]) -> Target:
    """What a member had and nobody before it has kept, taken out of what is free. All of it, almost always."""
    for topic_id, indexes in target.items():
        if topic_id not in free or not free[topic_id].issuperset(indexes):
            target = {id: own for id, indexes in target.items() if (own := indexes & free.get(id, frozenset()))}
            break
    for topic_id, indexes in target.items():
        free[topic_id].difference_update(indexes)
    return target


def _places(topics: Target) -> list[_Place]:
    return [(topic_id, index) for topic_id, indexes in topics.items() for index in sorted(indexes)]


def _balance(members: Sequence[Candidate], partition_counts: Mapping[Uuid, int]) -> dict[str, list[_Place]]:
    has = _kept(members, partition_counts)
    readers: dict[Uuid, list[str]] = {}
    for member in members:
        for topic_id in member.topics:
            readers.setdefault(topic_id, []).append(member.member_id)
    taken = {place for own in has.values() for place in own}
    # Topics with few readers first: the others have more choice.
    for topic_id in sorted(readers, key=lambda id: (len(readers[id]), id)):
        for index in range(partition_counts.get(topic_id, 0)):
            if (topic_id, index) not in taken:
                has[_least(readers[topic_id], has)].append((topic_id, index))
    while _move_one(readers, has):
        pass
    return has


def _kept(members: Sequence[Candidate], partition_counts: Mapping[Uuid, int]) -> dict[str, list[_Place]]:
    """What members had and may keep, each partition once."""
    free = {topic_id: set(range(count)) for topic_id, count in partition_counts.items()}
    return {
        member.member_id: _places(
            _take_kept({id: indexes for id, indexes in member.target.items() if id in member.topics}, free)
        )
        for member in members
    }


def _move_one(readers: dict[Uuid, list[str]], has: dict[str, list[_Place]]) -> bool:
    """Moves a partition from somebody to somebody with at least two fewer. Every move makes the group more even."""
    for member_id in sorted(has, key=lambda member_id: -len(has[member_id])):
        own = has[member_id]
        for place in reversed(own):
            other = _least(readers[place[0]], has)
            if len(has[other]) + 1 < len(own):
                own.remove(place)
                has[other].append(place)
                return True
    return False


def _least(member_ids: Sequence[str], has: dict[str, list[_Place]]) -> str:
    return min(member_ids, key=lambda member_id: len(has[member_id]))


def _target(places: Sequence[_Place]) -> Target:
    topics: dict[Uuid, set[int]] = {}
    for topic_id, index in places:
        topics.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}


UNIFORM = "uniform"
ASSIGNORS: Mapping[str, Assignor] = {UNIFORM: assign_uniformly, "range": assign_range}
