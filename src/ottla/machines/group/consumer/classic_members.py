"""Members of a consumer group that speak the classic protocol, as those of a group that is being migrated do.

Theory of operation. To such a member the group looks like a classic one that it never leads. Its JoinGroup is its turn
(see `turn`): it says what it reads and what it has, and gets its epoch as the generation. Its SyncGroup gives it
what it has been assigned, in the bytes of the consumers' own protocol. With its heartbeats it learns that there is news
for it, as REBALANCE_IN_PROGRESS: a newer target, partitions to give up, or ones that have become free.

It must join again within its rebalance timeout when it is told to, and ask for its assignment within it when it has
joined. Its session is as long as it said.
"""

from collections.abc import Callable
from dataclasses import replace

from ottla.machines.coordinator_machine import CoordinatorDecision, Waiter
from ottla.machines.group.classic.joining import FIRST_WITH_REQUIRED_IDS, Join
from ottla.machines.group.consumer import timers
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.member import ClassicMetadata, ConsumerMember, MemberState
from ottla.machines.group.consumer.turn import ConsumerRules, Found, Turn
from ottla.machines.group.effects import Effects
from ottla.machines.group.embedded import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedEmbeddedProtocol,
    by_topic_id,
    read_subscription,
    version_of,
    written_assignment,
)
from ottla.machines.group.migration import Migration
from ottla.machines.group.settings import MigrationPolicy
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


class ClassicMembers:
    """The groups are the coordinator's; each method is given one that has members."""

    def __init__(self, rules: ConsumerRules, migration: Migration, new_id: Callable[[], str]) -> None:
        self._rules = rules
        self._migration = migration
        self._new_id = new_id

    # Joining

    def join(self, group: ConsumerGroup, join: Join) -> None:
        request, effects = join.request, join.effects
        member_id = request.member_id or self._new_id()
        error = self._refusal(group, request, member_id)
        if error:
            effects.answer(join.waiter, error)
        elif _must_ask_again(join):
            required = JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED)
            effects.answer(join.waiter, required)
        else:
            found = _find(group, request, member_id)
            if isinstance(found, ErrorCode):
                effects.answer(join.waiter, found)
            else:
                self._take_turn(group, join, found)

    def _refusal(self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> ErrorCode:
        settings = self._rules.settings
        if settings.migration_policy is MigrationPolicy.DISABLED:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if len(group.members) >= settings.consumer_max_size and member_id not in group.members:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not group.supports_classic(request.protocol_type, [offered.name for offered in request.protocols]):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _take_turn(self, group: ConsumerGroup, join: Join, found: Found) -> None:
        request, effects = join.request, join.effects
        try:
            subscription = read_subscription(bytes(request.protocols[0].metadata))
        except MalformedEmbeddedProtocol:
            effects.answer(join.waiter, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        turn = Turn(group, found, _updated(found.member, join, subscription), self._rules, join.now_ms)
        is_last = self._migration.may_downgrade_replacing(group, group.static_member(request.group_instance_id))
        is_stale = group.assignment_epoch < turn.epoch
        if not is_last:
            turn.update_target()
        stepped: ConsumerMember | None = turn.updated
        if not (is_last and is_stale):
            stepped = turn.reconcile(by_topic_id(subscription.owned_partitions, self._rules.image))
        if stepped is None:
            effects.answer(join.waiter, ErrorCode.FENCED_MEMBER_EPOCH)
            return
        turn.hand_over(effects)
        self._set_timers_of_join(group, found, join)
        if is_last:
            self._migration.downgrade(group, effects, join.now_ms, joining=stepped, rebalance=is_stale)
        effects.answer(join.waiter, _joined(stepped))

    @staticmethod
    def _set_timers_of_join(group: ConsumerGroup, found: Found, join: Join) -> None:
        request, effects = join.request, join.effects
        group_id, member_id = group.group_id, found.member.member_id
        if found.replaces is not None:
            effects.timers += timers.none(group_id, found.replaces)
        group.rejoining.discard(member_id)
        effects.timers += (
            timers.no_rejoin(group_id, member_id),
            timers.no_revocation(group_id, member_id),
            timers.session(group_id, member_id, request.session_timeout_ms),
            timers.sync(group_id, member_id, request.rebalance_timeout_ms),
        )

    # Syncing

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, waiter: Waiter, effects: Effects) -> None:
        member = _checked(group, request)
        if isinstance(member, ErrorCode):
            effects.answer(waiter, member)
            return
        assert member.classic is not None, "it has been checked"
        name, metadata = member.classic.protocols[0]
        is_other_type = request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
        if is_other_type or request.protocol_name not in (None, name):
            effects.answer(waiter, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_rejoin(group, member, effects)
            effects.answer(waiter, ErrorCode.REBALANCE_IN_PROGRESS)
        else:
            effects.timers.append(timers.no_sync(group.group_id, member.member_id))
            _keep_session(group, member, effects)
            reply = SyncGroupResponse(
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignment=written_assignment(member.assigned, self._rules.image, version_of(metadata)),
            )
            effects.answer(waiter, reply)

    # Heartbeats

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> CoordinatorDecision[HeartbeatResponse]:
        member = _checked(group, request)
        if isinstance(member, ErrorCode):
            return CoordinatorDecision(HeartbeatResponse(error_code=member))
        effects = Effects()
        _keep_session(group, member, effects)
        has_news = _has_news(group, member)
        if has_news:
            self._expect_rejoin(group, member, effects)
        return effects.decision(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if has_news else 0))

    @staticmethod
    def _expect_rejoin(group: ConsumerGroup, member: ConsumerMember, effects: Effects) -> None:
        """It hears it, perhaps not for the first time: the time runs from the first."""
        if member.member_id not in group.rejoining:
            group.rejoining.add(member.member_id)
            effects.timers.append(timers.rejoin(group.group_id, member))


def _must_ask_again(join: Join) -> bool:
    """A newcomer is given an id first (KIP-394). Nothing is kept of that: any id that comes back is taken."""
    request = join.request
    is_new = not request.member_id and request.group_instance_id is None
    return is_new and join.client.api_version >= FIRST_WITH_REQUIRED_IDS


def _find(group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> Found | ErrorCode:
    if request.group_instance_id is None:
        return Found(group.members.get(member_id) or ConsumerMember(member_id))
    if request.member_id:
        member = group.check_member(member_id, request.group_instance_id)
        return member if isinstance(member, ErrorCode) else Found(member)
    known = group.static_member(request.group_instance_id)
    if known is None:
        return Found(ConsumerMember(member_id))
    return Found(known.under(member_id), replaces=known.member_id)


def _updated(member: ConsumerMember, join: Join, subscription: ConsumerProtocolSubscription) -> ConsumerMember:
    request, client = join.request, join.client
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        client_id=client.client_id,
        client_host=client.client_host,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        classic=ClassicMetadata(
            request.session_timeout_ms, tuple((offered.name, bytes(offered.metadata)) for offered in request.protocols)
        ),
    )


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    """Nobody leads: the coordinator divides the work."""
    assert member.classic is not None, "it has joined with a JoinGroup"
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.protocol_names[0],
        member_id=member.member_id,
    )


def _checked(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> ConsumerMember | ErrorCode:
    """The member that asks, if it speaks the classic protocol and knows its epoch."""
    member = group.check_member(request.member_id, request.group_instance_id)
    if isinstance(member, ErrorCode):
        return member
    if member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member if request.generation_id == member.epoch else ErrorCode.ILLEGAL_GENERATION


def _has_news(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether it is to join again: a newer target, partitions to give up, or ones that have become free."""
    if member.epoch < group.assignment_epoch:
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if group.lacks_only_free_partitions(member):
            return True
    # A new target is computed in somebody's turn; where all speak the classic protocol, only a JoinGroup is one. Kafka
    # does not call for it: what a member that has gone had would be read by nobody until somebody happens to join.
    return group.epoch > group.assignment_epoch and all(other.classic for other in group.members.values())


def _keep_session(group: ConsumerGroup, member: ConsumerMember, effects: Effects) -> None:
    assert member.classic is not None, "sessions of others are the group's"
    effects.timers.append(timers.session(group.group_id, member.member_id, member.classic.session_timeout_ms))
