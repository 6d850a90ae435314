"""A consumer group as its records have made it: who is in it, who is to have what, and who has what.

`replay_…` alone changes it. Some things are not in the log. Two say that something is to be looked at again with the
next heartbeat: `is_metadata_stale`, when topics may have changed, and `are_regexes_stale`, when some came or went; both
are set again when what was found could not be written. `rejoining` are members that speak the classic protocol and have
been told to join again: the time for that runs. Two only save work. `hashed` are the topics that the group read when
their hash was last worked out, and the hash. `has_even_target` says that the target was divided evenly among members
that all read the same, so that a newcomer's share can be taken from it (`newcomers`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ottla.base.ids import Uuid
from ottla.machines.coordinator_machine import CoordinatorRecord
from ottla.machines.group.consumer.member import (
    LEAVING,
    NO_TARGET,
    NOTHING_ASSIGNED,
    ConsumerMember,
    MemberState,
    Subscription,
    Target,
    assigned_of,
    classic_metadata,
)
from ottla.machines.group.consumer.records import group_tombstones
from ottla.machines.group.embedded import CONSUMER_PROTOCOL_TYPE
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)

FIRST_EPOCH = 1
_NO_EPOCH = -1
_FIRST_COMMIT_WITH_EPOCHS = 9


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression stood for, as of a version of the metadata."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


class ConsumerGroup:
    TYPE = "consumer"

    __slots__ = (
        "_owners",
        "are_regexes_stale",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "assignors",
        "epoch",
        "group_id",
        "has_even_target",
        "hashed",
        "is_metadata_stale",
        "members",
        "metadata_hash",
        "regexes",
        "rejoining",
        "static_ids",
        "subscriptions",
        "target",
        "target_sizes",
        "target_topics",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = self.assignment_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.hashed: tuple[frozenset[str], int] | None = None
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_ids: dict[str, str] = {}
        self.subscriptions: dict[Subscription, int] = {}
        self.assignors: dict[str, int] = {}
        self.target: dict[str, Target] = {}
        self.target_sizes: dict[int, dict[str, None]] = {}
        self.target_topics: dict[Uuid, int] = {}
        self.has_even_target = False
        self.regexes: dict[str, ResolvedRegex] = {}
        self.is_metadata_stale = True
        self.are_regexes_stale = True
        self.rejoining: set[str] = set()
        self._owners: dict[tuple[Uuid, int], int] = {}

    # Replaying

    def replay_epoch(self, value: ConsumerGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        if value is None:
            self._remove(member_id)
            return
        member = self.members.get(member_id) or ConsumerMember(member_id)
        self._put(
            replace(
                member,
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                topic_names=frozenset(value.subscribed_topic_names),
                topic_regex=value.subscribed_topic_regex,
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                assignor=value.server_assignor,
                classic=classic_metadata(value.classic_member_metadata),
            )
        )

    def replay_target_epoch(self, value: ConsumerGroupTargetAssignmentMetadataValue) -> None:
        self.assignment_epoch = value.assignment_epoch
        self.assignment_timestamp_ms = value.assignment_timestamp

    def replay_target(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
        known = self.target.pop(member_id, None)
        if known is not None:
            self._count_target(member_id, known, -1)
        if value is not None:
            target = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
            self.target[member_id] = target
            self._count_target(member_id, target, 1)

    def _count_target(self, member_id: str, target: Target, by: int) -> None:
        """Keeps up how many partitions members are to have, and how many of each topic are given out."""
        size = 0
        for topic_id, partitions in target.items():
            size += len(partitions)
            self.target_topics[topic_id] = self.target_topics.get(topic_id, 0) + by * len(partitions)
            if not self.target_topics[topic_id]:
                del self.target_topics[topic_id]
        if by > 0:
            self.target_sizes.setdefault(size, {})[member_id] = None
        else:
            del self.target_sizes[size][member_id]
            if not self.target_sizes[size]:
                del self.target_sizes[size]

    def replay_current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        member = self.members.get(member_id)
        if value is None:
            if member is not None:
                self._put(replace(member, epoch=LEAVING, assigned=NOTHING_ASSIGNED, revoking=NOTHING_ASSIGNED))
            return
        self._put(
            replace(
                member or ConsumerMember(member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=_state(value.state),
                assigned=assigned_of(value.assigned_partitions, value.member_epoch),
                revoking=assigned_of(value.partitions_pending_revocation, value.member_epoch),
            )
        )

    def replay_regex(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        if value is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)

    def _put(self, member: ConsumerMember) -> None:
        known = self.members.get(member.member_id)
        self._disown(member.member_id)
        self.members[member.member_id] = member
        gone = [known] if known is not None else []
        if known is None or known.subscription != member.subscription:
            self.subscriptions = self.subscriptions_after(gone, member)
        if known is None or known.assignor != member.assignor:
            self.assignors = self.assignors_after(gone, member)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        for place in member.partitions:
            self._owners[place] = member.epoch

    def _remove(self, member_id: str) -> None:
        self._disown(member_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            self.subscriptions = self.subscriptions_after([member])
            self.assignors = self.assignors_after([member])
        self.rejoining.discard(member_id)
        instance_id = member.instance_id if member is not None else None
        if instance_id is not None and self.static_ids.get(instance_id) == member_id:
            del self.static_ids[instance_id]

    def _disown(self, member_id: str) -> None:
        member = self.members.get(member_id)
        for place in member.partitions if member is not None else ():
            self._owners.pop(place, None)

    # Asking

    def owner_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The epoch of the member that has a partition; None: nobody has."""
        return self._owners.get((topic_id, partition))

    def lacks_only_free_partitions(self, member: ConsumerMember) -> bool:
        """Whether everything that it is to have and does not have is nobody's by now."""
        return all(
            partition in member.assigned.get(topic_id, ()) or self.owner_epoch(topic_id, partition) is None
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.static_ids.get(instance_id) if instance_id is not None else None
        return self.members[member_id] if member_id is not None else None

    def check_member(self, member_id: str, instance_id: str | None) -> ConsumerMember | ErrorCode:
        """The member that this is, by its id, which must be that of its instance if it says one."""
        if instance_id is None:
            return self.members.get(member_id) or ErrorCode.UNKNOWN_MEMBER_ID
        member = self.static_member(instance_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member if member.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID

    def supports_classic(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Whether somebody who speaks the classic protocol and offers these could be a member."""
        classic = [member.classic for member in self.members.values() if member.classic is not None]
        return protocol_type == CONSUMER_PROTOCOL_TYPE and any(
            all(name in of_member.protocol_names for of_member in classic) for name in protocols
        )

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def listed_protocol_type(self) -> str:
        return "consumer"

    def subscriptions_after(
        self, gone: Iterable[ConsumerMember], joining: ConsumerMember | None = None
    ) -> dict[Subscription, int]:
        """How many have each subscription when these are gone, and this one is a member as it is now."""
        left = [member.subscription for member in gone]
        return _counts_after(self.subscriptions, left, joining.subscription if joining is not None else None)

    def assignors_after(self, gone: Iterable[ConsumerMember], joining: ConsumerMember | None = None) -> dict[str, int]:
        """The same of the assignors that members ask for. Most ask for none."""
        left = [member.assignor for member in gone if member.assignor is not None]
        return _counts_after(self.assignors, left, joining.assignor if joining is not None else None)

    def topics_of(
        self, subscription: Subscription, regexes: Mapping[str, ResolvedRegex] | None = None
    ) -> frozenset[str]:
        """What is read with it: the topics it names, and those that its regular expression stands for."""
        names, regex = subscription
        known = self.regexes if regexes is None else regexes
        resolved = known.get(regex) if regex else None
        return names if resolved is None else names | resolved.topics

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(subscription) for subscription in self.subscriptions)

    def reads_any_of(self, topics: Iterable[str]) -> bool:
        names = set(topics)
        return any(not names.isdisjoint(self.topics_of(subscription)) for subscription in self.subscriptions)

    def target_of(self, member_id: str) -> Target:
        return self.target.get(member_id, NO_TARGET)

    # Offsets

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
        partitions: Iterable[tuple[Uuid, int]] = (),
    ) -> ErrorCode:
        """A member may commit in an earlier epoch of its own what it has had since then."""
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        if is_transactional and epoch == _NO_EPOCH and not member_id and instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not is_transactional and member.classic is None and api_version < _FIRST_COMMIT_WITH_EPOCHS:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.epoch or (
            epoch < member.epoch and all(epoch >= member.has_since(*place) for place in partitions)
        ):
            return ErrorCode.NONE
        return member.wrong_epoch

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else member.wrong_epoch

    def check_deletion_of_offsets(self) -> ErrorCode:
        return ErrorCode.NONE

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def offsets_run_since(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    def tombstones(self) -> Iterator[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members, self.regexes)


KeyT = TypeVar("KeyT")


def _counts_after(counts: Mapping[KeyT, int], gone: Iterable[KeyT], came: KeyT | None) -> dict[KeyT, int]:
    after = dict(counts)
    for key in gone:
        after[key] -= 1
        if not after[key]:
            del after[key]
    if came is not None:
        after[came] = after.get(came, 0) + 1
    return after


def most_wanted(assignors: Mapping[str, int]) -> str | None:
    """The assignor that most members ask for; None if none asks."""
    return max(assignors, key=lambda name: assignors[name], default=None)


def _state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN
