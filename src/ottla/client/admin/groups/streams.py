"""Streams groups (KIP-1071): the members of a Kafka Streams application, its topology and its tasks.

Their offsets are those of a consumer group.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.client.admin.asking import Asking
from ottla.client.admin.groups.describing import describe_each
from ottla.client.admin.groups.listing import GroupState
from ottla.client.admin.known_values import named
from ottla.client.admin.operations import Operations, operations
from ottla.client.admin.results import Outcome, Results
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

    def request(left: list[str]) -> messages.StreamsGroupDescribeRequest:
        return messages.StreamsGroupDescribeRequest(
            group_ids=left, include_authorized_operations=include_authorized_operations
        )

    return await describe_each(asking, "describe_streams_groups", group_ids, request, _group, timeout)


def _group(answer: Any, coordinator: Broker) -> Outcome[StreamsGroupDescription]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    topology = answer.topology
    return StreamsGroupDescription(
        answer.group_id,
        named(GroupState, answer.group_state, GroupState.UNKNOWN),
        answer.group_epoch,
        answer.assignment_epoch,
        None if topology is None else topology.epoch,
        () if topology is None else tuple(map(_subtopology, topology.subtopologies or ())),
        tuple(map(_member, answer.members)),
        coordinator,
        operations(answer.authorized_operations),
    )


def _subtopology(answer: Any) -> Subtopology:
    return Subtopology(
        answer.subtopology_id,
        tuple(answer.source_topics),
        tuple(answer.repartition_sink_topics),
        tuple(map(_internal_topic, answer.state_changelog_topics)),
        tuple(map(_internal_topic, answer.repartition_source_topics)),
    )


def _internal_topic(answer: Any) -> InternalTopic:
    config = {one.key: one.value for one in answer.topic_configs}
    return InternalTopic(answer.name, answer.partitions, answer.replication_factor, config)


def _member(answer: Any) -> StreamsMember:
    endpoint = answer.user_endpoint
    return StreamsMember(
        answer.member_id,
        answer.member_epoch,
        answer.instance_id,
        answer.rack_id,
        answer.client_id,
        answer.client_host,
        answer.topology_epoch,
        answer.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        {one.key: one.value for one in answer.client_tags},
        {StreamsTask(one.subtopology_id, one.partition): one.offset for one in answer.task_offsets},
        {StreamsTask(one.subtopology_id, one.partition): one.offset for one in answer.task_end_offsets},
        _tasks(answer.assignment),
        _tasks(answer.target_assignment),
        answer.is_classic,
    )


def _tasks(answer: Any) -> StreamsTasks:
    return StreamsTasks(*map(_flat, (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)))


def _flat(answer: Any) -> tuple[StreamsTask, ...]:
    return tuple(StreamsTask(one.subtopology_id, partition) for one in answer for partition in one.partitions)
