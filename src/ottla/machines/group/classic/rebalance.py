"""What moves a classic group from state to state: joining, syncing, leaving, falling silent.

Theory of operation. Everybody who joins waits at a barrier. It opens when all known members are there, or when the
slowest has had its rebalance timeout; the first rebalance of an empty group waits `group.initial.rebalance.delay.ms`
for more. Whoever has not come by then is no longer a member, static members excepted. Then a protocol is chosen by
vote, and everybody is told the new generation; the leader is told the members too, divides the work, and brings the
assignments with its SyncGroup. They are written to the log, and with that the group is stable.

A member that waits for others keeps its session. All others must be heard of within their session timeout. A member of
a new generation that does not ask for its assignment within the rebalance timeout is lost as well.

One file because these transitions lead into each other, and whoever reads one must see where it goes.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.machines.coordinator import Answer, CoordinatorDecision, Waiter
from ottla.machines.group.classic import timers
from ottla.machines.group.classic.group import ClassicGroup, ClassicState
from ottla.machines.group.classic.member import ClassicMember, protocols_of
from ottla.machines.group.classic.replies import joined, refused_join, rejoin, rejoined, synced, write_error
from ottla.machines.group.effects import Effects
from ottla.machines.group.records import group_written
from ottla.machines.group.settings import GroupSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)

_FIRST_WITH_REQUIRED_IDS: Final = 4
_NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A new member has no id yet to be heard of by; if it has gone, its JoinGroup must not wait forever."""

_UNSTABLE: Final = frozenset({ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE})


class Joining(NamedTuple):
    """Who joins, beside what the request says."""

    client_id: str
    client_host: str
    api_version: int


class ClassicProtocol:
    """The transitions. The groups are the coordinator's; each method is given one, and the effects to add to."""

    def __init__(self, settings: GroupSettings, new_uuid_text: Callable[[], str]) -> None:
        self._settings = settings
        self._new_uuid_text = new_uuid_text

    # Joining

    def join(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Joining,
        waiter: Waiter,
        effects: Effects,
        now_ms: int,
    ) -> None:
        if not self._accepts(group, request.member_id):
            effects.answer(waiter, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
            if request.member_id in group.members:
                self._remove(group, request.member_id, effects)
                self._after_loss(group, effects, now_ms)
        elif not group.supports(request.protocol_type, protocols_of(request)):
            effects.answer(waiter, refused_join(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif not request.member_id:
            self._join_new(group, request, client, waiter, effects, now_ms)
        else:
            self._join_known(group, request, client, waiter, effects, now_ms)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """`group.max.size`. While the group gathers, those count who have come; so the last to come are left out."""
        member = group.members.get(member_id)
        if group.state is ClassicState.EMPTY:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            is_here = member is not None and member.waits_for_join is not None
            return is_here or group.waiting_count < self._settings.max_size
        return member is not None or len(group.members) < self._settings.max_size

    def _join_new(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Joining,
        waiter: Waiter,
        effects: Effects,
        now_ms: int,
    ) -> None:
        instance_id = request.group_instance_id
        member_id = f"{client.client_id if instance_id is None else instance_id}-{self._new_uuid_text()}"
        if instance_id is not None and instance_id in group.static_ids:
            self._replace_static(group, request, client, member_id, waiter, effects, now_ms)
        elif instance_id is None and client.api_version >= _FIRST_WITH_REQUIRED_IDS:
            group.pending.add(member_id)
            effects.timers.append(timers.session(group, member_id, request.session_timeout_ms))
            effects.answer(waiter, JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED))
        else:
            self._add(group, request, client, member_id, waiter, effects, now_ms)

    def _join_known(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Joining,
        waiter: Waiter,
        effects: Effects,
        now_ms: int,
    ) -> None:
        member_id = request.member_id
        if member_id in group.pending and request.group_instance_id is None:
            self._add(group, request, client, member_id, waiter, effects, now_ms)
            return
        error = group.check_member(member_id, request.group_instance_id)
        if not error and group.state is ClassicState.EMPTY:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error:
            effects.answer(waiter, refused_join(request, error))
            return
        member = group.members[member_id]
        is_unchanged = member.protocols == protocols_of(request)
        is_leader = group.leader_id == member_id
        if is_unchanged and group.state is ClassicState.COMPLETING_REBALANCE:
            # It may not have got the first reply.
            effects.answer(waiter, joined(group, member, with_members=is_leader))
        elif is_unchanged and group.state is ClassicState.STABLE and not is_leader:
            effects.answer(waiter, joined(group, member))
        else:
            # A leader who joins again wants a rebalance: it has seen a topic grow, say.
            self._update(group, member, request, waiter, effects)
            self._rebalance(group, effects, now_ms)

    def _add(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Joining,
        member_id: str,
        waiter: Waiter,
        effects: Effects,
        now_ms: int,
    ) -> None:
        member = ClassicMember(
            member_id,
            instance_id=request.group_instance_id,
            client_id=client.client_id,
            client_host=client.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=protocols_of(request),
        )
        member.is_new = True
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.has_news_members = True
        group.add(member, waiter)
        self.keep_session(group, member, effects, _NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance(group, effects, now_ms)

    @staticmethod
    def _update(
        group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, waiter: Waiter, effects: Effects
    ) -> None:
        if member.waits_for_join is not None:
            effects.answer(member.waits_for_join, rejoin(member))  # It asks a second time: the first gave up.
        group.update(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms)
        group.wait_for_join(member, waiter)

    # Static members (KIP-345)

    def _replace_static(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Joining,
        member_id: str,
        waiter: Waiter,
        effects: Effects,
        now_ms: int,
    ) -> None:
        """A static member has started anew: it gets a new id, and whoever still uses the old one is fenced."""
        instance_id = request.group_instance_id
        assert instance_id is not None
        member = group.members[group.static_ids[instance_id]]
        old = member.member_id, group.leader_id, member.protocols
        old_timeouts = member.rebalance_timeout_ms, member.session_timeout_ms
        self._fence(group, member, effects)
        group.replace_static(instance_id, member_id)
        self.keep_session(group, member, effects)
        self._update(group, member, request, waiter, effects)
        if group.state is not ClassicState.STABLE:
            # The leader may know it by its old id already; so what it is about to assign is of no use.
            self._rebalance(group, effects, now_ms)
            return
        if group.protocol != group.select_protocol():
            self._rebalance(group, effects, now_ms)
            return
        group.wait_for_join(member, None)
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        effects.records.append(group_written(group.group_id, group.record(assignments)))
        effects.answer(waiter, rejoined(group, member, old[1], client.api_version))

        def undo(error: ErrorCode, now_ms: int) -> CoordinatorDecision[None]:
            undone = Effects()
            group.update(member, old[2], *old_timeouts)
            group.replace_static(instance_id, old[0])
            self.keep_session(group, member, undone)
            undone.answer(waiter, write_error(error))
            return undone.decision(None)

        effects.undo = undo

    @staticmethod
    def _fence(group: ClassicGroup, member: ClassicMember, effects: Effects) -> None:
        if member.waits_for_join is not None:
            fenced = JoinGroupResponse(member_id=member.member_id, error_code=ErrorCode.FENCED_INSTANCE_ID)
            effects.answer(member.waits_for_join, fenced)
            group.wait_for_join(member, None)
        if member.waits_for_sync is not None:
            effects.answer(member.waits_for_sync, ErrorCode.FENCED_INSTANCE_ID)
            member.waits_for_sync = None
        effects.timers.append(timers.no_session(group, member.member_id))

    # The barrier

    def _rebalance(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
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
            group.has_news_members = False
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
        if group.has_news_members and left_ms:
            group.has_news_members = False
            longer_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            self._wait_for_more(group, longer_ms, max(left_ms - delay_ms, 0), effects)
        else:
            self._open(group, effects, now_ms)

    def on_barrier_timeout(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        if group.state is ClassicState.PREPARING_REBALANCE:
            self._open(group, effects, now_ms)

    def _open(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        """Ends the wait: whoever is here is a member of the next generation."""
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
        value = group.empty_record(group.generation + 1, now_ms)
        effects.records.append(group_written(group.group_id, value))

        def undo(error: ErrorCode, now_ms: int) -> CoordinatorDecision[None]:
            """A generation without members needs no record to be safe: the one before would time out."""
            group.on_written(value)
            return CoordinatorDecision(None)

        effects.undo = undo

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
        waiters: list[Waiter] = []
        for member in group.members.values():
            if member.waits_for_sync is not None:
                waiters.append(member.waits_for_sync)
                reply = synced(group, assignments.get(member.member_id, b""))
                effects.answer(member.waits_for_sync, reply)
                member.waits_for_sync = None
                self.keep_session(group, member, effects)

        def undo(error: ErrorCode, now_ms: int) -> CoordinatorDecision[None]:
            undone = Effects()
            undone.answers += [Answer(waiter, write_error(error)) for waiter in waiters]
            self.prepare(group, undone, now_ms)
            return undone.decision(None)

        effects.undo = undo

    def _send_back(self, group: ClassicGroup, error: ErrorCode, effects: Effects) -> None:
        """Whoever waits for an assignment is to join again."""
        for member in group.members.values():
            member.assignment = b""
            if member.waits_for_sync is not None:
                effects.answer(member.waits_for_sync, error)
                member.waits_for_sync = None
                self.keep_session(group, member, effects)

    def on_sync_timeout(self, group: ClassicGroup, generation: int, effects: Effects, now_ms: int) -> None:
        if generation != group.generation or group.state not in _UNSTABLE or not group.syncing:
            return
        for member_id in list(group.syncing):
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
            self._remove(group, member_id, effects)
            self._after_loss(group, effects, now_ms)

    # Leaving

    def leave(
        self, group: ClassicGroup, request: LeaveGroupRequest, effects: Effects, now_ms: int
    ) -> LeaveGroupResponse:
        """One or several members go; an admin may name static ones by their instance alone (KIP-345)."""
        answers = [self._leave(group, leaving, effects) for leaving in request.members]
        if any(answer.error_code == ErrorCode.NONE for answer in answers):
            if group.state in _UNSTABLE:
                self.prepare(group, effects, now_ms)
            elif group.state is ClassicState.PREPARING_REBALANCE:
                self._rebalance(group, effects, now_ms)
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

    def _after_loss(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        if group.state in _UNSTABLE:
            self.prepare(group, effects, now_ms)
        elif group.state is ClassicState.PREPARING_REBALANCE and group.has_all_joined:
            self._open(group, effects, now_ms)

    # Coming up

    def on_loaded(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        """Members of a group that was loaded have a session to be heard of in; one too large is to gather anew."""
        for member in group.members.values():
            self.keep_session(group, member, effects)
        if len(group.members) > self._settings.max_size:
            self.prepare(group, effects, now_ms)


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
