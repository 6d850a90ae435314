"""A member of a consumer group, as its records say. Members never change: a record makes a new one.

Epochs. The group's epoch rises with everything that calls for another assignment; a member's epoch is that of the
assignment it has come to. `previous_epoch` is the one before: a member whose last reply was lost still has it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.base.ids import Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
"""The epoch of a static member that has left and means to come back."""

Assigned = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic, each with the epoch in which the member was given it."""

Target = Mapping[Uuid, frozenset[int]]
"""Partitions by topic that a member is to have."""

Subscription = tuple[frozenset[str], str | None]
"""Topics by name, and those that a regular expression stands for. Most members of a group have the same."""

NOTHING_ASSIGNED: Final[Assigned] = MappingProxyType({})
NO_TARGET: Final[Target] = MappingProxyType({})

TopicPartitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions


class MemberState(IntEnum):
    """How far a member is on its way to its target. The numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has partitions to give up first."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have not given up yet."""
    UNKNOWN = 127


class ClassicMetadata(NamedTuple):
    """What a member that speaks the classic protocol has said in its JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]

    @property
    def protocol_names(self) -> list[str]:
        return [name for name, _ in self.protocols]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member of a group of the consumer protocol (KIP-848), as it was last written."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=lambda: NOTHING_ASSIGNED)
    revoking: Assigned = field(default_factory=lambda: NOTHING_ASSIGNED)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def under(self, member_id: str) -> "ConsumerMember":
        """A static member that is back under another id, and has all that it had."""
        return replace(self, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)

    @property
    def subscription(self) -> Subscription:
        return self.topic_names, self.topic_regex

    @property
    def wrong_epoch(self) -> ErrorCode:
        """What it gets when it comes with another epoch than its own, in the words of its protocol."""
        return ErrorCode.STALE_MEMBER_EPOCH if self.classic is None else ErrorCode.ILLEGAL_GENERATION

    def has_since(self, topic_id: Uuid, partition: int) -> int:
        """The epoch in which it was given a partition; one that it has not is taken as given in no past epoch."""
        for given in (self.assigned, self.revoking):
            epoch = given.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return self.epoch

    @property
    def partitions(self) -> Iterable[tuple[Uuid, int]]:
        """All that nobody else may have: what is assigned, and what is not given up yet."""
        for given in (self.assigned, self.revoking):
            for topic_id, partitions in given.items():
                for partition in partitions:
                    yield topic_id, partition


def classic_metadata(
    value: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None,
) -> ClassicMetadata | None:
    if value is None:
        return None
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in value.supported_protocols)
    return ClassicMetadata(value.session_timeout_ms, protocols)


def assigned_of(topics: Iterable[TopicPartitions], epoch: int) -> Assigned:
    """As a record has it; before there were epochs of partitions, all had the member's."""
    assigned: dict[Uuid, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or (epoch,) * len(topic.partitions)
        assigned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return assigned
