"""What members of consumer groups ask for with their heartbeats, and what becomes of the group (KIP-848).

Theory of operation. A heartbeat is everything: joining (epoch 0), staying, leaving (-1, or -2 for a static member that
means to come back). In a heartbeat three things happen, each if there is a reason to:

    1. The member is written down as it is now. If the group now reads other topics, the group's epoch rises.
    2. If the group's epoch is ahead of the target's, a new target is computed for everybody: who is to have what. That
       is done at most every `consumer.assignment.interval.ms`, so that a crowd of newcomers costs one computation.
    3. The member takes its next step towards its target (see `reconciling`).

So there is no barrier: others learn of a new target with their own heartbeats, and nobody waits for anybody but for
the partitions that somebody else has to let go. A member that does not within its rebalance timeout, or is not heard of
within its session, is removed, and what it had is free.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.dataclass import replace
from ottla.base.ids import Uuid
from ottla.machines.coordinator import CoordinatorDecision, Timer
from ottla.machines.group.consumer.assignors import ASSIGNORS
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
    Target,
)
from ottla.machines.group.consumer.reconciling import Owned, reconciled
from ottla.machines.group.consumer.records import (
    current_written,
    epoch_written,
    member_tombstones,
    member_written,
    target_epoch_written,
    target_written,
)
from ottla.machines.group.consumer.subscriptions import Subscriptions, resolve
from ottla.machines.group.consumer.topic_regex import InvalidRegex
from ottla.machines.group.effects import Effects
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.configs import ResourceType
from ottla.machines.metadata.image import MetadataImage
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.machines.group.coordinator import GroupCoordinator


class _Member(NamedTuple):
    """The member that a heartbeat is of: as the group has it, or as it would be new; `replaces` is its old id."""

    member: ConsumerMember
    replaces: str | None = None


class ConsumerProtocol:
    """The groups are the coordinator's; each method is given one, and the effects to add to."""

    def __init__(self, settings: GroupSettings, image: MetadataImage) -> None:
        self._settings = settings
        self._image = image

    # Heartbeats

    def heartbeat(
        self, group: ConsumerGroup, request: Heartbeat, client: Client, effects: Effects, now_ms: int
    ) -> Reply | Refused:
        if request.member_epoch < JOINING:
            return self._leave(group, request, effects)
        if len(group.members) >= self._settings.consumer_max_size and request.member_id not in group.members:
            return Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {len(group.members)} members already")
        owned = owned_in(request)
        found = self._find(group, request, owned)
        if isinstance(found, Refused):
            return found
        updated = updated_by(found.member, request, client)
        members = {id: member for id, member in group.members.items() if id != found.replaces}
        members[updated.member_id] = updated
        before = len(effects.records)
        try:
            epoch, subscriptions = self._update_subscriptions(group, found, updated, members, effects, now_ms)
        except InvalidRegex as problem:
            return Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(problem))
        target_epoch, target = self._update_target(
            group, found, updated, members, epoch, subscriptions, effects, now_ms
        )
        reads = subscriptions.topic_ids(updated)
        stepped = reconciled(
            updated, target, target_epoch, owned, partial(_owner_epoch, group, found.replaces), reads=reads.__contains__
        )
        if stepped is None:
            del effects.records[before:]
            return Refused(ErrorCode.FENCED_MEMBER_EPOCH, "the member must abandon its partitions and join again")
        if stepped != updated or found.replaces is not None:
            effects.records.append(current_written(group.group_id, stepped))
            self._set_rebalance_timer(group, stepped, effects)
        if found.replaces not in (None, stepped.member_id):
            effects.timers += _no_timers(group.group_id, found.replaces)
        self.keep_session(group, stepped.member_id, effects)
        return self._reply(group, request, found.member, stepped)

    def _find(self, group: ConsumerGroup, request: Heartbeat, owned: Owned | None) -> _Member | Refused:
        if request.instance_id is not None:
            return self._find_static(group, request, request.instance_id, owned)
        member = group.members.get(request.member_id)
        if request.member_epoch == JOINING:
            return _Member(member or ConsumerMember(request.member_id))
        if member is None:
            return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{request.member_id} is not a member of {group.group_id}")
        return check_epoch(member, request.member_epoch, owned) or _Member(member)

    def _find_static(
        self, group: ConsumerGroup, request: Heartbeat, instance_id: str, owned: Owned | None
    ) -> _Member | Refused:
        known_id = group.static_ids.get(instance_id)
        known = group.members[known_id] if known_id is not None else None
        if request.member_epoch == JOINING:
            if known is None:
                return _Member(ConsumerMember(request.member_id))
            if known.epoch != LEAVING_FOR_A_WHILE and known.classic is None:
                return Refused(
                    ErrorCode.UNRELEASED_INSTANCE_ID, f"{instance_id} is in use by the member {known.member_id}"
                )
            fresh = replace(known, member_id=request.member_id, epoch=JOINING, previous_epoch=JOINING)
            return _Member(fresh, replaces=known.member_id)
        if known is None:
            return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"nobody has the instance id {instance_id}")
        if known.member_id != request.member_id:
            return Refused(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is used by the member {known.member_id} now")
        return check_epoch(known, request.member_epoch, owned) or _Member(known)

    def _update_subscriptions(
        self,
        group: ConsumerGroup,
        found: _Member,
        updated: ConsumerMember,
        members: Mapping[str, ConsumerMember],
        effects: Effects,
        now_ms: int,
    ) -> tuple[int, Subscriptions]:
        """The first step: the group's epoch after it, and what its members read."""
        group_id, old = group.group_id, found.member
        resolution = resolve(group, members.values(), self._image, now_ms, again=group.are_regexes_stale)
        if found.replaces is not None:
            effects.records += member_tombstones(group_id, found.replaces)
            effects.records.append(member_written(group_id, updated))
            effects.records.append(target_written(group_id, updated.member_id, group.target_of(found.replaces)))
            effects.records.append(current_written(group_id, updated))
        elif updated != old or old.member_id not in group.members:
            effects.records.append(member_written(group_id, updated))
        effects.records += resolution.records
        subscriptions = Subscriptions(group, members, resolution.regexes, self._image)
        has_changed = (
            updated.topic_names != old.topic_names
            or (updated.topic_regex or "") != (old.topic_regex or "")
            or resolution.has_changed
        )
        epoch = group.epoch
        if has_changed or group.is_metadata_stale:
            metadata_hash = subscriptions.metadata_hash
            if has_changed or metadata_hash != group.metadata_hash:
                epoch += 1
                effects.records.append(epoch_written(group_id, epoch, metadata_hash))
        was_stale = group.is_metadata_stale, group.are_regexes_stale
        group.is_metadata_stale = group.are_regexes_stale = False

        def undo(error: ErrorCode, now_ms: int) -> CoordinatorDecision[None]:
            group.is_metadata_stale, group.are_regexes_stale = was_stale
            return CoordinatorDecision(None)

        effects.undo = undo
        return epoch, subscriptions

    def _update_target(
        self,
        group: ConsumerGroup,
        found: _Member,
        updated: ConsumerMember,
        members: Mapping[str, ConsumerMember],
        epoch: int,
        subscriptions: Subscriptions,
        effects: Effects,
        now_ms: int,
    ) -> tuple[int, Target]:
        """The second step: the epoch of the target, and the member's own part of it."""
        target_ids = {} if found.replaces is None else {updated.member_id: found.replaces}
        known = group.target_of(target_ids.get(updated.member_id, updated.member_id))
        if epoch <= group.assignment_epoch or not self._may_assign(group, now_ms):
            return group.assignment_epoch, known
        candidates = subscriptions.candidates(target_ids)
        topic_ids = {topic_id for candidate in candidates for topic_id in candidate.topics}
        name = group.preferred_assignor(members.values()) or self._settings.default_assignor
        targets = ASSIGNORS[name](candidates, subscriptions.partition_counts(topic_ids))
        for member_id, target in targets.items():
            if target != group.target_of(target_ids.get(member_id, member_id)) or member_id not in group.target:
                effects.records.append(target_written(group.group_id, member_id, target))
        effects.records.append(target_epoch_written(group.group_id, epoch, now_ms))
        return epoch, targets[updated.member_id]

    def _may_assign(self, group: ConsumerGroup, now_ms: int) -> bool:
        interval_ms = self._setting(
            group.group_id, "consumer.assignment.interval.ms", self._settings.consumer_assignment_interval_ms
        )
        return group.assignment_timestamp_ms == 0 or now_ms >= group.assignment_timestamp_ms + interval_ms

    def _reply(self, group: ConsumerGroup, request: Heartbeat, before: ConsumerMember, after: ConsumerMember) -> Reply:
        """The assignment is told when it has changed, and to whoever says everything and so may know nothing."""
        assignment = None
        if says_everything(request) or _partitions(before) != _partitions(after):
            assignment = Reply.Assignment(
                topic_partitions=[
                    Reply.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in after.assigned.items()
                ]
            )
        interval_ms = self._setting(
            group.group_id, "consumer.heartbeat.interval.ms", self._settings.consumer_heartbeat_interval_ms
        )
        return Reply(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=interval_ms,
            assignment=assignment,
        )

    def _setting(self, group_id: str, name: str, otherwise: int) -> int:
        """A group may have settings of its own."""
        value = self._image.configs.of(ResourceType.GROUP, group_id).get(name)
        return otherwise if value is None else int(value)

    # Leaving

    def _leave(self, group: ConsumerGroup, request: Heartbeat, effects: Effects) -> Reply | Refused:
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
            self.remove(group, member, effects)
        return Reply(member_id=request.member_id, member_epoch=request.member_epoch)

    def remove(self, group: ConsumerGroup, member: ConsumerMember, effects: Effects) -> None:
        """Takes a member out: what it had is free, and the others get a new target."""
        left = {id: other for id, other in group.members.items() if id != member.member_id}
        resolution = resolve(group, left.values(), self._image, 0, again=False)
        subscriptions = Subscriptions(group, left, resolution.regexes, self._image)
        effects.records += member_tombstones(group.group_id, member.member_id)
        effects.records += resolution.records
        effects.records.append(epoch_written(group.group_id, group.epoch + 1, subscriptions.metadata_hash))
        effects.timers += _no_timers(group.group_id, member.member_id)

    # Timers

    def keep_session(self, group: ConsumerGroup, member_id: str, effects: Effects) -> None:
        """The member has been heard of."""
        timeout_ms = self._setting(
            group.group_id, "consumer.session.timeout.ms", self._settings.consumer_session_timeout_ms
        )
        expire = partial(_on_session_over, group.group_id, member_id)
        effects.timers.append(Timer(("session", group.group_id, member_id), timeout_ms, expire))

    @staticmethod
    def _set_rebalance_timer(group: ConsumerGroup, member: ConsumerMember, effects: Effects) -> None:
        name = "rebalance", group.group_id, member.member_id
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            expire = partial(_on_rebalance_timeout, group.group_id, member.member_id, member.epoch)
            effects.timers.append(Timer(name, member.rebalance_timeout_ms, expire))
        else:
            effects.timers.append(Timer(name))

    def on_loaded(self, group: ConsumerGroup, effects: Effects) -> None:
        for member in group.members.values():
            self.keep_session(group, member.member_id, effects)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._set_rebalance_timer(group, member, effects)


def _owner_epoch(group: ConsumerGroup, replaced_id: str | None, topic_id: Uuid, partition: int) -> int | None:
    """Nobody else has what a static member had before it came back under another id."""
    if replaced_id is not None:
        replaced = group.members[replaced_id]
        if partition in replaced.assigned.get(topic_id, {}):
            return None
    return group.owner_epoch(topic_id, partition)


def _partitions(member: ConsumerMember) -> dict[Uuid, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}


def _no_timers(group_id: str, member_id: str) -> list[Timer]:
    return [Timer(("session", group_id, member_id)), Timer(("rebalance", group_id, member_id))]


def _remove_if(
    coordinator: "GroupCoordinator", group_id: str, member_id: str, is_due: Callable[[ConsumerMember], bool]
) -> CoordinatorDecision[None]:
    effects = Effects()
    group = coordinator.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if isinstance(group, ConsumerGroup) and member is not None and is_due(member):
        coordinator.consumer.remove(group, member, effects)
    return effects.decision(None)


def _on_session_over(
    group_id: str, member_id: str, coordinator: "GroupCoordinator", _now_ms: int
) -> CoordinatorDecision[None]:
    return _remove_if(coordinator, group_id, member_id, lambda member: True)


def _on_rebalance_timeout(
    group_id: str, member_id: str, epoch: int, coordinator: "GroupCoordinator", _now_ms: int
) -> CoordinatorDecision[None]:
    """It has not given up what it was told to."""
    return _remove_if(coordinator, group_id, member_id, lambda member: member.epoch == epoch)
