"""AlterPartitionReassignments 0-1 and ListPartitionReassignments 0: moving replicas to other brokers (KIP-455)."""

from ottla.broker.cluster.forwarding import forward
from ottla.broker.context import Broker
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


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
    """Asked of the controller, as Kafka does: it knows of moves that are not committed everywhere yet."""
    forward(
        broker,
        lambda controller, now_ms: controller.list_partition_reassignments(request, now_ms),
        respond,
        lambda error: ListPartitionReassignmentsResponse(error_code=error, error_message=None),
        timeout_ms=request.timeout_ms,
    )
