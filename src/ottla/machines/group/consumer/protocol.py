"""What members of consumer groups ask for with their heartbeats, and what becomes of the group (KIP-848).

Theory of operation. A heartbeat is everything: joining (epoch 0), staying, leaving (-1, or -2 for a static member that
means to come back). With each the member has its turn (see `turn`): it is written down, a new target is computed if
there is a reason to, and it takes its next step towards it.

So there is no barrier: others learn of a new target with their own heartbeats, and nobody waits for anybody but for
the partitions that somebody else has to let go. A member that does not within its rebalance timeout, or is not heard of
within its session, is removed, and what it had is free. If all that remain speak the classic protocol, the group
becomes a classic one with that (see `migration`).
"""

from collections.abc import Collection
from dataclasses import replace

from ottla.base.ids import Uuid
from ottla.machines.coordinator_machine import Timer
from ottla.machines.group.consumer import timers
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.heartbeats import (
    Client,
    Heartbeat,
    Refused,
    Reply,
    check_epoch,
    owned_in,
    says_everything,
    updated_by,
)
from ottla.machines.group.consumer.member import (
    JOINING,
    LEAVING_FOR_A_WHILE,
    NOTHING_ASSIGNED,
    ConsumerMember,
    MemberState,
)
from ottla.machines.group.consumer.reconciling import Owned
from ottla.machines.group.consumer.records import current_written, epoch_written, member_tombstones
from ottla.machines.group.consumer.subscriptions import Subscriptions, resolve
from ottla.machines.group.consumer.turn import ConsumerRules, Found, Turn
from ottla.machines.group.effects import Effects
from ottla.machines.group.migration import Migration
from ottla.machines.patterns import InvalidPattern
from ottla.wire.errors import ErrorCode


class ConsumerProtocol:
    """The groups are the coordinator's; each method is given one, and the effects to add to."""

    def __init__(self, rules: ConsumerRules, migration: Migration) -> None:
        self._rules = rules
        self._migration = migration

    # Heartbeats

    def heartbeat(
        self, group: ConsumerGroup, request: Heartbeat, client: Client, effects: Effects, now_ms: int
    ) -> Reply | Refused:
        if request.member_epoch < JOINING:
            return self._leave(group, request, effects, now_ms)
        if len(group.members) >= self._rules.settings.consumer_max_size and request.member_id not in group.members:
            return Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {len(group.members)} members already")
        owned = owned_in(request)
        found = self._find(group, request, owned)
        if isinstance(found, Refused):
            return found
        try:
            turn = Turn(
                group, found, updated_by(found.member, request, client), self._rules, now_ms, client.may_describe
            )
        except InvalidPattern as problem:
            regex = request.subscribed_topic_regex
            what = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}."
            return Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, what)
        turn.update_target()
        stepped = turn.reconcile(owned)
        if stepped is None:
            return Refused(ErrorCode.FENCED_MEMBER_EPOCH, "the member must abandon its partitions and join again")
        turn.hand_over(effects)
        self._forget_old_timers(group, found, effects)
        if stepped != turn.updated or found.replaces is not None:
            effects.timers.append(self._revocation_timer(group, stepped))
        self.keep_session(group, stepped.member_id, effects)
        return self._reply(group, request, found.member, stepped)

    def _find(self, group: ConsumerGroup, request: Heartbeat, owned: Owned | None) -> Found | Refused:
        if request.instance_id is not None:
            return self._find_static(group, request, request.instance_id, owned)
        member = group.members.get(request.member_id)
        if request.member_epoch == JOINING:
            return Found(member or ConsumerMember(request.member_id))
        if member is None:
            return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{request.member_id} is not a member of {group.group_id}")
        return check_epoch(member, request.member_epoch, owned) or Found(member)

    def _find_static(
        self, group: ConsumerGroup, request: Heartbeat, instance_id: str, owned: Owned | None
    ) -> Found | Refused:
        known = group.static_member(instance_id)
        if request.member_epoch == JOINING:
            if known is None:
                return Found(ConsumerMember(request.member_id))
            if known.epoch != LEAVING_FOR_A_WHILE and known.classic is None:
                return Refused(
                    ErrorCode.UNRELEASED_INSTANCE_ID, f"{instance_id} is in use by the member {known.member_id}"
                )
            return Found(known.under(request.member_id), replaces=known.member_id)
        if known is None:
            return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"nobody has the instance id {instance_id}")
        if known.member_id != request.member_id:
            return Refused(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is used by the member {known.member_id} now")
        return check_epoch(known, request.member_epoch, owned) or Found(known)

    def _reply(self, group: ConsumerGroup, request: Heartbeat, before: ConsumerMember, after: ConsumerMember) -> Reply:
        """The assignment is in the reply if it has changed, or if the member says everything, so may know nothing."""
        assignment = None
        if says_everything(request) or _partitions(before) != _partitions(after):
            assignment = Reply.Assignment(
                topic_partitions=[
                    Reply.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in after.assigned.items()
                ]
            )
        return Reply(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._rules.heartbeat_interval_ms(group.group_id),
            assignment=assignment,
        )

    # Leaving

    def _leave(self, group: ConsumerGroup, request: Heartbeat, effects: Effects, now_ms: int) -> Reply | Refused:
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            known_id = group.static_ids.get(request.instance_id)
            if known_id is None:
                return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"nobody has the instance id {request.instance_id}")
            if known_id != request.member_id:
                return Refused(ErrorCode.FENCED_INSTANCE_ID, f"{request.instance_id} is used by {known_id} now")
        if member is None:
            return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{request.member_id} is not a member of {group.group_id}")
        if request.instance_id is not None and request.member_epoch == LEAVING_FOR_A_WHILE:
            # Whatever epoch it comes back in, what it has is its own since before that.
            assigned = {topic_id: dict.fromkeys(indexes, 0) for topic_id, indexes in member.assigned.items()}
            away = replace(member, epoch=LEAVING_FOR_A_WHILE, assigned=assigned, revoking=NOTHING_ASSIGNED)
            effects.records.append(current_written(group.group_id, away))
        else:
            self.fence(group, [member], effects, now_ms)
        return Reply(member_id=request.member_id, member_epoch=request.member_epoch)

    def fence(self, group: ConsumerGroup, members: Collection[ConsumerMember], effects: Effects, now_ms: int) -> None:
        """Takes members out: what they had is free, and the others get a new target, or are a classic group now."""
        for member in members:
            effects.timers += timers.none(group.group_id, member.member_id)
        if self._migration.may_downgrade_without(group, members):
            self._migration.downgrade(group, effects, now_ms, leaving=members)
            return
        left = group.subscriptions_after(members)
        resolution = resolve(group, left, self._rules.image, 0, again=False)
        subscriptions = Subscriptions(group, left, resolution.regexes, self._rules.image)
        for member in members:
            effects.records += member_tombstones(group.group_id, member.member_id)
        effects.records += resolution.records
        effects.records.append(epoch_written(group.group_id, group.epoch + 1, subscriptions.metadata_hash))

    # Timers

    def keep_session(self, group: ConsumerGroup, member_id: str, effects: Effects) -> None:
        """The member has been heard of."""
        timeout_ms = self._rules.session_timeout_ms(group.group_id)
        effects.timers.append(timers.session(group.group_id, member_id, timeout_ms))

    @staticmethod
    def _forget_old_timers(group: ConsumerGroup, found: Found, effects: Effects) -> None:
        """Those of a member under its old id, and those that only members have who speak the classic protocol."""
        if found.replaces is not None:
            effects.timers += timers.none(group.group_id, found.replaces)
        elif found.member.classic is not None:
            group.rejoining.discard(found.member.member_id)
            effects.timers.append(timers.no_rejoin(group.group_id, found.member.member_id))
            effects.timers.append(timers.no_sync(group.group_id, found.member.member_id))

    @staticmethod
    def _revocation_timer(group: ConsumerGroup, member: ConsumerMember) -> Timer:
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            return timers.revocation(group.group_id, member)
        return timers.no_revocation(group.group_id, member.member_id)

    def on_loaded(self, group: ConsumerGroup, effects: Effects) -> None:
        """Whatever protocol a member speaks: it has a session to be heard of in."""
        for member in group.members.values():
            self.keep_session(group, member.member_id, effects)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                effects.timers.append(timers.revocation(group.group_id, member))


def _partitions(member: ConsumerMember) -> dict[Uuid, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}
