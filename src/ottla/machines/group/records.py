"""The records that groups write into `__consumer_offsets`, in the versions in which Apache Kafka 4.3 writes them."""

from ottla.machines.coordinator_machine import CoordinatorRecord
from ottla.machines.group.committed import CommittedOffset
from ottla.wire.messages import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue

_GROUP_METADATA = 3
_OFFSET_COMMIT = 4
_OFFSET_COMMIT_WITH_EXPIRY = 1


def offset_committed(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    """A commit; the old version is for clients so old that they say how long their offset is to be kept."""
    has_expiry = committed.expire_timestamp_ms >= 0
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=-1 if has_expiry else committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        ),
        _OFFSET_COMMIT_WITH_EXPIRY if has_expiry else _OFFSET_COMMIT,
    )


def offset_forgotten(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def group_written(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, _GROUP_METADATA)


def group_forgotten(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id))
