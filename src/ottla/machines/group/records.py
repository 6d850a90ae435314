"""The records that groups write into `__consumer_offsets`, in the versions in which Apache Kafka 4.3 writes them."""

from ottla.machines.coordinator_machine import CoordinatorRecord
from ottla.machines.group.committed import CommittedOffset
from ottla.wire.message import like
from ottla.wire.messages import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue

_GROUP_METADATA = 3
_OFFSET_COMMIT = 4
_OFFSET_COMMIT_WITH_EXPIRY = 1

# What the records of commits are made like.
_KEY, _VALUE = OffsetCommitKey(), OffsetCommitValue(expire_timestamp=-1)


def offset_committed(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    """A commit; the old version is for clients so old that they say how long their offset is to be kept."""
    key, value = like(_KEY), like(_VALUE)
    key.group, key.topic, key.partition = group_id, topic, partition
    value.offset = committed.offset
    value.leader_epoch = committed.leader_epoch
    value.metadata = committed.metadata
    value.commit_timestamp = committed.commit_timestamp_ms
    value.topic_id = committed.topic_id
    if committed.expire_timestamp_ms < 0:
        return CoordinatorRecord(key, value, _OFFSET_COMMIT)
    value.leader_epoch = -1
    value.expire_timestamp = committed.expire_timestamp_ms
    return CoordinatorRecord(key, value, _OFFSET_COMMIT_WITH_EXPIRY)


def offset_forgotten(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def group_written(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, _GROUP_METADATA)


def group_forgotten(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id))
