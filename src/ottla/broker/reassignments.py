"""AlterPartitionReassignments 0-1 and ListPartitionReassignments 0: moving replicas to other brokers (KIP-455)."""

from collections.abc import Iterator

from ottla.broker.context import Broker
from ottla.broker.forwarding import forward
from ottla.machines.metadata.topics import TopicImage
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

OngoingTopic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
OngoingPartition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def handle_alter_partition_reassignments(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest, respond: Respond
) -> None:
    forward(
        broker,
        lambda controller, now_ms: controller.alter_partition_reassignments(request, now_ms),
        respond,
        lambda error: AlterPartitionReassignmentsResponse(error_code=error, error_message=None),
        timeout_ms=request.timeout_ms,
    )


def handle_list_partition_reassignments(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest, respond: Respond
) -> None:
    """Nothing changes, so it is answered from the committed metadata. What does not exist is left out."""
    topics = []
    for topic, indexes in _asked(broker, request):
        partitions = [
            OngoingPartition(
                partition_index=index,
                replicas=partition.replicas,
                adding_replicas=partition.adding_replicas,
                removing_replicas=partition.removing_replicas,
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and partition.is_reassigning
        ]
        if partitions:
            topics.append(OngoingTopic(name=topic.name, partitions=partitions))
    respond(ListPartitionReassignmentsResponse(error_message=None, topics=topics))


def _asked(broker: Broker, request: ListPartitionReassignmentsRequest) -> Iterator[tuple[TopicImage, tuple[int, ...]]]:
    """All that there are, or those that are named."""
    known = broker.image.topics.by_name
    if request.topics is None:
        yield from ((topic, tuple(topic.partitions)) for topic in known.values())
        return
    for asked in request.topics:
        if asked.name in known:
            yield known[asked.name], tuple(asked.partition_indexes)
