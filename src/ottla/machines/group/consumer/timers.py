"""The timers of a consumer group's members: their names, and what they call. All of them end a membership.

They may fire for a group or a member that is gone; then nothing happens.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.machines.coordinator_machine import CoordinatorDecision, Timer
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.member import ConsumerMember
from ottla.machines.group.effects import Effects

if TYPE_CHECKING:
    from ottla.machines.group.group_coordinator import GroupCoordinator


def session(group_id: str, member_id: str, timeout_ms: int) -> Timer:
    """The member must be heard of again."""
    return Timer(("session", group_id, member_id), timeout_ms, partial(_on_time_over, group_id, member_id))


def revocation(group_id: str, member: ConsumerMember) -> Timer:
    """The member must give up what it was told to, which takes it out of its epoch."""
    expire = partial(_on_revocation_over, group_id, member.member_id, member.epoch)
    return Timer(("rebalance", group_id, member.member_id), member.rebalance_timeout_ms, expire)


def no_revocation(group_id: str, member_id: str) -> Timer:
    return Timer(("rebalance", group_id, member_id))


def rejoin(group_id: str, member: ConsumerMember) -> Timer:
    """A member that speaks the classic protocol has heard of a rebalance, and must come with a JoinGroup."""
    name = "join", group_id, member.member_id
    return Timer(name, member.rebalance_timeout_ms, partial(_on_time_over, group_id, member.member_id))


def no_rejoin(group_id: str, member_id: str) -> Timer:
    return Timer(("join", group_id, member_id))


def sync(group_id: str, member_id: str, timeout_ms: int) -> Timer:
    """It has joined, and must ask for what it is given."""
    return Timer(("sync", group_id, member_id), timeout_ms, partial(_on_time_over, group_id, member_id))


def no_sync(group_id: str, member_id: str) -> Timer:
    return Timer(("sync", group_id, member_id))


def none(group_id: str, member_id: str) -> list[Timer]:
    return [Timer((name, group_id, member_id)) for name in ("session", "rebalance", "join", "sync")]


def _on_time_over(
    group_id: str, member_id: str, coordinator: "GroupCoordinator", now_ms: int
) -> CoordinatorDecision[None]:
    return _fence_if(coordinator, group_id, member_id, now_ms, lambda member: True)


def _on_revocation_over(
    group_id: str, member_id: str, epoch: int, coordinator: "GroupCoordinator", now_ms: int
) -> CoordinatorDecision[None]:
    return _fence_if(coordinator, group_id, member_id, now_ms, lambda member: member.epoch == epoch)


def _fence_if(
    coordinator: "GroupCoordinator",
    group_id: str,
    member_id: str,
    now_ms: int,
    is_due: Callable[[ConsumerMember], bool],
) -> CoordinatorDecision[None]:
    effects = Effects()
    group = coordinator.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if isinstance(group, ConsumerGroup) and member is not None and is_due(member):
        coordinator.members.consumer.fence(group, [member], effects, now_ms)
    return effects.decision(None)
