"""Committing, fetching, deleting and expiring offsets: what may be done, and the records that do it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.coordinator_machine import CoordinatorRecord
from ottla.machines.group.commits import NO_EXPIRY, Commits, take_apart
from ottla.machines.group.committed import CommittedOffset, Partitions
from ottla.machines.group.offsets import Offsets
from ottla.machines.group.records import offset_committed, offset_forgotten
from ottla.machines.group.settings import GroupSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like
from ottla.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

NO_OFFSET = -1
_DEFAULT_RETENTION = -1
_LATEST_MS = (1 << 63) - 1

FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
_FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopics
_FetchedPartition = OffsetFetchResponse.OffsetFetchResponsePartitions

_RESPONSE = OffsetCommitResponse()


class Subscriber(Protocol):
    """What offsets must know of their group."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_run_since(self, commit_timestamp_ms: int) -> int | None: ...


def commit(request: OffsetCommitRequest, settings: GroupSettings, now_ms: int) -> tuple[OffsetCommitResponse, Commits]:
    """The group takes the commit: what each partition is answered, and the records of those that are taken."""
    response, expires_ms = like(_RESPONSE), NO_EXPIRY
    if request.retention_time_ms != _DEFAULT_RETENTION:
        expires_ms = min(now_ms + request.retention_time_ms, _LATEST_MS)
    longest = settings.offset_metadata_max_bytes
    response.topics, commits = take_apart(request.group_id, request.topics, now_ms, expires_ms, longest)
    return response, commits


def commit_error(error: ErrorCode) -> ErrorCode:
    """The error of a client whose commit could not be written."""
    is_too_large = error in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if is_too_large else error


def commit_in_transaction(
    request: TxnOffsetCommitRequest, settings: GroupSettings, now_ms: int
) -> tuple[TxnOffsetCommitResponse, list[CoordinatorRecord]]:
    response, records = TxnOffsetCommitResponse(), list[CoordinatorRecord]()
    of_partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    for topic in request.topics:
        errors = _take((request.group_id, topic.name), topic.partitions, settings, records, now_ms)
        answers = [of_partition(partition_index=index, error_code=error) for index, error in errors]
        response.topics.append(
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers)
        )
    return response, records


def _take(
    place: tuple[str, str],
    asked: Iterable[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition],
    settings: GroupSettings,
    records: list[CoordinatorRecord],
    now_ms: int,
) -> Iterator[tuple[int, ErrorCode]]:
    """Writes the offsets of a group in a topic down, and tells of each partition what is wrong with it."""
    longest = settings.offset_metadata_max_bytes
    for partition in asked:
        metadata = partition.committed_metadata or ""
        if len(metadata) > longest:
            yield partition.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
        committed = CommittedOffset(offset, leader_epoch, metadata, now_ms)
        records.append(offset_committed(*place, partition.partition_index, committed))
        yield partition.partition_index, ErrorCode.NONE


# Fetching


def fetch(
    offsets: Offsets, asked: OffsetFetchRequest.OffsetFetchRequestGroup, *, exists: bool, require_stable: bool
) -> FetchedGroup:
    """What a group has committed, in the partitions that are asked for, or in all. Of no group: nothing."""
    topics = offsets.of_group(asked.group_id) if exists else {}
    if asked.topics is None:
        wanted: Iterable[tuple[str, Uuid, Iterable[int]]] = (
            (topic, ZERO_UUID, partitions) for topic, partitions in topics.items()
        )
    else:
        wanted = ((topic.name, topic.topic_id, topic.partition_indexes) for topic in asked.topics)
    return FetchedGroup(
        group_id=asked.group_id,
        topics=[
            _FetchedTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    _fetched(
                        index,
                        topics.get(topic, {}),
                        is_unstable=exists and require_stable and offsets.is_pending(asked.group_id, topic, index),
                    )
                    for index in indexes
                ],
            )
            for topic, topic_id, indexes in wanted
        ],
    )


def _fetched(index: int, partitions: Partitions, *, is_unstable: bool) -> _FetchedPartition:
    committed = None if is_unstable else partitions.get(index)
    if committed is None:
        return _FetchedPartition(
            partition_index=index,
            committed_offset=NO_OFFSET,
            committed_leader_epoch=-1,
            metadata="",
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT if is_unstable else ErrorCode.NONE,
        )
    return _FetchedPartition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


# Forgetting


def delete(
    offsets: Offsets, group: Subscriber, request: OffsetDeleteRequest
) -> tuple[OffsetDeleteResponse, list[CoordinatorRecord]]:
    """Offsets of topics that the group still reads are kept."""
    response, records = OffsetDeleteResponse(), list[CoordinatorRecord]()
    for topic in request.topics:
        is_read = group.is_subscribed_to(topic.name)
        indexes = [partition.partition_index for partition in topic.partitions]
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        response.topics.append(
            OffsetDeleteResponse.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index, error_code=error)
                    for index in indexes
                ],
            )
        )
        known = set(offsets.known_partitions(request.group_id))
        if not is_read:
            records += [
                offset_forgotten(request.group_id, topic.name, index)
                for index in indexes
                if (topic.name, index) in known
            ]
    return response, records


def forget_group(offsets: Offsets, group_id: str) -> list[CoordinatorRecord]:
    return [offset_forgotten(group_id, topic, index) for topic, index in offsets.known_partitions(group_id)]


def forget_topics(offsets: Offsets, topics: Sequence[str]) -> Iterator[CoordinatorRecord]:
    """Topics have been deleted: nobody is anywhere in them any more."""
    for topic in topics:
        for group_id in offsets.groups_of_topic(topic):
            for name, index in offsets.known_partitions(group_id):
                if name == topic:
                    yield offset_forgotten(group_id, topic, index)


def expire(
    offsets: Offsets, group_id: str, group: Subscriber, settings: GroupSettings, now_ms: int
) -> tuple[list[CoordinatorRecord], bool]:
    """Tombstones for what is too old, and whether nothing is left that would keep the group."""
    oldest_ms = offsets.encoded.oldest_commit_ms(group_id)
    if oldest_ms is not None and not _may_have_expired(oldest_ms, group, settings, now_ms):
        return [], False  # None of them has, and they need not be decoded to know.
    records: list[CoordinatorRecord] = []
    is_all = True
    for topic, partitions in offsets.of_group(group_id).items():
        is_read = group.is_subscribed_to(topic)
        for index, committed in partitions.items():
            since_ms = None if is_read else group.offsets_run_since(committed.commit_timestamp_ms)
            if (
                since_ms is not None
                and committed.is_expired(since_ms, now_ms, settings.offsets_retention_ms)
                and not offsets.is_pending(group_id, topic, index)
            ):
                records.append(offset_forgotten(group_id, topic, index))
            else:
                is_all = False
    return records, is_all and not offsets.has_open_transaction(group_id)


def _may_have_expired(oldest_ms: int, group: Subscriber, settings: GroupSettings, now_ms: int) -> bool:
    since_ms = group.offsets_run_since(oldest_ms)
    return since_ms is not None and now_ms - since_ms >= settings.offsets_retention_ms
