"""What moves a classic group from state to state: gathering, syncing, leaving, falling silent.

Theory of operation. Everybody who joins (see `joining`) waits at a barrier. It opens when all known members are there,
or when the slowest has had its rebalance timeout; the first rebalance of an empty group waits for more, for
`group.initial.rebalance.delay.ms`. A member that has not come by then is none any more, static members excepted. Then a
protocol is chosen by vote, and everybody gets the new generation; the leader gets the members too, divides the
work, and brings the assignments with its SyncGroup. They are written to the log, and with that the group is stable.

A member that waits for others keeps its session. All others must be heard of within their session timeout. A member of
a new generation that does not ask for its assignment within the rebalance timeout is lost as well.

One file because these transitions lead into each other, and the reader of one must see where it goes.
"""

from typing import Final

from ottla.machines.coordinator_machine import CoordinatorDecision, Waiter
from ottla.machines.group.classic import timers
from ottla.machines.group.classic.group import ClassicGroup, ClassicState
from ottla.machines.group.classic.member import ClassicMember
from ottla.machines.group.classic.replies import joined, synced
from ottla.machines.group.effects import Effects
from ottla.machines.group.records import group_written
from ottla.machines.group.settings import GroupSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)

_HAS_GENERATION: Final = frozenset({ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE})
"""The members know their generation: who goes now calls for another one."""


class Rebalance:
    """The transitions. The groups are the coordinator's; each method is given one, and the effects to add to."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings

    # The barrier

    def advance(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        """Somebody came, went or changed: a rebalance begins, or the one under way may now be complete."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            self.prepare(group, effects, now_ms)
        elif group.previous_state is not ClassicState.EMPTY and group.has_all_joined:
            self._open(group, effects, now_ms)

    def prepare(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        """Closes the barrier: everybody is to join anew."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._send_back(group, ErrorCode.REBALANCE_IN_PROGRESS, effects)
        group.syncing.clear()
        effects.timers.append(timers.no_sync(group))
        was_empty = group.state is ClassicState.EMPTY
        group.become(ClassicState.PREPARING_REBALANCE, now_ms)
        if was_empty:
            delay_ms = self._settings.initial_rebalance_delay_ms
            group.has_new_members = False
            self._wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), effects)
        elif group.has_all_joined:
            self._open(group, effects, now_ms)
        else:
            self._wait_for_all(group, effects)

    @staticmethod
    def _wait_for_all(group: ClassicGroup, effects: Effects) -> None:
        effects.timers.append(timers.barrier(group))

    @staticmethod
    def _wait_for_more(group: ClassicGroup, delay_ms: int, left_ms: int, effects: Effects) -> None:
        effects.timers.append(timers.initial_delay(group, delay_ms, left_ms))

    def on_initial_delay(self, group: ClassicGroup, delay_ms: int, left_ms: int, effects: Effects, now_ms: int) -> None:
        """The first rebalance waits on as long as more members keep coming, up to the rebalance timeout."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            return
        if group.has_new_members and left_ms:
            group.has_new_members = False
            longer_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            self._wait_for_more(group, longer_ms, max(left_ms - delay_ms, 0), effects)
        else:
            self._open(group, effects, now_ms)

    def on_barrier_timeout(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        if group.state is ClassicState.PREPARING_REBALANCE:
            self._open(group, effects, now_ms)

    def _open(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        """Ends the wait: the members that are here make the next generation."""
        effects.timers.append(timers.no_barrier(group))
        for member in list(group.members.values()):
            if member.waits_for_join is None and not member.is_static:
                self._remove(group, member.member_id, effects)
        if not group.members:
            self._become_empty(group, effects, now_ms)
        elif self._elect_leader(group):
            self._begin_generation(group, effects, now_ms)
        else:
            self._wait_for_all(group, effects)  # Only static members are left, and none has come: their sessions end.

    @staticmethod
    def _elect_leader(group: ClassicGroup) -> bool:
        """The leader stays if it is here, else the first who is."""
        leader = group.members.get(group.leader_id or "")
        if leader is None or leader.waits_for_join is None:
            here = (member for member in group.members.values() if member.waits_for_join is not None)
            leader = next(here, None)
        if leader is not None:
            group.leader_id = leader.member_id
        return leader is not None

    @staticmethod
    def _become_empty(group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        effects.records.append(group_written(group.group_id, group.empty_record(group.generation + 1, now_ms)))

    def _begin_generation(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        group.generation += 1
        group.protocol = group.select_protocol()
        group.subscribed = group.find_subscribed_topics()
        group.become(ClassicState.COMPLETING_REBALANCE, now_ms)
        group.syncing = set(group.members)
        for member in group.members.values():
            if member.waits_for_join is not None:
                reply = joined(group, member, with_members=member.member_id == group.leader_id)
                effects.answer(member.waits_for_join, reply)
                group.wait_for_join(member, None)
            member.is_new = False
            self.keep_session(group, member, effects)
        effects.timers.append(timers.sync(group))

    # Syncing

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, waiter: Waiter, effects: Effects, now_ms: int
    ) -> None:
        error = _check_sync(group, request)
        if error:
            effects.answer(waiter, error)
            return
        member = group.members[request.member_id]
        group.syncing.discard(member.member_id)
        if not group.syncing:
            effects.timers.append(timers.no_sync(group))
        if group.state is ClassicState.STABLE:
            effects.answer(waiter, synced(group, member.assignment))
            return
        if member.waits_for_sync is not None:
            effects.answer(member.waits_for_sync, ErrorCode.REBALANCE_IN_PROGRESS)
        member.waits_for_sync = waiter
        if group.leader_id == member.member_id:
            self._assign(group, request, effects)

    def _assign(self, group: ClassicGroup, request: SyncGroupRequest, effects: Effects) -> None:
        """The leader has divided the work. Whom it forgot gets nothing."""
        assignments = {given.member_id: bytes(given.assignment) for given in request.assignments}
        effects.records.append(group_written(group.group_id, group.record(assignments)))
        for member in group.members.values():
            if member.waits_for_sync is not None:
                reply = synced(group, assignments.get(member.member_id, b""))
                effects.answer(member.waits_for_sync, reply)
                member.waits_for_sync = None
                self.keep_session(group, member, effects)

    def _send_back(self, group: ClassicGroup, error: ErrorCode, effects: Effects) -> None:
        """Members that wait for an assignment are to join again."""
        for member in group.members.values():
            member.assignment = b""
            if member.waits_for_sync is not None:
                effects.answer(member.waits_for_sync, error)
                member.waits_for_sync = None
                self.keep_session(group, member, effects)

    def on_sync_timeout(self, group: ClassicGroup, generation: int, effects: Effects, now_ms: int) -> None:
        if generation != group.generation or group.state not in _HAS_GENERATION or not group.syncing:
            return
        for member_id in [member_id for member_id in group.members if member_id in group.syncing]:
            self._remove(group, member_id, effects)
        self.prepare(group, effects, now_ms)

    # Sessions

    @staticmethod
    def keep_session(
        group: ClassicGroup, member: ClassicMember, effects: Effects, timeout_ms: int | None = None
    ) -> None:
        """The member has been heard of."""
        delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        effects.timers.append(timers.session(group, member.member_id, delay_ms))

    def heartbeat(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
    ) -> CoordinatorDecision[HeartbeatResponse]:
        error = group.check_member(member_id, instance_id)
        if not error and generation != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        if error or group.is_empty:
            return CoordinatorDecision(HeartbeatResponse(error_code=error or ErrorCode.UNKNOWN_MEMBER_ID))
        effects = Effects()
        self.keep_session(group, group.members[member_id], effects)
        is_over = group.state is ClassicState.PREPARING_REBALANCE
        return effects.decision(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if is_over else 0))

    def on_session_over(self, group: ClassicGroup, member_id: str, effects: Effects, now_ms: int) -> None:
        member = group.members.get(member_id)
        if member_id in group.pending:
            group.pending.discard(member_id)
            if group.state is ClassicState.PREPARING_REBALANCE and group.has_all_joined:
                self._open(group, effects, now_ms)
        elif member is not None and not member.keeps_its_session:
            self.lose(group, member_id, effects, now_ms)

    # Leaving

    def leave(
        self, group: ClassicGroup, request: LeaveGroupRequest, effects: Effects, now_ms: int
    ) -> LeaveGroupResponse:
        """One or several members go; an admin may name static ones by their instance alone (KIP-345)."""
        answers = [self._leave(group, leaving, effects) for leaving in request.members]
        if any(answer.error_code == ErrorCode.NONE for answer in answers):
            if group.state in _HAS_GENERATION:
                self.prepare(group, effects, now_ms)
            elif group.state is ClassicState.PREPARING_REBALANCE:
                self.advance(group, effects, now_ms)
        return LeaveGroupResponse(members=answers)

    def _leave(
        self, group: ClassicGroup, leaving: LeaveGroupRequest.MemberIdentity, effects: Effects
    ) -> LeaveGroupResponse.MemberResponse:
        error = ErrorCode.NONE
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if not member_id:
            member_id = group.static_ids.get(instance_id or "", "")
            error = ErrorCode.NONE if member_id else ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id not in group.pending:
            error = group.check_member(member_id, instance_id)
        if not error:
            self._remove(group, member_id, effects)
        return LeaveGroupResponse.MemberResponse(
            member_id=leaving.member_id, group_instance_id=instance_id, error_code=error
        )

    @staticmethod
    def _remove(group: ClassicGroup, member_id: str, effects: Effects) -> None:
        """Takes a member out, and tells it so if it waits: it may still be there, and join anew."""
        member = group.members.get(member_id)
        if member is not None:
            if member.waits_for_join is not None:
                gone = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
                effects.answer(member.waits_for_join, gone)
            if member.waits_for_sync is not None:
                effects.answer(member.waits_for_sync, ErrorCode.UNKNOWN_MEMBER_ID)
                member.waits_for_sync = None
        if member is not None or member_id in group.pending:
            effects.timers.append(timers.no_session(group, member_id))
            group.remove(member_id)

    def lose(self, group: ClassicGroup, member_id: str, effects: Effects, now_ms: int) -> None:
        """A member is gone without having said so; the others divide the work anew."""
        self._remove(group, member_id, effects)
        if group.state in _HAS_GENERATION:
            self.prepare(group, effects, now_ms)
        elif group.state is ClassicState.PREPARING_REBALANCE and group.has_all_joined:
            self._open(group, effects, now_ms)

    # Coming up, and beginning anew

    def on_loaded(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        """Members of a group that was loaded have a session to be heard of in; one too large is to gather anew."""
        for member in group.members.values():
            self.keep_session(group, member, effects)
        if len(group.members) > self._settings.max_size:
            self.prepare(group, effects, now_ms)

    def begin_anew(self, group: ClassicGroup, error: ErrorCode, effects: Effects, now_ms: int) -> ClassicGroup:
        """The group could not be written down: it is again what its last record says, and who waits gets an error."""
        effects.timers += (timers.no_barrier(group), timers.no_sync(group))
        known = (*group.members, *sorted(group.pending))
        effects.timers += [timers.no_session(group, member_id) for member_id in known]
        for waiter in group.waiters():
            effects.answer(waiter, error)
        restored = group.as_written()
        self.on_loaded(restored, effects, now_ms)
        return restored


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    error = group.check_member(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differs(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
