"""The timers of a classic group: their names, and what they call.

They may fire for a group or a member that is gone; then nothing happens. A member's session is one timer that every
heartbeat sets anew; so what it calls is one object, made once.
"""

from functools import partial
from typing import TYPE_CHECKING

from ottla.machines.coordinator_machine import CoordinatorDecision, Timer
from ottla.machines.group.classic.group import ClassicGroup

if TYPE_CHECKING:
    from ottla.machines.group.group_coordinator import GroupCoordinator


def session(group: ClassicGroup, member_id: str, timeout_ms: int) -> Timer:
    """The member must be heard of again."""
    member = group.members.get(member_id)
    expire = member.expire if member is not None else None
    if expire is None:
        expire = partial(_on_session_over, group.group_id, member_id)
        if member is not None:
            member.expire = expire
    return Timer(("session", group.group_id, member_id), timeout_ms, expire)


def no_session(group: ClassicGroup, member_id: str) -> Timer:
    return Timer(("session", group.group_id, member_id))


def initial_delay(group: ClassicGroup, delay_ms: int, left_ms: int) -> Timer:
    """The barrier of a group's first rebalance opens."""
    expire = partial(_on_initial_delay, group.group_id, delay_ms, left_ms)
    return Timer(("join", group.group_id, None), delay_ms, expire)


def barrier(group: ClassicGroup) -> Timer:
    """The barrier opens, even if members are missing."""
    expire = partial(_on_barrier_timeout, group.group_id)
    return Timer(("join", group.group_id, None), group.rebalance_timeout_ms, expire)


def no_barrier(group: ClassicGroup) -> Timer:
    return Timer(("join", group.group_id, None))


def sync(group: ClassicGroup) -> Timer:
    """All members of a generation have asked for their assignment, or are lost."""
    expire = partial(_on_sync_timeout, group.group_id, group.generation)
    return Timer(("sync", group.group_id, None), group.rebalance_timeout_ms, expire)


def no_sync(group: ClassicGroup) -> Timer:
    return Timer(("sync", group.group_id, None))


def _on_session_over(
    group_id: str, member_id: str, coordinator: "GroupCoordinator", now_ms: int
) -> CoordinatorDecision[None]:
    rebalance = coordinator.members.rebalance
    return coordinator.members.with_classic(
        group_id, lambda group, effects: rebalance.on_session_over(group, member_id, effects, now_ms)
    )


def _on_barrier_timeout(group_id: str, coordinator: "GroupCoordinator", now_ms: int) -> CoordinatorDecision[None]:
    rebalance = coordinator.members.rebalance
    return coordinator.members.with_classic(
        group_id, lambda group, effects: rebalance.on_barrier_timeout(group, effects, now_ms)
    )


def _on_initial_delay(
    group_id: str, delay_ms: int, left_ms: int, coordinator: "GroupCoordinator", now_ms: int
) -> CoordinatorDecision[None]:
    rebalance = coordinator.members.rebalance
    return coordinator.members.with_classic(
        group_id, lambda group, effects: rebalance.on_initial_delay(group, delay_ms, left_ms, effects, now_ms)
    )


def _on_sync_timeout(
    group_id: str, generation: int, coordinator: "GroupCoordinator", now_ms: int
) -> CoordinatorDecision[None]:
    rebalance = coordinator.members.rebalance
    return coordinator.members.with_classic(
        group_id, lambda group, effects: rebalance.on_sync_timeout(group, generation, effects, now_ms)
    )
