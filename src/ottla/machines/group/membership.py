"""Who is in which group: members' requests, taken to the group that they mean, of whichever kind it is.

A group is classic or a consumer group. Empty ones become of the other kind with the first who joins; others as
`migration` allows it. Members of a consumer group may speak either protocol.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.machines.coordinator_machine import CoordinatorDecision, Waiter
from ottla.machines.group.classic.group import ClassicGroup
from ottla.machines.group.classic.joining import ClassicJoins, Join, JoiningClient
from ottla.machines.group.classic.rebalance import Rebalance
from ottla.machines.group.consumer.classic_members import ClassicMembers
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.heartbeats import Client, Heartbeat, Refused, Reply, check_request
from ottla.machines.group.consumer.member import JOINING, ConsumerMember
from ottla.machines.group.consumer.protocol import ConsumerProtocol
from ottla.machines.group.consumer.turn import ConsumerRules
from ottla.machines.group.effects import Effects
from ottla.machines.group.migration import Migration
from ottla.machines.group.records import group_written
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)

if TYPE_CHECKING:
    from ottla.machines.group.group_coordinator import GroupCoordinator

Group = ClassicGroup | ConsumerGroup

_Left = LeaveGroupResponse.MemberResponse


class NewIds(NamedTuple):
    """Ids that nobody has had before, in the form in which each kind of group has them in Kafka."""

    classic: Callable[[], str]
    consumer: Callable[[], str]


class Membership:
    """`groups` are the coordinator's, as its log has made them."""

    def __init__(
        self,
        groups: dict[str, Group],
        settings: GroupSettings,
        image: MetadataImage,
        new_ids: NewIds,
    ) -> None:
        rules = ConsumerRules(settings, image)
        self._groups = groups
        self._new_ids = new_ids
        self.rebalance = Rebalance(settings)
        self._joins = ClassicJoins(settings, self.rebalance, new_ids.classic)
        self.migration = Migration(settings, image, self.rebalance)
        self.consumer = ConsumerProtocol(rules, self.migration)
        self._classic_members = ClassicMembers(rules, self.migration, new_ids.consumer)

    def on_loaded(self, group: Group, effects: Effects, now_ms: int) -> None:
        if isinstance(group, ClassicGroup):
            self.rebalance.on_loaded(group, effects, now_ms)
        else:
            self.consumer.on_loaded(group, effects)

    def on_refused(self, group_id: str, value: Message | None, error: ErrorCode, effects: Effects, now_ms: int) -> None:
        """A record that says what a group is could not be written. A tombstone is no reason for a rebalance to end."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.is_metadata_stale = group.are_regexes_stale = True
            group.has_even_target = False
        elif group is not None and isinstance(value, GroupMetadataValue):
            self._groups[group_id] = self.rebalance.begin_anew(group, error, effects, now_ms)

    # The classic protocol

    def join(
        self, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter, now_ms: int
    ) -> CoordinatorDecision[None]:
        group = self._groups.get(request.group_id)
        effects = Effects()
        join = Join(request, client, waiter, effects, now_ms)
        if len({protocol.name for protocol in request.protocols}) < len(request.protocols):
            join.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)  # Kafka takes such a member in, and never answers it.
        elif isinstance(group, ClassicGroup):
            self._joins.join(group, join)
        elif group is not None and not group.is_empty:
            self._classic_members.join(group, join)
        elif request.member_id:
            unknown = JoinGroupResponse(member_id=request.member_id, error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            effects.answer(waiter, unknown)
        else:
            self._join_new_group(group, join)
        return effects.decision(None)

    def _join_new_group(self, old: ConsumerGroup | None, join: Join) -> None:
        """Writes an empty group down, in the place of an empty one of the other kind; then there is one to join."""
        request, client, waiter, effects, now_ms = join
        if old is not None:
            effects.records += old.tombstones()
        created = ClassicGroup(request.group_id, now_ms).empty_record(0, now_ms)
        effects.records.append(group_written(request.group_id, created))

        def join_it(coordinator: "GroupCoordinator", now_ms: int) -> CoordinatorDecision[None]:
            return coordinator.members.join(request, client, waiter, now_ms)

        effects.followed_by = join_it

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> CoordinatorDecision[None]:
        group = self._groups.get(request.group_id)
        effects = Effects()
        if group is None or group.is_empty:
            effects.answer(waiter, ErrorCode.UNKNOWN_MEMBER_ID)
        elif isinstance(group, ClassicGroup):
            self.rebalance.sync(group, request, waiter, effects, now_ms)
        else:
            self._classic_members.sync(group, request, waiter, effects)
        return effects.decision(None)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> CoordinatorDecision[HeartbeatResponse]:
        group = self._groups.get(request.group_id)
        if group is None:
            return CoordinatorDecision(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        if isinstance(group, ClassicGroup):
            return self.rebalance.heartbeat(group, request.member_id, request.group_instance_id, request.generation_id)
        return self._classic_members.heartbeat(group, request)

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> CoordinatorDecision[LeaveGroupResponse]:
        group = self._groups.get(request.group_id)
        effects = Effects()
        if isinstance(group, ClassicGroup):
            return effects.decision(self.rebalance.leave(group, request, effects, now_ms))
        found = [_leaving(group, leaving) for leaving in request.members]
        members = {member.member_id: member for member in found if isinstance(member, ConsumerMember)}
        if group is not None and members:
            self.consumer.fence(group, members.values(), effects, now_ms)
        return effects.decision(LeaveGroupResponse(members=list(map(_left, request.members, found))))

    def with_classic(
        self, group_id: str, transition: Callable[[ClassicGroup, Effects], None]
    ) -> CoordinatorDecision[None]:
        """For timers: lets a group change if it is still there."""
        group = self._groups.get(group_id)
        effects = Effects()
        if isinstance(group, ClassicGroup):
            transition(group, effects)
        return effects.decision(None)

    # The consumer protocol

    def consumer_heartbeat(
        self, request: Heartbeat, client: Client, now_ms: int
    ) -> CoordinatorDecision[Reply | Refused]:
        refused = check_request(request)
        if refused is not None:
            return CoordinatorDecision(refused)
        effects = Effects()
        group = self._consumer_group(request, effects)
        if isinstance(group, Refused):
            return CoordinatorDecision(group)
        if not request.member_id:
            request.member_id = self._new_ids.consumer()
        reply = self.consumer.heartbeat(group, request, client, effects, now_ms)
        return CoordinatorDecision(reply) if isinstance(reply, Refused) else effects.decision(reply)

    def _consumer_group(self, request: Heartbeat, effects: Effects) -> ConsumerGroup | Refused:
        """The group that is meant; for who joins, a new one, or what a classic group becomes by that."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch != JOINING:
            return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {request.group_id}")
        if group is not None and not group.is_empty:
            return self.migration.upgrade(group, effects)
        if group is not None:
            effects.records += group.tombstones()
        return ConsumerGroup(request.group_id)


def _leaving(group: ConsumerGroup | None, leaving: LeaveGroupRequest.MemberIdentity) -> ConsumerMember | ErrorCode:
    """An admin may name a static member by its instance alone (KIP-345)."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not leaving.member_id and leaving.group_instance_id is not None:
        return group.static_member(leaving.group_instance_id) or ErrorCode.UNKNOWN_MEMBER_ID
    return group.check_member(leaving.member_id, leaving.group_instance_id)


def _left(leaving: LeaveGroupRequest.MemberIdentity, found: ConsumerMember | ErrorCode) -> _Left:
    return _Left(
        member_id=leaving.member_id,
        group_instance_id=leaving.group_instance_id,
        error_code=found if isinstance(found, ErrorCode) else ErrorCode.NONE,
    )
