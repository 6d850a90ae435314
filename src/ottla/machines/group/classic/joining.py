"""Who comes to a classic group, and as whom: newcomers, members who come again, static members who started anew.

A newcomer is given an id first, and comes again with it (KIP-394); a static member is known by its instance, and takes
over what it had (KIP-345). What follows from somebody's coming is the rebalance's affair (see `rebalance`).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.machines.coordinator_machine import Waiter
from ottla.machines.group.classic import timers
from ottla.machines.group.classic.group import ClassicGroup, ClassicState
from ottla.machines.group.classic.member import ClassicMember, protocols_of
from ottla.machines.group.classic.rebalance import Rebalance
from ottla.machines.group.classic.replies import joined, refused_join, rejoin, rejoined
from ottla.machines.group.effects import Effects
from ottla.machines.group.records import group_written
from ottla.machines.group.settings import GroupSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import JoinGroupRequest, JoinGroupResponse
from ottla.wire.reading import MAX_STRING_BYTES

FIRST_WITH_REQUIRED_IDS: Final = 4

_NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A new member has no id yet to be heard of by; if it has gone, its JoinGroup must not wait forever."""


class JoiningClient(NamedTuple):
    """Who joins, beside what the request says."""

    client_id: str
    client_host: str
    api_version: int


class Join(NamedTuple):
    """One JoinGroup: what is asked, by whom, who waits for the answer, and what it has led to so far."""

    request: JoinGroupRequest
    client: JoiningClient
    waiter: Waiter
    effects: Effects
    now_ms: int

    def refuse(self, error: ErrorCode) -> None:
        self.effects.answer(self.waiter, refused_join(self.request, error))


class ClassicJoins:
    """The groups are the coordinator's; each method is given one."""

    def __init__(self, settings: GroupSettings, rebalance: Rebalance, new_uuid_text: Callable[[], str]) -> None:
        self._settings = settings
        self._rebalance = rebalance
        self._new_uuid_text = new_uuid_text

    def join(self, group: ClassicGroup, join: Join) -> None:
        request = join.request
        if not self._accepts(group, request.member_id):
            join.effects.answer(join.waiter, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
            if request.member_id in group.members:
                self._rebalance.lose(group, request.member_id, join.effects, join.now_ms)
        elif not group.supports(request.protocol_type, protocols_of(request)):
            join.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not request.member_id:
            self._join_new(group, join)
        else:
            self._join_known(group, join)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """`group.max.size`. While the group gathers, those count who have come; so the last to come are left out."""
        member = group.members.get(member_id)
        if group.state is ClassicState.EMPTY:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            is_here = member is not None and member.waits_for_join is not None
            return is_here or group.waiting_count < self._settings.max_size
        return member is not None or len(group.members) < self._settings.max_size

    def _join_new(self, group: ClassicGroup, join: Join) -> None:
        request, client, effects = join.request, join.client, join.effects
        instance_id = request.group_instance_id
        member_id = f"{client.client_id if instance_id is None else instance_id}-{self._new_uuid_text()}"
        if len(member_id.encode()) > MAX_STRING_BYTES:
            join.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)  # No reply could tell it to the member.
        elif instance_id is not None and instance_id in group.static_ids:
            self._replace_static(group, join, instance_id, member_id)
        elif instance_id is None and client.api_version >= FIRST_WITH_REQUIRED_IDS:
            group.pending.add(member_id)
            effects.timers.append(timers.session(group, member_id, request.session_timeout_ms))
            effects.answer(join.waiter, JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED))
        else:
            self._add(group, join, member_id)

    def _join_known(self, group: ClassicGroup, join: Join) -> None:
        request, effects = join.request, join.effects
        member_id = request.member_id
        if member_id in group.pending and request.group_instance_id is None:
            self._add(group, join, member_id)
            return
        error = group.check_member(member_id, request.group_instance_id)
        if not error and group.state is ClassicState.EMPTY:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error:
            join.refuse(error)
            return
        member = group.members[member_id]
        is_unchanged = member.protocols == protocols_of(request)
        is_leader = group.leader_id == member_id
        if is_unchanged and group.state is ClassicState.COMPLETING_REBALANCE:
            # It may not have got the first reply.
            effects.answer(join.waiter, joined(group, member, with_members=is_leader))
        elif is_unchanged and group.state is ClassicState.STABLE and not is_leader:
            effects.answer(join.waiter, joined(group, member))
        else:
            # A leader who joins again wants a rebalance: it has seen a topic grow, say.
            self._update(group, member, join)
            self._rebalance.advance(group, effects, join.now_ms)

    def _add(self, group: ClassicGroup, join: Join, member_id: str) -> None:
        request, client = join.request, join.client
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
            group.has_new_members = True
        group.add(member, join.waiter)
        self._rebalance.keep_session(group, member, join.effects, _NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.advance(group, join.effects, join.now_ms)

    @staticmethod
    def _update(group: ClassicGroup, member: ClassicMember, join: Join) -> None:
        request = join.request
        if member.waits_for_join is not None:
            join.effects.answer(member.waits_for_join, rejoin(member))  # It asks a second time: the first gave up.
        group.update(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms)
        group.wait_for_join(member, join.waiter)

    # Static members (KIP-345)

    def _replace_static(self, group: ClassicGroup, join: Join, instance_id: str, member_id: str) -> None:
        """A static member has started anew: it gets a new id, and a client that still uses the old one is fenced."""
        effects, now_ms = join.effects, join.now_ms
        member = group.members[group.static_ids[instance_id]]
        old_leader_id = group.leader_id
        self._fence(group, member, effects)
        group.replace_static(instance_id, member_id)
        self._rebalance.keep_session(group, member, effects)
        self._update(group, member, join)
        # Before the group is stable the leader may know it by its old id: what it is about to assign is of no use.
        if group.state is not ClassicState.STABLE or group.protocol != group.select_protocol():
            self._rebalance.advance(group, effects, now_ms)
            return
        group.wait_for_join(member, None)
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        effects.records.append(group_written(group.group_id, group.record(assignments)))
        effects.answer(join.waiter, rejoined(group, member, old_leader_id, join.client.api_version))

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
