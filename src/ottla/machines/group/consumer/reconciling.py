"""From what a member has to what it is to have, one step with each heartbeat.

A partition is given to a member only when nobody has it any more. So a member first gives up what is not to be its own
(and its epoch stays until it has), and then takes what is free; what others still have it gets when they have let go.

                    ┌───────────────────────────────────────────────────────────┐
                    v                                                           │ (it has given them up)
    STABLE ──(another target, something to give up)──> UNREVOKED_PARTITIONS ────┤
       │  ^                                                                     v
       │  └───────(all of the target is its own)─── UNRELEASED_PARTITIONS <─────┘
       └──────────(something to wait for)───────────────────^
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.base.ids import Uuid
from ottla.machines.group.consumer.member import NOTHING_ASSIGNED, Assigned, ConsumerMember, MemberState, Target

Owned = Mapping[Uuid, frozenset[int]]
"""What a member says it has; see `reconciled`."""


def reconciled(
    member: ConsumerMember,
    target: Target,
    target_epoch: int,
    owned: Owned | None,
    owner_epoch: Callable[[Uuid, int], int | None],
    *,
    reads: Callable[[Uuid], bool] = lambda topic_id: True,
) -> ConsumerMember | None:
    """The member after the next step; itself if there is none to make, None if it must begin anew.

    `owned` is None in a heartbeat that does not say what the member has. `reads` tells the topics that it still wants:
    of others it is to give up what it has, even while no target without them has been computed yet.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch and all(map(reads, member.assigned)):
            return member
        case MemberState.UNREVOKED_PARTITIONS if _owns_any(owned, member.revoking):
            return member
        case MemberState.UNKNOWN if owned is None or owned:
            return None
    return _next(member, target, target_epoch, owned, owner_epoch, reads)


def _next(
    member: ConsumerMember,
    target: Target,
    target_epoch: int,
    owned: Owned | None,
    owner_epoch: Callable[[Uuid, int], int | None],
    reads: Callable[[Uuid], bool],
) -> ConsumerMember:
    assigned: dict[Uuid, dict[int, int]] = {}
    revoking: dict[Uuid, dict[int, int]] = {}
    coming: dict[Uuid, dict[int, int]] = {}
    is_waiting = False
    for topic_id in dict.fromkeys((*target, *member.assigned)):
        wanted = target.get(topic_id, frozenset()) if reads(topic_id) else frozenset()
        has = member.assigned.get(topic_id, {})
        _put(assigned, topic_id, {index: epoch for index, epoch in has.items() if index in wanted})
        _put(revoking, topic_id, {index: epoch for index, epoch in has.items() if index not in wanted})
        missing = sorted(wanted - has.keys())
        own = member.revoking.get(topic_id, {})
        free = [index for index in missing if owner_epoch(topic_id, index) is None or index in own]
        is_waiting = is_waiting or len(free) < len(missing)
        _put(coming, topic_id, dict.fromkeys(free, target_epoch))
    if revoking and _owns_any(owned, revoking):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, revoking)
    for topic_id, partitions in coming.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **partitions}
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return _moved(member, state, target_epoch, assigned, NOTHING_ASSIGNED)


def _moved(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: Assigned, revoking: Assigned
) -> ConsumerMember:
    return replace(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking)


def _put(topics: dict[Uuid, dict[int, int]], topic_id: Uuid, partitions: dict[int, int]) -> None:
    if partitions:
        topics[topic_id] = partitions


def _owns_any(owned: Owned | None, revoking: Assigned) -> bool:
    """A member that does not say what it has is taken to have everything still."""
    if owned is None:
        return True
    return any(not owned[topic_id].isdisjoint(revoking.get(topic_id, ())) for topic_id in owned)
