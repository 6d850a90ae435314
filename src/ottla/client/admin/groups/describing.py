"""Groups with their members: consumer groups of both protocols (KIP-848), and classic groups of any kind."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ottla.base.errors import ProtocolError
from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking, Deadline
from ottla.client.admin.groups.listing import CONSUMER_PROTOCOL, GroupState, GroupType
from ottla.client.admin.known_values import named
from ottla.client.admin.operations import Operations, operations
from ottla.client.admin.results import Outcome, Results
from ottla.client.admin.routing import by_coordinator
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import GroupIdNotFound, InvalidGroupId, KafkaError, UnsupportedVersion, error_for
from ottla.client.topic_partition import Broker
from ottla.wire import messages
from ottla.wire.message import Message

D = TypeVar("D")


class GroupMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    """The name of a static member (KIP-345)."""
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] | None = None
    """What the member will have once the rebalance is over; None in a classic group."""
    member_epoch: int | None = None
    is_upgraded: bool | None = None
    """Whether it speaks the consumer protocol; None if the broker does not tell."""
    rack_id: str | None = None
    subscribed_topics: tuple[str, ...] = ()
    subscribed_pattern: str | None = None


class ConsumerGroupDescription(NamedTuple):
    group_id: str
    type: GroupType
    state: GroupState
    is_simple: bool
    """Whether it is only a name under which offsets are committed."""
    members: tuple[GroupMember, ...]
    assignor: str
    coordinator: Broker
    authorized_operations: Operations | None
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


class ClassicGroupDescription(NamedTuple):
    group_id: str
    protocol: str
    protocol_data: str
    """For consumers the assignor."""
    state: GroupState
    members: tuple[GroupMember, ...]
    coordinator: Broker
    authorized_operations: Operations | None


async def describe_consumer_groups(
    asking: Asking,
    group_ids: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Results[str, ConsumerGroupDescription]:
    """Groups of consumers, whichever protocol they speak. Fails with `GroupIdNotFound` where there is no such group."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[ConsumerGroupDescription]]:
        found = await _new_protocol(asking, node_id, left, include_authorized_operations, deadline)
        others = [group_id for group_id in left if group_id not in found]
        if others:
            classic = await _classic_protocol(asking, node_id, others, include_authorized_operations, deadline)
            found.update((group_id, _as_consumers(outcome)) for group_id, outcome in classic.items())
        return found

    return await asking.each(
        "describe_consumer_groups", group_ids, by_coordinator(asking, CoordinatorKind.GROUP, ask, deadline), deadline
    )


async def describe_classic_groups(
    asking: Asking,
    group_ids: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Results[str, ClassicGroupDescription]:
    """Groups of the classic protocol, of consumers or anything else, such as Kafka Connect."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[ClassicGroupDescription]]:
        return await _classic_protocol(asking, node_id, left, include_authorized_operations, deadline)

    return await asking.each(
        "describe_classic_groups", group_ids, by_coordinator(asking, CoordinatorKind.GROUP, ask, deadline), deadline
    )


async def describe_each(
    asking: Asking,
    call: str,
    group_ids: Iterable[str],
    request: Callable[[list[str]], Message],
    described: Callable[[Any, Broker], Outcome[D]],
    timeout: float | None,
) -> Results[str, D]:
    """Groups of a kind that has an API of its own: each coordinator is asked for its groups."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[D]]:
        response = await asking.once(node_id, request(left), deadline)
        coordinator = asking.cluster.view.brokers[node_id]
        return {one.group_id: described(one, coordinator) for one in response.groups}

    return await asking.each(call, group_ids, by_coordinator(asking, CoordinatorKind.GROUP, ask, deadline), deadline)


async def _new_protocol(
    asking: Asking, node_id: int, group_ids: list[str], include_operations: bool, deadline: Deadline
) -> dict[str, Outcome[ConsumerGroupDescription]]:
    """Leaves out the groups that the coordinator does not have under this protocol: they may be classic ones."""
    request = messages.ConsumerGroupDescribeRequest(
        group_ids=group_ids, include_authorized_operations=include_operations
    )
    try:
        response = await asking.once(node_id, request, deadline)
    except UnsupportedVersion:
        return {}
    coordinator = asking.cluster.view.brokers[node_id]
    elsewhere = (GroupIdNotFound.code, UnsupportedVersion.code)
    return {
        group.group_id: _consumer_group(group, coordinator)
        for group in response.groups
        if group.error_code not in elsewhere
    }


def _consumer_group(answer: Any, coordinator: Broker) -> Outcome[ConsumerGroupDescription]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    members = tuple(
        GroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            assigned(one.assignment),
            assigned(one.target_assignment),
            one.member_epoch,
            None if one.member_type < 0 else one.member_type == 1,
            one.rack_id,
            tuple(one.subscribed_topic_names),
            one.subscribed_topic_regex or None,
        )
        for one in answer.members
    )
    return ConsumerGroupDescription(
        answer.group_id,
        GroupType.CONSUMER,
        named(GroupState, answer.group_state, GroupState.UNKNOWN),
        False,
        members,
        answer.assignor_name,
        coordinator,
        operations(answer.authorized_operations),
        answer.group_epoch,
        answer.assignment_epoch,
    )


def assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


async def _classic_protocol(
    asking: Asking, node_id: int, group_ids: list[str], include_operations: bool, deadline: Deadline
) -> dict[str, Outcome[ClassicGroupDescription]]:
    request = messages.DescribeGroupsRequest(groups=group_ids, include_authorized_operations=include_operations)
    response = await asking.once(node_id, request, deadline)
    coordinator = asking.cluster.view.brokers[node_id]
    return {group.group_id: _classic_group(group, coordinator) for group in response.groups}


def _classic_group(answer: Any, coordinator: Broker) -> Outcome[ClassicGroupDescription]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    return ClassicGroupDescription(
        answer.group_id,
        answer.protocol_type,
        answer.protocol_data,
        named(GroupState, answer.group_state, GroupState.UNKNOWN),
        tuple(_classic_member(one, answer.protocol_type) for one in answer.members),
        coordinator,
        operations(answer.authorized_operations),
    )


def _classic_member(answer: Any, protocol: str) -> GroupMember:
    from ottla.client.membership.classic.consumer_protocol import read_assignment

    assignment: tuple[TopicPartition, ...] = ()
    if protocol == CONSUMER_PROTOCOL and answer.member_assignment:
        try:
            assignment = read_assignment(bytes(answer.member_assignment))
        except ProtocolError:  # an application that says it is a consumer may write there what it likes
            assignment = ()
    return GroupMember(answer.member_id, answer.group_instance_id, answer.client_id, answer.client_host, assignment)


def _as_consumers(classic: Outcome[ClassicGroupDescription]) -> Outcome[ConsumerGroupDescription]:
    if isinstance(classic, KafkaError):
        return classic
    if classic.protocol not in (CONSUMER_PROTOCOL, ""):
        return InvalidGroupId(f"{classic.group_id!r} is a group of {classic.protocol!r} and not of consumers")
    return ConsumerGroupDescription(
        classic.group_id,
        GroupType.CLASSIC,
        classic.state,
        not classic.protocol,
        classic.members,
        classic.protocol_data,
        classic.coordinator,
        classic.authorized_operations,
    )
