"""Turning a group into one of the other kind while it has members (KIP-848, `group.consumer.migration.policy`).

Upgrade: somebody joins a classic group of consumers with the consumer protocol. The group's last generation becomes the
epoch of everything: of the group, of its target and of its members, who have what their leader gave them. They continue
speaking the classic protocol, to the coordinator of a consumer group (see `consumer.classic_members`).

Downgrade: the last who speaks the consumer protocol goes, or a static member comes back in its place that speaks the
classic one. The group's epoch becomes the generation, and what members were to have is what they are given.

Both are a few records, in one batch: the old group's tombstones and the new group. So there is never half of one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from ottla.machines.coordinator_machine import Answer, CoordinatorDecision, CoordinatorRecord
from ottla.machines.group.classic import timers
from ottla.machines.group.classic.group import ClassicGroup, ClassicState
from ottla.machines.group.classic.member import ClassicMember, Protocol
from ottla.machines.group.classic.rebalance import Rebalance
from ottla.machines.group.classic.replies import rejoin
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.heartbeats import Refused
from ottla.machines.group.consumer.member import ClassicMetadata, ConsumerMember, MemberState, Target
from ottla.machines.group.consumer.records import (
    current_written,
    epoch_written,
    group_tombstones,
    member_written,
    target_epoch_written,
    target_written,
)
from ottla.machines.group.consumer.replay import replay_consumer_record
from ottla.machines.group.consumer.timers import none, session
from ottla.machines.group.consumer.topic_hash import group_hash
from ottla.machines.group.effects import Effects
from ottla.machines.group.embedded import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedEmbeddedProtocol,
    by_topic_id,
    read_assignment,
    read_subscription,
    version_of,
    written_assignment,
)
from ottla.machines.group.records import group_written
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.machines.group.group_coordinator import GroupCoordinator

_NEVER_ASSIGNED_MS = 0
"""So the newcomer's target need not wait for `consumer.assignment.interval.ms`."""


class Migration:
    """The groups are the coordinator's; each method is given one, and the effects to add to."""

    def __init__(self, settings: GroupSettings, image: MetadataImage, rebalance: Rebalance) -> None:
        self._settings = settings
        self._image = image
        self._rebalance = rebalance

    # From classic to consumer

    def upgrade(self, group: ClassicGroup, effects: Effects) -> ConsumerGroup | Refused:
        """The group as its records will make it. The old one stays as it is until they are written."""
        problem = self._problem_of_upgrade(group)
        if problem is None:
            try:
                records = self._upgrade_records(group)
            except MalformedEmbeddedProtocol as malformed:
                problem = f"its members do not speak as consumers do: {malformed}"
            except _CustomAssignor:
                problem = "its assignor keeps data of its own with the assignments, which would be lost"
        if problem is not None:
            return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{group.group_id} cannot become a consumer group: {problem}")
        effects.records += records
        effects.timers += (timers.no_barrier(group), timers.no_sync(group))
        effects.timers += [timers.no_session(group, member_id) for member_id in sorted(group.pending)]
        for member in group.members.values():
            effects.timers.append(session(group.group_id, member.member_id, member.session_timeout_ms))
        effects.followed_by = partial(_after_upgrade, group)
        return _replayed(group.group_id, records)

    def _problem_of_upgrade(self, group: ClassicGroup) -> str | None:
        if not self._settings.migration_policy.allows_upgrade:
            return "group.consumer.migration.policy does not allow it"
        if not group.uses_consumer_protocol:
            return f"it is one of {group.protocol_type or 'nobody'}"
        if len(group.members) > self._settings.consumer_max_size:
            return "it is too large"
        return None

    def _upgrade_records(self, group: ClassicGroup) -> list[CoordinatorRecord]:
        # While a group gathers, the member that came last need not have the protocol of the generation before; and
        # while it gathers for the first time there is none, which Kafka fails at.
        is_chosen = group.protocol is not None and group.state is not ClassicState.PREPARING_REBALANCE
        protocol = group.protocol if is_chosen else group.select_protocol()
        members = [self._upgraded(member, group.generation, protocol) for member in group.members.values()]
        group_id, epoch = group.group_id, group.generation
        topics = frozenset[str]().union(*(member.topic_names for member in members))
        return [
            *group.tombstones(),
            *(member_written(group_id, member) for member in members),
            epoch_written(group_id, epoch, group_hash(self._image, topics)),
            *(target_written(group_id, member.member_id, _target(member)) for member in members),
            target_epoch_written(group_id, epoch, _NEVER_ASSIGNED_MS),
            *(current_written(group_id, member) for member in members),
        ]

    def _upgraded(self, member: ClassicMember, generation: int, protocol: str | None) -> ConsumerMember:
        subscription = read_subscription(member.metadata(protocol))
        assigned = {}
        if member.assignment:
            assignment = read_assignment(member.assignment)
            if assignment.user_data:
                raise _CustomAssignor
            assigned = by_topic_id(assignment.assigned_partitions, self._image)
        return ConsumerMember(
            member.member_id,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=frozenset(subscription.topics),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMetadata(member.session_timeout_ms, tuple((name, data) for name, data in member.protocols)),
            epoch=generation,
            previous_epoch=generation,
            state=MemberState.STABLE,
            assigned={topic_id: dict.fromkeys(sorted(indexes), generation) for topic_id, indexes in assigned.items()},
        )

    # From consumer to classic

    def may_downgrade_without(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Whether these are the last who speak the consumer protocol, and others remain."""
        gone = {member.member_id for member in leaving}
        left = [member for member in group.members.values() if member.member_id not in gone]
        return bool(left) and self._may_be_classic(left, len(left))

    def may_downgrade_replacing(self, group: ConsumerGroup, replaced: ConsumerMember | None) -> bool:
        """The same for a static member in whose place one comes that speaks the classic protocol."""
        if replaced is None or replaced.classic is not None:
            return False
        others = [member for member in group.members.values() if member is not replaced]
        return self._may_be_classic(others, len(group.members))

    def _may_be_classic(self, members: Iterable[ConsumerMember], size: int) -> bool:
        return (
            self._settings.migration_policy.allows_downgrade
            and size <= self._settings.max_size
            and all(member.classic is not None for member in members)
        )

    def downgrade(
        self,
        group: ConsumerGroup,
        effects: Effects,
        now_ms: int,
        *,
        leaving: Collection[ConsumerMember] = (),
        joining: ConsumerMember | None = None,
        rebalance: bool = True,
    ) -> None:
        """Without the members that leave; `joining` comes in the place of the static member of its instance.

        The records make the classic group; what it has beside them follows (`on_downgraded`).
        """
        group_id = group.group_id
        gone = {member.member_id for member in leaving}
        new_ids: dict[str, str] = {}
        if joining is not None:
            replaced = group.static_member(joining.instance_id)
            assert replaced is not None, "who joins comes in the place of a static member"
            gone.add(replaced.member_id)
            new_ids[replaced.member_id] = joining.member_id
        members = [member for member in group.members.values() if member.member_id not in gone]
        members += [joining] if joining is not None else []
        classic = self._downgraded(group, members, {new: old for old, new in new_ids.items()}, now_ms)
        effects.records += group_tombstones(group_id, [new_ids.get(id, id) for id in group.members], group.regexes)
        given = {member.member_id: member.assignment for member in classic.members.values()}
        effects.records.append(group_written(group_id, classic.record(given)))
        for member in classic.members.values():
            effects.timers += none(group_id, member.member_id)
        offered = {member.member_id: member.protocols for member in classic.members.values()}
        effects.followed_by = partial(_after_downgrade, group_id, offered, rebalance)

    def on_downgraded(
        self,
        group: ClassicGroup,
        offered: Mapping[str, Sequence[Protocol]],
        effects: Effects,
        now_ms: int,
        *,
        rebalance: bool,
    ) -> None:
        """What is not in the record: all protocols that the members have, and their sessions."""
        for member in group.members.values():
            group.update(member, offered[member.member_id], member.rebalance_timeout_ms, member.session_timeout_ms)
            self._rebalance.keep_session(group, member, effects)
        if rebalance:
            self._rebalance.prepare(group, effects, now_ms)

    def _downgraded(
        self, group: ConsumerGroup, members: Iterable[ConsumerMember], target_ids: Mapping[str, str], now_ms: int
    ) -> ClassicGroup:
        """`target_ids` says under which id a member's target is found, if not under its own."""
        classic = ClassicGroup(group.group_id, now_ms)
        classic.state = ClassicState.STABLE
        classic.generation = group.epoch
        for member in members:
            classic.add(_downgraded_member(member))
        classic.protocol = classic.select_protocol()
        classic.subscribed = classic.find_subscribed_topics()
        for member_id, given in classic.members.items():
            target = group.target_of(target_ids.get(member_id, member_id))
            given.assignment = written_assignment(target, self._image, version_of(given.metadata(classic.protocol)))
        return classic


def _after_upgrade(group: ClassicGroup, _coordinator: "GroupCoordinator", _now_ms: int) -> CoordinatorDecision[None]:
    """Members that wait for a rebalance of the classic group are to join the consumer group."""
    return CoordinatorDecision(None, answers=[*chain.from_iterable(map(_sent_back, group.members.values()))])


def _after_downgrade(
    group_id: str,
    offered: Mapping[str, Sequence[Protocol]],
    rebalance: bool,
    coordinator: "GroupCoordinator",
    now_ms: int,
) -> CoordinatorDecision[None]:
    migration = coordinator.members.migration
    return coordinator.members.with_classic(
        group_id,
        lambda group, effects: migration.on_downgraded(group, offered, effects, now_ms, rebalance=rebalance),
    )


class _CustomAssignor(Exception):
    """There is something in an assignment that only the members' own assignor understands."""


def _sent_back(member: ClassicMember) -> Iterable[Answer]:
    if member.waits_for_join is not None:
        yield Answer(member.waits_for_join, rejoin(member))
    if member.waits_for_sync is not None:
        yield Answer(member.waits_for_sync, ErrorCode.REBALANCE_IN_PROGRESS)


def _replayed(group_id: str, records: Iterable[CoordinatorRecord]) -> ConsumerGroup:
    groups: dict[str, ClassicGroup | ConsumerGroup] = {}
    for key, value, _ in records:
        replay_consumer_record(groups, key, value)
    group = groups[group_id]
    assert isinstance(group, ConsumerGroup), "these are records of a consumer group"
    return group


def _target(member: ConsumerMember) -> Target:
    return {topic_id: frozenset(indexes) for topic_id, indexes in member.assigned.items()}


def _downgraded_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "only members that speak the classic protocol are left"
    return ClassicMember(
        member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=[Protocol(name, metadata) for name, metadata in member.classic.protocols],
    )
