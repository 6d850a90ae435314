"""The records of a consumer group, as Apache Kafka 4.3 writes them."""

from collections.abc import Iterable, Iterator

from ottla.machines.coordinator_machine import CoordinatorRecord
from ottla.machines.group.consumer.member import Assigned, ConsumerMember, Target, TopicPartitions
from ottla.wire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def epoch_written(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def member_written(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    classic = None
    if member.classic is not None:
        of_classic = ConsumerGroupMemberMetadataValue.ClassicProtocol
        classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[of_classic(name=name, metadata=data) for name, data in member.classic.protocols],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_written(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    of_topic = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[of_topic(topic_id=id, partitions=sorted(target[id])) for id in sorted(target)]
    )
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_written(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_written(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_partitions(member.assigned),
        partitions_pending_revocation=_partitions(member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def _partitions(assigned: Assigned) -> list[TopicPartitions]:
    found: list[TopicPartitions] = []
    for topic_id in sorted(assigned):
        epochs = assigned[topic_id]
        partitions = sorted(epochs)
        found.append(
            TopicPartitions(
                topic_id=topic_id, partitions=partitions, assignment_epochs=[epochs[index] for index in partitions]
            )
        )
    return found


def regex_resolved(group_id: str, regex: str, topics: Iterable[str], version: int, now_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=now_ms)
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def regex_forgotten(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """What it has, what it was to have, and the member itself, in the order in which they must go."""
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> Iterator[CoordinatorRecord]:
    members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    yield from (current for current, _, _ in members)
    yield from (target for _, target, _ in members)
    yield CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))
    yield from (member for _, _, member in members)
    yield from (regex_forgotten(group_id, regex) for regex in regexes)
    yield CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id))  # Which older versions wrote.
    yield CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id))
