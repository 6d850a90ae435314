"""A consumer group as ConsumerGroupDescribe shows it."""

from collections.abc import Iterable, Mapping

from ottla.base.ids import Uuid
from ottla.machines.group.consumer.group import ConsumerGroup, most_wanted
from ottla.machines.group.consumer.member import ConsumerMember
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.messages import ConsumerGroupDescribeResponse

Described = ConsumerGroupDescribeResponse.DescribedGroup
_Member = ConsumerGroupDescribeResponse.Member
_Assignment = ConsumerGroupDescribeResponse.Assignment
_CLASSIC, _CONSUMER = 0, 1


def described(group: ConsumerGroup, default_assignor: str, image: MetadataImage) -> Described:
    return Described(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=most_wanted(group.assignors) or default_assignor,
        members=[_described(member, group, image) for member in group.members.values()],
    )


def _described(member: ConsumerMember, group: ConsumerGroup, image: MetadataImage) -> _Member:
    return _Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(_owned(member), image),
        target_assignment=_assignment(group.target_of(member.member_id), image),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _owned(member: ConsumerMember) -> dict[Uuid, list[int]]:
    """What it was given, with what it has not given up yet."""
    topics: dict[Uuid, list[int]] = {}
    for topic_id, partition in member.partitions:
        topics.setdefault(topic_id, []).append(partition)
    return topics


def _assignment(topics: Mapping[Uuid, Iterable[int]], image: MetadataImage) -> _Assignment:
    """Topics that have been deleted meanwhile are left out."""
    return _Assignment(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=image.topics.by_id[topic_id].name, partitions=sorted(partitions)
            )
            for topic_id, partitions in topics.items()
            if topic_id in image.topics.by_id
        ]
    )
