"""Share groups (KIP-932): describe them, and their start offsets."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking, is_about_the_coordinator
from ottla.client.admin.groups.describing import assigned, describe_each
from ottla.client.admin.groups.listing import GroupState
from ottla.client.admin.groups.offsets import Groups, asked_for
from ottla.client.admin.known_values import named
from ottla.client.admin.operations import Operations, operations
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.admin.routing import ask_coordinator, by_coordinator
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import error_for
from ottla.client.topic_partition import Broker, by_topic
from ottla.wire import messages


class ShareGroupMember(NamedTuple):
    member_id: str
    client_id: str
    host: str
    member_epoch: int
    subscribed_topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]
    rack_id: str | None


class ShareGroupDescription(NamedTuple):
    group_id: str
    state: GroupState
    members: tuple[ShareGroupMember, ...]
    assignor: str
    coordinator: Broker
    authorized_operations: Operations | None
    group_epoch: int
    target_assignment_epoch: int


class SharePartitionOffset(NamedTuple):
    """Where a share group begins in a partition: all records before are done."""

    start_offset: int
    leader_epoch: int | None
    lag: int | None
    """Records from there to the end that are not done; None if the broker does not tell."""


async def describe_share_groups(
    asking: Asking,
    group_ids: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Results[str, ShareGroupDescription]:
    """Share groups with their members. Fails with `GroupIdNotFound` where there is no such group."""

    def request(left: list[str]) -> messages.ShareGroupDescribeRequest:
        return messages.ShareGroupDescribeRequest(
            group_ids=left, include_authorized_operations=include_authorized_operations
        )

    return await describe_each(asking, "describe_share_groups", group_ids, request, _share_group, timeout)


def _share_group(answer: Any, coordinator: Broker) -> Outcome[ShareGroupDescription]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    members = (
        ShareGroupMember(
            one.member_id,
            one.client_id,
            one.client_host,
            one.member_epoch,
            tuple(one.subscribed_topic_names),
            assigned(one.assignment),
            one.rack_id,
        )
        for one in answer.members
    )
    return ShareGroupDescription(
        answer.group_id,
        named(GroupState, answer.group_state, GroupState.UNKNOWN),
        tuple(members),
        answer.assignor_name,
        coordinator,
        operations(answer.authorized_operations),
        answer.group_epoch,
        answer.assignment_epoch,
    )


async def list_share_group_offsets(
    asking: Asking,
    groups: Groups,
    *,
    timeout: float | None = None,
) -> Results[str, dict[TopicPartition, SharePartitionOffset | None]]:
    """The start offsets of each group: of all its partitions, or of those that a mapping names, None where none is."""
    wanted = asked_for(groups)
    deadline = asking.deadline(timeout)
    request = messages.DescribeShareGroupOffsetsRequest

    def of_group(group_id: str) -> messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup:
        partitions = wanted[group_id]
        topics = None
        if partitions is not None:
            topics = [
                request.DescribeShareGroupOffsetsRequestTopic(
                    topic_name=topic, partitions=[one.partition for one in of_topic]
                )
                for topic, of_topic in by_topic(partitions).items()
            ]
        return request.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)

    async def ask(
        node_id: int, left: list[str]
    ) -> dict[str, Outcome[dict[TopicPartition, SharePartitionOffset | None]]]:
        response = await asking.once(node_id, request(groups=list(map(of_group, left))), deadline)
        return {one.group_id: _start_offsets(one) for one in response.groups}

    return await asking.each(
        "list_share_group_offsets", wanted, by_coordinator(asking, CoordinatorKind.GROUP, ask, deadline), deadline
    )


def _start_offsets(answer: Any) -> Outcome[dict[TopicPartition, SharePartitionOffset | None]]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    offsets: dict[TopicPartition, SharePartitionOffset | None] = {}
    for topic in answer.topics:
        for one in topic.partitions:
            if one.error_code:
                return error_for(one.error_code, one.error_message)
            epoch, lag = (None if number < 0 else number for number in (one.leader_epoch, one.lag))
            offset = None if one.start_offset < 0 else SharePartitionOffset(one.start_offset, epoch, lag)
            offsets[TopicPartition(topic.topic_name, one.partition_index)] = offset
    return offsets


async def alter_share_group_offsets(
    asking: Asking, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
) -> Results[TopicPartition, None]:
    """Makes a share group begin elsewhere. The group must have no members."""
    deadline = asking.deadline(timeout)
    wanted = {TopicPartition(*partition): offset for partition, offset in offsets.items()}

    async def attempt(left: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        request = messages.AlterShareGroupOffsetsRequest
        made = request(
            group_id=group_id,
            topics=[
                request.AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=[
                        request.AlterShareGroupOffsetsRequestPartition(
                            partition_index=one.partition, start_offset=wanted[one]
                        )
                        for one in of_topic
                    ],
                )
                for topic, of_topic in by_topic(left).items()
            ],
        )
        response = await ask_coordinator(asking, CoordinatorKind.GROUP, group_id, made, deadline)
        return {
            TopicPartition(topic.topic_name, one.partition_index): failure(one)
            for topic in response.responses
            for one in topic.partitions
        }

    return await asking.each("alter_share_group_offsets", wanted, attempt, deadline, may_pass=is_about_the_coordinator)


async def delete_share_group_offsets(
    asking: Asking, group_id: str, topics: Iterable[str], *, timeout: float | None = None
) -> Results[str, None]:
    """Forgets where a share group is in these topics. The group must have no members."""
    deadline = asking.deadline(timeout)

    async def attempt(left: list[str]) -> dict[str, Outcome[None]]:
        request = messages.DeleteShareGroupOffsetsRequest
        made = request(
            group_id=group_id, topics=[request.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in left]
        )
        response = await ask_coordinator(asking, CoordinatorKind.GROUP, group_id, made, deadline)
        return {one.topic_name: failure(one) for one in response.responses}

    return await asking.each("delete_share_group_offsets", topics, attempt, deadline, may_pass=is_about_the_coordinator)
