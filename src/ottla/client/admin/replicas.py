"""Replicas of partitions: who leads, and moving them to other brokers (KIP-455, KIP-460)."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking, is_throttled
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.errors import error_for
from ottla.client.topic_partition import by_topic
from ottla.wire import messages


class ElectionType(IntEnum):
    PREFERRED = 0
    """The first replica of the partition shall lead."""
    UNCLEAN = 1
    """Any replica shall lead a partition without a leader, though records may be lost."""


class PartitionReassignment(NamedTuple):
    """A move that is under way; broker ids."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


async def elect_leaders(
    asking: Asking,
    election_type: ElectionType,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Results[TopicPartition, None]:
    """Elects leaders of these partitions, or of all that need it; then the results are those that were elected.

    A partition that has the right leader fails with `ElectionNotNeeded`.
    """
    deadline = asking.deadline(timeout)

    async def elect(left: list[TopicPartition] | None) -> dict[TopicPartition, Outcome[None]]:
        request = messages.ElectLeadersRequest
        topics = None
        if left is not None:
            topics = [
                request.TopicPartitions(topic=topic, partitions=[one.partition for one in of_topic])
                for topic, of_topic in by_topic(left).items()
            ]
        made = request(
            election_type=election_type, topic_partitions=topics, timeout_ms=asking.server_timeout_ms(deadline)
        )
        response = await asking.controller(made, deadline)
        if response.error_code:
            raise error_for(response.error_code)
        return {
            TopicPartition(topic.topic, one.partition_id): failure(one)
            for topic in response.replica_election_results
            for one in topic.partition_result
        }

    if partitions is None:
        return Results("elect_leaders", await elect(None))
    wanted = [TopicPartition(*partition) for partition in partitions]
    return await asking.each("elect_leaders", wanted, elect, deadline, may_pass=is_throttled)


async def alter_partition_reassignments(
    asking: Asking,
    replicas: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_replication_factor_change: bool = True,
    timeout: float | None = None,
) -> Results[TopicPartition, None]:
    """Moves partitions to other brokers, the preferred leader first; None cancels a move that is under way.

    The move continues after the call: `list_partition_reassignments` tells how far it is.
    """
    deadline = asking.deadline(timeout)
    wanted = {TopicPartition(*partition): brokers for partition, brokers in replicas.items()}

    def partition(one: TopicPartition) -> messages.AlterPartitionReassignmentsRequest.ReassignablePartition:
        brokers = wanted[one]
        return messages.AlterPartitionReassignmentsRequest.ReassignablePartition(
            partition_index=one.partition, replicas=None if brokers is None else list(brokers)
        )

    async def attempt(left: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        request = messages.AlterPartitionReassignmentsRequest
        made = request(
            timeout_ms=asking.server_timeout_ms(deadline),
            allow_replication_factor_change=allow_replication_factor_change,
            topics=[
                request.ReassignableTopic(name=topic, partitions=list(map(partition, of_topic)))
                for topic, of_topic in by_topic(left).items()
            ],
        )
        response = await asking.controller(made, deadline)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, one.partition_index): failure(one)
            for topic in response.responses
            for one in topic.partitions
        }

    return await asking.each("alter_partition_reassignments", wanted, attempt, deadline, may_pass=is_throttled)


async def list_partition_reassignments(
    asking: Asking, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
) -> dict[TopicPartition, PartitionReassignment]:
    """The moves that are under way: of these partitions, or all. A partition that is not moving is left out."""
    deadline = asking.deadline(timeout)
    request = messages.ListPartitionReassignmentsRequest
    topics = None
    if partitions is not None:
        topics = [
            request.ListPartitionReassignmentsTopics(name=topic, partition_indexes=[one.partition for one in of_topic])
            for topic, of_topic in by_topic(TopicPartition(*one) for one in partitions).items()
        ]
    made = request(timeout_ms=asking.server_timeout_ms(deadline), topics=topics)
    response = await asking.controller(made, deadline)
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, one.partition_index): PartitionReassignment(
            tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas)
        )
        for topic in response.topics
        for one in topic.partitions
    }
