"""Dividing partitions among members, on the coordinator.

`range`: in each topic, members in order get neighbouring partitions, as many as their share. Members with the same
subscription get the same numbers in all topics, which is what joins want.

`uniform`: everybody gets as many partitions as anybody else, as far as subscriptions allow, and keeps what it had as
far as that allows. Where all members read the same topics (most groups), one pass does it. Otherwise partitions are
moved one by one to whoever has fewest, as long as that makes the group more even.
"""

from collections.abc import Callable, Mapping, Sequence
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
    if not members:
        return {}
    is_homogeneous = all(member.topics == members[0].topics for member in members)
    divide = _divide_evenly if is_homogeneous else _balance
    has = divide(members, partition_counts, _kept(members, partition_counts))
    return {member_id: _target(places) for member_id, places in has.items()}


def _kept(members: Sequence[Candidate], partition_counts: Mapping[Uuid, int]) -> dict[str, list[_Place]]:
    """What members had and may keep, each partition once."""
    taken: set[_Place] = set()
    kept: dict[str, list[_Place]] = {}
    for member in members:
        places = [
            (topic_id, index)
            for topic_id, partitions in member.target.items()
            if topic_id in member.topics
            for index in sorted(partitions)
            if index < partition_counts.get(topic_id, 0) and (topic_id, index) not in taken
        ]
        taken.update(places)
        kept[member.member_id] = places
    return kept


def _divide_evenly(
    members: Sequence[Candidate], partition_counts: Mapping[Uuid, int], has: dict[str, list[_Place]]
) -> dict[str, list[_Place]]:
    places = [(id, index) for id in sorted(members[0].topics) for index in range(partition_counts.get(id, 0))]
    share, extra = divmod(len(places), len(members))
    # Who has most is the first to have one more than others, so that least is taken away.
    quota = {
        member_id: share + (position < extra)
        for position, member_id in enumerate(sorted(has, key=lambda member_id: -len(has[member_id])))
    }
    for member_id, own in has.items():
        del own[quota[member_id] :]
    taken = {place for own in has.values() for place in own}
    free = iter([place for place in places if place not in taken])
    for member_id, own in has.items():
        own += [next(free) for _ in range(quota[member_id] - len(own))]
    return has


def _balance(
    members: Sequence[Candidate], partition_counts: Mapping[Uuid, int], has: dict[str, list[_Place]]
) -> dict[str, list[_Place]]:
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


ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_range}
