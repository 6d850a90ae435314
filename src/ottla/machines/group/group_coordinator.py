"""All groups of one partition of `__consumer_offsets`: their replay, their offsets, and what admins ask of them.

What members ask is `members`' affair (see `membership`).

A group exists from its first record on: of the group itself, or of an offset that somebody commits in its name without
being a member (a "simple" group, which has no protocol). It is forgotten when an admin deletes it, or when it is empty
and the last of its offsets is too old.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.coordinator_machine import (
    Broken,
    CoordinatorDecision,
    CoordinatorMachine,
    CoordinatorRecord,
    Timer,
    TransactionStamp,
    Waiter,
    each_unbroken,
)
from ottla.machines.group import offset_commands
from ottla.machines.group.classic.group import ClassicGroup, ClassicState, DescribedGroup
from ottla.machines.group.classic.replies import write_error
from ottla.machines.group.classic.timers import session
from ottla.machines.group.commits import Commits
from ottla.machines.group.consumer.describing import described
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.replay import replay_consumer_record
from ottla.machines.group.effects import Effects
from ottla.machines.group.membership import Group, Membership, NewIds
from ottla.machines.group.offsets import Offsets
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.records.kernel import Record
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    ConsumerGroupDescribeResponse,
    DeleteGroupsResponse,
    GroupMetadataKey,
    GroupMetadataValue,
    ListGroupsResponse,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitValue,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

_EXPIRATION = "expiration", None, None
_FIRST_WITH_GROUP_NOT_FOUND = 9


class GroupCoordinator(CoordinatorMachine):
    """`image` is the cluster as this broker knows it; `new_ids` are for members who come without one."""

    def __init__(self, settings: GroupSettings, image: MetadataImage, new_ids: NewIds) -> None:
        self.settings = settings
        self.image = image
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.members = Membership(self.groups, settings, image, new_ids)
        self._is_loaded = False

    # Replaying

    def subject_of(self, key: Message) -> str | None:
        """A group may be named by nothing at all: "" is a name like any other (KIP-289)."""
        group_id = getattr(key, "group", None)
        if group_id is None:
            group_id = getattr(key, "group_id", None)
        return group_id if isinstance(group_id, str) else None

    def replay(self, key: Message, value: Message | None) -> None:
        match key, value:
            case OffsetCommitKey(), OffsetCommitValue() | None:
                self._replay_offset(key, value, None)
            case GroupMetadataKey(), None:
                if isinstance(self.groups.get(key.group), ClassicGroup):
                    del self.groups[key.group]
            case GroupMetadataKey(), GroupMetadataValue():
                self._replay_classic(key.group, value)
            case _:
                replay_consumer_record(self.groups, key, value)

    def replay_encoded(self, records: Iterator[Record]) -> Iterator[Record]:
        return self.offsets.replay_encoded(records, self._open_group)

    def replay_in_transaction(self, stamp: TransactionStamp, key: Message, value: Message | None) -> None:
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._replay_offset(key, value, stamp.producer_id)

    def replay_end_of_transaction(self, stamp: TransactionStamp, *, committed: bool) -> None:
        self.offsets.replay_end_of_transaction(stamp.producer_id, committed=committed)

    def _replay_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int | None) -> None:
        if value is not None:
            self._open_group(key.group, value.commit_timestamp)
        self.offsets.replay(key, value, producer_id)

    def replay_commits(self, commits: Commits, now_ms: int) -> None:
        """Offsets of a group have been decided on, in no transaction."""
        if commits.group_id not in self.groups:
            self._open_group(commits.group_id, now_ms)
        self.offsets.replay_commits(commits)

    def _open_group(self, group_id: str, now_ms: int) -> None:
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, now_ms)

    def _replay_classic(self, group_id: str, value: GroupMetadataValue) -> None:
        """While loading, the newest record is all there is of a group; later, it is what the group has decided on."""
        group = self.groups.get(group_id)
        if self._is_loaded and isinstance(group, ClassicGroup):
            group.replay(value)
        else:
            self.groups[group_id] = ClassicGroup.of_record(group_id, value)

    def on_loaded(self, now_ms: int) -> CoordinatorDecision[None]:
        self._is_loaded = True
        self.offsets.encoded.close_places()
        effects, broken = Effects(), list[Broken]()
        each_unbroken(self.groups.items(), lambda _, group: self.members.on_loaded(group, effects, now_ms), broken)
        timers = [*effects.timers, self._expiration_timer()]
        return CoordinatorDecision(None, effects.records, effects.answers, timers, broken=broken)

    def on_unloaded(self) -> Sequence[Waiter]:
        return [waiter for group in self.groups.values() for waiter in _waiters_of(group)]

    # What could not be written, and what is broken

    def on_refused(
        self, decision: CoordinatorDecision[Any], error: ErrorCode, now_ms: int
    ) -> CoordinatorDecision[None]:
        error = write_error(error)
        effects = Effects()
        for waiter, _ in decision.answers:
            effects.answer(waiter, error)
        for key, value, _ in decision.records:
            group_id = self.subject_of(key)
            if group_id is not None and not isinstance(key, OffsetCommitKey):
                self.members.on_refused(group_id, value, error, effects, now_ms)
        return effects.decision(None)

    def take_offline(self, subject: str) -> Sequence[Waiter]:
        group = self.groups.pop(subject, None)
        return [] if group is None else list(_waiters_of(group))

    def on_topics_changed(self, topics: Collection[str], *, came_or_went: bool) -> None:
        """Groups that read these topics look at them again with their next heartbeat. Nothing of that is in the log."""
        for group in self.groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            if came_or_went and any(member.topic_regex for member in group.members.values()):
                group.is_metadata_stale = group.are_regexes_stale = True
            elif group.reads_any_of(topics):
                group.is_metadata_stale = True

    # Offsets

    def commit_offsets(
        self, request: OffsetCommitRequest, api_version: int, now_ms: int
    ) -> tuple[OffsetCommitResponse | ErrorCode, Commits | None, Sequence[Timer]]:
        """What a commit is answered, its records, and what is set with them: see `EncodedCommand`."""
        group = self.groups.get(request.group_id)
        if group is None:
            error = self._check_commit_of_nobody(request.generation_id_or_member_epoch, api_version)
        else:
            error = group.check_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id_or_member_epoch,
                is_transactional=False,
                api_version=api_version,
                partitions=_places(request) if isinstance(group, ConsumerGroup) else (),
            )
        if error:
            return error, None, ()
        response, records = offset_commands.commit(request, self.settings, now_ms)
        return response, records, self.kept_session(group, request.member_id) if request.member_id else ()

    def kept_session(self, group: Group | None, member_id: str) -> Sequence[Timer]:
        """To a classic group a commit is a heartbeat as well."""
        if not member_id or not isinstance(group, ClassicGroup):
            return ()
        member = group.members.get(member_id)
        if member is None or group.state not in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
            return ()
        return (session(group, member_id, member.session_timeout_ms),)

    @staticmethod
    def _check_commit_of_nobody(generation: int, api_version: int) -> ErrorCode:
        """There is no such group. A commit without a member makes one that just keeps offsets; others are refused."""
        if generation < 0:
            return ErrorCode.NONE
        knows_error = api_version >= _FIRST_WITH_GROUP_NOT_FOUND
        return ErrorCode.GROUP_ID_NOT_FOUND if knows_error else ErrorCode.ILLEGAL_GENERATION

    def commit_offsets_in_transaction(
        self, request: TxnOffsetCommitRequest, now_ms: int, *, api_version: int = 0
    ) -> CoordinatorDecision[TxnOffsetCommitResponse | ErrorCode]:
        """The offsets count when the producer's transaction is committed (KIP-447)."""
        group = self.groups.get(request.group_id)
        if group is None:
            error = ErrorCode.NONE if request.generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
        else:
            error = group.check_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                is_transactional=True,
                api_version=api_version,
                partitions=[
                    (self._topic_id(topic.name), partition.partition_index)
                    for topic in request.topics
                    for partition in topic.partitions
                ],
            )
        if error:
            return CoordinatorDecision(ErrorCode.ILLEGAL_GENERATION if error == ErrorCode.STALE_MEMBER_EPOCH else error)
        response, records = offset_commands.commit_in_transaction(request, self.settings, now_ms)
        stamp = TransactionStamp(request.producer_id, request.producer_epoch)
        return CoordinatorDecision(response, records, transaction=stamp)

    def _topic_id(self, name: str) -> Uuid:
        topic = self.image.topics.by_name.get(name)
        return ZERO_UUID if topic is None else topic.id

    def fetch_offsets(
        self, asked: OffsetFetchRequest.OffsetFetchRequestGroup, *, require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        group = self.groups.get(asked.group_id)
        error = ErrorCode.NONE if group is None else group.check_fetch(asked.member_id, asked.member_epoch)
        if error:
            return OffsetFetchResponse.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error)
        return offset_commands.fetch(self.offsets, asked, exists=group is not None, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest, now_ms: int) -> CoordinatorDecision[OffsetDeleteResponse]:
        group = self.groups.get(request.group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_deletion_of_offsets()
        if group is None or error:
            return CoordinatorDecision(OffsetDeleteResponse(error_code=error))
        response, records = offset_commands.delete(self.offsets, group, request)
        return CoordinatorDecision(response, records)

    def on_topics_deleted(self, topics: Sequence[str], now_ms: int) -> CoordinatorDecision[None]:
        return CoordinatorDecision(None, list(offset_commands.forget_topics(self.offsets, topics)), atomic=False)

    def expire_offsets(self, now_ms: int) -> CoordinatorDecision[None]:
        """Forgets offsets that are too old, and groups that have nothing left (offsets.retention.minutes)."""
        records, broken = list[CoordinatorRecord](), list[Broken]()

        def expire(group_id: str, group: Group) -> None:
            expired, is_all = offset_commands.expire(self.offsets, group_id, group, self.settings, now_ms)
            records.extend(expired)
            if is_all and group.is_empty and not _has_pending(group):
                records.extend(group.tombstones())

        each_unbroken(self.groups.items(), expire, broken)
        return CoordinatorDecision(None, records, timers=[self._expiration_timer()], atomic=False, broken=broken)

    def _expiration_timer(self) -> Timer:
        interval_ms = self.settings.offsets_retention_check_interval_ms
        return Timer(_EXPIRATION, interval_ms, GroupCoordinator.expire_offsets)

    # Administration

    def list_groups(self, states: frozenset[str], types: frozenset[str]) -> list[ListGroupsResponse.ListedGroup]:
        """Groups in one of these states and of one of these types, in lower case; none of either: in any."""
        return [
            ListGroupsResponse.ListedGroup(
                group_id=group_id,
                protocol_type=group.listed_protocol_type,
                group_state=group.state_name,
                group_type=group.TYPE,
            )
            for group_id, group in self.groups.items()
            if (not states or group.state_name.lower() in states) and (not types or group.TYPE in types)
        ]

    def describe_group(self, group_id: str) -> DescribedGroup | None:
        """A classic group; consumer groups have a description of their own."""
        group = self.groups.get(group_id)
        return group.described() if isinstance(group, ClassicGroup) else None

    def describe_consumer_group(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup | None:
        group = self.groups.get(group_id)
        return (
            described(group, self.settings.default_assignor, self.image) if isinstance(group, ConsumerGroup) else None
        )

    def delete_group(
        self, group_id: str, now_ms: int
    ) -> CoordinatorDecision[DeleteGroupsResponse.DeletableGroupResult]:
        group = self.groups.get(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_deletion()
        records: list[CoordinatorRecord] = []
        if group is not None and not error:
            records += offset_commands.forget_group(self.offsets, group_id)
            records += group.tombstones()
        result = DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
        return CoordinatorDecision(result, records)


def _places(request: OffsetCommitRequest) -> list[tuple[Uuid, int]]:
    return [(topic.topic_id, partition.partition_index) for topic in request.topics for partition in topic.partitions]


def _waiters_of(group: Group) -> Iterable[Waiter]:
    return group.waiters() if isinstance(group, ClassicGroup) else ()


def _has_pending(group: Group) -> bool:
    return isinstance(group, ClassicGroup) and bool(group.pending)
