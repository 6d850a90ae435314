"""A classic group: its members, its generation, and the state between two generations.

    Empty ──> PreparingRebalance ──> CompletingRebalance ──> Stable
      ^            ^   │  ^                  │                 │
      └────────────│───┘  └──────────────────┴─────────────────┘
                (nobody is left)      (somebody joins, leaves or is lost)

In the log is what the last generation came to: its number, protocol, leader, and each member with its assignment. That
is `written`, the group's last record, which only `replay` sets. A record makes a group Stable, or Empty if it has no
members.

The generation that is being formed is soft: the two states between, the members who wait in them, and with the barrier
open the next number, protocol and leader. It runs ahead of `written`, and is `written` when its record is. A record
that is refused, and a change of coordinators, take the group back to its last record (`as_written`); its members hear
of that with their next request, and join anew.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from ottla.base.ids import Uuid
from ottla.machines.coordinator_machine import CoordinatorRecord, Waiter
from ottla.machines.group.classic.member import ClassicMember, Protocol
from ottla.machines.group.embedded import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from ottla.machines.group.records import group_forgotten
from ottla.wire.errors import NO_ERROR, ErrorCode
from ottla.wire.messages import DescribeGroupsResponse, GroupMetadataValue, JoinGroupResponse

DescribedGroup = DescribeGroupsResponse.DescribedGroup


class ClassicState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# For what is done for every commit: see `NO_ERROR`.
_EMPTY: Final = ClassicState.EMPTY
_COMPLETING_REBALANCE: Final = ClassicState.COMPLETING_REBALANCE


class ClassicGroup:
    """`pending` are ids that were given out to members who have not come back with them yet (KIP-394).

    `syncing` are members of a new generation who have not asked for their assignment yet. `state_timestamp_ms` is when
    the group came into its state, as its records say. `protocol_type` is None for a group that only keeps offsets.
    """

    TYPE = "classic"

    __slots__ = (
        "_supported",
        "_waiting_count",
        "generation",
        "group_id",
        "has_new_members",
        "leader_id",
        "members",
        "pending",
        "previous_state",
        "protocol",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_ids",
        "subscribed",
        "syncing",
        "written",
    )

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = self.previous_state = ClassicState.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_ids: dict[str, str] = {}
        self.pending: set[str] = set()
        self.syncing: set[str] = set()
        self.subscribed: frozenset[str] | None = None
        self.has_new_members = False
        self.written: GroupMetadataValue | None = None
        self._supported: dict[str, int] = {}
        self._waiting_count = 0

    # Records

    @classmethod
    def of_record(cls, group_id: str, value: GroupMetadataValue) -> "ClassicGroup":
        """As the log has it: nobody waits for anything."""
        group = cls(group_id, value.current_state_timestamp)
        group.written = value
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.leader_id = value.leader
        for record in value.members:
            group.add(ClassicMember.of_record(record, value.protocol_type, value.protocol))
        if group.members:
            group.state = ClassicState.STABLE
        group.subscribed = group.find_subscribed_topics()
        return group

    def replay(self, value: GroupMetadataValue) -> None:
        """The generation that was being formed is written: this group has decided so, and has its members."""
        assert self.members.keys() == {record.member_id for record in value.members}, "a generation of other members"
        self.written = value
        if value.members:
            for record in value.members:
                self.members[record.member_id].assignment = bytes(record.assignment)
            self.become(ClassicState.STABLE, value.current_state_timestamp)
        else:
            self.generation = value.generation
            self.protocol = self.leader_id = None
            self.subscribed = self.find_subscribed_topics()
            self.become(ClassicState.EMPTY, value.current_state_timestamp)

    def as_written(self) -> "ClassicGroup":
        """The group as a coordinator that loads it now would have it."""
        if self.written is None:
            return ClassicGroup(self.group_id, self.state_timestamp_ms)
        return ClassicGroup.of_record(self.group_id, self.written)

    def record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """This generation, with what each member was given."""
        assert self.protocol is not None, "a generation with members has chosen its protocol"
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=[
                member.record(self.protocol, assignments.get(member.member_id, b"")) for member in self.members.values()
            ],
        )

    def empty_record(self, generation: int, now_ms: int) -> GroupMetadataValue:
        """A generation of nobody."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=generation,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        )

    def become(self, state: ClassicState, now_ms: int) -> None:
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    # Members

    def add(self, member: ClassicMember, waiter: Waiter | None = None) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.static_ids, "a static member is replaced, not added again"
            self.static_ids[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.wait_for_join(member, waiter)
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            self.wait_for_join(member, None)
            if member.instance_id is not None:
                del self.static_ids[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending.discard(member_id)
        self.syncing.discard(member_id)

    def replace_static(self, instance_id: str, new_member_id: str) -> ClassicMember:
        """The same static member under a new id: what it was given stays with it (KIP-345)."""
        old_member_id = self.static_ids[instance_id]
        member = self.members.pop(old_member_id)
        assert member.waits_for_join is None, "the client with the old id is fenced first"
        member.member_id = new_member_id
        member.expire = None
        self.members[new_member_id] = member
        self.static_ids[instance_id] = new_member_id
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        return member

    def update(
        self, member: ClassicMember, protocols: Iterable[Protocol], rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._count_protocols(member, -1)
        member.protocols = tuple(protocols)
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def wait_for_join(self, member: ClassicMember, waiter: Waiter | None) -> None:
        self._waiting_count += (waiter is not None) - (member.waits_for_join is not None)
        member.waits_for_join = waiter

    def waiters(self) -> Iterator[Waiter]:
        """Who waits at the barrier, or for an assignment."""
        for member in self.members.values():
            for waiter in (member.waits_for_join, member.waits_for_sync):
                if waiter is not None:
                    yield waiter

    def _count_protocols(self, member: ClassicMember, by: int) -> None:
        for protocol in member.protocols:
            self._supported[protocol.name] = self._supported.get(protocol.name, 0) + by

    # Asking

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def waiting_count(self) -> int:
        """How many members wait for the barrier to open."""
        return self._waiting_count

    @property
    def has_all_joined(self) -> bool:
        return self._waiting_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Iterable[Protocol]) -> bool:
        """Whether somebody who offers these could be a member."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supported.get(protocol.name, 0) == count for protocol in protocols
        )

    def select_protocol(self) -> str:
        """Of those that all members have, the one that most of them like best."""
        count = len(self.members)
        candidates = [name for name, members in self._supported.items() if members == count]
        votes = dict.fromkeys(candidates, 0)
        for member in self.members.values():
            votes[member.vote(votes)] += 1
        return max(votes, key=lambda name: votes[name])

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            known = self.static_ids.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return NO_ERROR if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        api_version: int,
        partitions: Iterable[tuple[Uuid, int]] = (),
    ) -> ErrorCode:
        """Whether a commit is taken. With no generation it is an admin's, or of a consumer that assigns itself."""
        if generation < 0 and self.state is _EMPTY:
            return NO_ERROR
        if generation >= 0 or member_id or instance_id is not None:
            error = self.check_member(member_id, instance_id)
            if error:
                return error
            if generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not is_transactional and not self.is_empty:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not is_transactional and self.state is _COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NO_ERROR

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Every client gets it."""
        return ErrorCode.NONE

    def check_deletion_of_offsets(self) -> ErrorCode:
        is_deletable = self.is_empty or self.uses_consumer_protocol
        return ErrorCode.NONE if is_deletable else ErrorCode.NON_EMPTY_GROUP

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    # Offsets

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members read, if they speak the consumers' protocol so that one can tell."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        return subscribed_topics([member.metadata(self.protocol) for member in self.members.values()])

    def is_subscribed_to(self, topic: str) -> bool:
        return self.uses_consumer_protocol if self.subscribed is None else topic in self.subscribed

    def offsets_run_since(self, commit_timestamp_ms: int) -> int | None:
        """From when on an offset that nobody is subscribed to grows old (KIP-211); None: it does not."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.is_empty:
            return commit_timestamp_ms if self.state_timestamp_ms < 0 else self.state_timestamp_ms
        if self.state is ClassicState.STABLE and self.subscribed is not None:
            return commit_timestamp_ms
        return None

    def tombstones(self) -> Iterator[CoordinatorRecord]:
        yield group_forgotten(self.group_id)

    # Describing

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    def described(self) -> DescribedGroup:
        is_stable = self.state is ClassicState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type or "",
            protocol_data=(self.protocol or "") if is_stable else "",
            members=[member.described(self.protocol if is_stable else None) for member in self.members.values()],
        )

    def for_leader(self) -> list[JoinGroupResponse.JoinGroupResponseMember]:
        return [member.for_leader(self.protocol) for member in self.members.values()]
