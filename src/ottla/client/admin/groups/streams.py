"""Streams groups (KIP-1071): the members of a Kafka Streams application, its topology and its tasks.

Their offsets are those of a consumer group.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.client.admin.asking import Asking
from ottla.client.admin.groups.listing import GroupState
from ottla.client.admin.known_values import named
from ottla.client.admin.operations import Operations, operations
from ottla.client.admin.results import Outcome, Results
from ottla.client.admin.routing import by_coordinator
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import error_for
from ottla.client.topic_partition import Broker
from ottla.wire import messages


class StreamsTask(NamedTuple):
    subtopology_id: str
    partition: int


class StreamsTasks(NamedTuple):
    active: tuple[StreamsTask, ...]
    standby: tuple[StreamsTask, ...]
    warmup: tuple[StreamsTask, ...]


class StreamsMember(NamedTuple):
    member_id: str
    member_epoch: int
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    host: str
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: dict[str, str]
    task_offsets: dict[StreamsTask, int]
    task_end_offsets: dict[StreamsTask, int]
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    is_classic: bool


class InternalTopic(NamedTuple):
    name: str
    partitions: int
    """0 if the number follows from other topics."""
    replication_factor: int
    config: dict[str, str]


class Subtopology(NamedTuple):
    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]


class StreamsGroupDescription(NamedTuple):
    group_id: str
    state: GroupState
    group_epoch: int
    target_assignment_epoch: int
    topology_epoch: int | None
    subtopologies: tuple[Subtopology, ...]
    members: tuple[StreamsMember, ...]
    coordinator: Broker
    authorized_operations: Operations | None


async def describe_streams_groups(
    asking: Asking,
    group_ids: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Results[str, StreamsGroupDescription]:
    """Streams groups with topology and members. Fails with `GroupIdNotFound` where there is no such group."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[StreamsGroupDescription]]:
        request = messages.StreamsGroupDescribeRequest(
            group_ids=left, include_authorized_operations=include_authorized_operations
        )
        response = await asking.once(node_id, request, deadline)
        coordinator = asking.cluster.view.brokers[node_id]
        return {one.group_id: _group(one, coordinator) for one in response.groups}

    return await asking.each(
        "describe_streams_groups", group_ids, by_coordinator(asking, CoordinatorKind.GROUP, ask, deadline), deadline
    )


def _group(told: Any, coordinator: Broker) -> Outcome[StreamsGroupDescription]:
    if told.error_code:
        return error_for(told.error_code, told.error_message)
    topology = told.topology
    return StreamsGroupDescription(
        told.group_id,
        named(GroupState, told.group_state, GroupState.UNKNOWN),
        told.group_epoch,
        told.assignment_epoch,
        None if topology is None else topology.epoch,
        () if topology is None else tuple(map(_subtopology, topology.subtopologies or ())),
        tuple(map(_member, told.members)),
        coordinator,
        operations(told.authorized_operations),
    )


def _subtopology(told: Any) -> Subtopology:
    return Subtopology(
        told.subtopology_id,
        tuple(told.source_topics),
        tuple(told.repartition_sink_topics),
        tuple(map(_internal_topic, told.state_changelog_topics)),
        tuple(map(_internal_topic, told.repartition_source_topics)),
    )


def _internal_topic(told: Any) -> InternalTopic:
    config = {one.key: one.value for one in told.topic_configs}
    return InternalTopic(told.name, told.partitions, told.replication_factor, config)


def _member(told: Any) -> StreamsMember:
    endpoint = told.user_endpoint
    return StreamsMember(
        told.member_id,
        told.member_epoch,
        told.instance_id,
        told.rack_id,
        told.client_id,
        told.client_host,
        told.topology_epoch,
        told.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        {one.key: one.value for one in told.client_tags},
        {StreamsTask(one.subtopology_id, one.partition): one.offset for one in told.task_offsets},
        {StreamsTask(one.subtopology_id, one.partition): one.offset for one in told.task_end_offsets},
        _tasks(told.assignment),
        _tasks(told.target_assignment),
        told.is_classic,
    )


def _tasks(told: Any) -> StreamsTasks:
    return StreamsTasks(*map(_flat, (told.active_tasks, told.standby_tasks, told.warmup_tasks)))


def _flat(told: Any) -> tuple[StreamsTask, ...]:
    return tuple(StreamsTask(one.subtopology_id, partition) for one in told for partition in one.partitions)
