"""ElectLeaders 0-2: moves leaderships to preferred replicas, or, uncleanly, to any that is alive (KIP-460)."""

from ottla.broker.cluster.forwarding import forward
from ottla.broker.context import Broker
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ElectLeadersRequest, ElectLeadersResponse

_PREFERRED, _UNCLEAN = 0, 1
_FIRST_WITH_ERROR = 1


def handle_elect_leaders(
    broker: Broker, context: RequestContext, request: ElectLeadersRequest, respond: Respond
) -> None:
    def refused(error: ErrorCode, message: str | None = None) -> ElectLeadersResponse:
        """Version 0 has no error of its own, so every partition carries it."""
        return ElectLeadersResponse(
            error_code=error if context.api_version >= _FIRST_WITH_ERROR else ErrorCode.NONE,
            replica_election_results=[
                ElectLeadersResponse.ReplicaElectionResult(
                    topic=topic.topic,
                    partition_result=[
                        ElectLeadersResponse.PartitionResult(
                            partition_id=partition, error_code=error, error_message=message
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topic_partitions or ()
            ],
        )

    if request.election_type not in (_PREFERRED, _UNCLEAN):
        respond(refused(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"))
        return
    forward(
        broker,
        lambda controller, now_ms: controller.elect_leaders(request, now_ms),
        respond,
        refused,
        timeout_ms=request.timeout_ms,
    )
