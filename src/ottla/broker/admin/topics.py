"""CreateTopics 2-7, DeleteTopics 1-6 and CreatePartitions 0-3: the controller decides, this node passes them on.

Left out: the quota on mutations (KIP-599), which would throttle, and policies, which are Java classes.
"""

from ottla.broker.cluster.forwarding import forward
from ottla.broker.context import Broker
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)


def handle_create_topics(
    broker: Broker, context: RequestContext, request: CreateTopicsRequest, respond: Respond
) -> None:
    def refused(error: ErrorCode) -> CreateTopicsResponse:
        names = dict.fromkeys(topic.name for topic in request.topics)
        return CreateTopicsResponse(
            topics=[
                CreateTopicsResponse.CreatableTopicResult(name=name, error_code=error, error_message=None)
                for name in names
            ]
        )

    forward(
        broker,
        lambda controller, now_ms: controller.create_topics(request, now_ms),
        respond,
        refused,
        timeout_ms=request.timeout_ms,
    )


def handle_delete_topics(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest, respond: Respond
) -> None:
    """Versions before 6 have a list of names only."""
    asked = [*request.topics, *(DeleteTopicsRequest.DeleteTopicState(name=name) for name in request.topic_names)]

    def refused(error: ErrorCode) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(
            responses=[
                DeleteTopicsResponse.DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error)
                for topic in asked
            ]
        )

    if asked and not broker.config["delete.topic.enable"]:
        no_api = context.api_version < _FIRST_WITH_TOPIC_DELETION_DISABLED
        respond(refused(ErrorCode.INVALID_REQUEST if no_api else ErrorCode.TOPIC_DELETION_DISABLED))
        return
    forward(
        broker,
        lambda controller, now_ms: controller.delete_topics(request, now_ms),
        respond,
        refused,
        timeout_ms=request.timeout_ms,
    )


_FIRST_WITH_TOPIC_DELETION_DISABLED = 3


def handle_create_partitions(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest, respond: Respond
) -> None:
    def refused(error: ErrorCode) -> CreatePartitionsResponse:
        names = dict.fromkeys(topic.name for topic in request.topics)
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsResponse.CreatePartitionsTopicResult(name=name, error_code=error) for name in names
            ]
        )

    forward(
        broker,
        lambda controller, now_ms: controller.create_partitions(request, now_ms),
        respond,
        refused,
        timeout_ms=request.timeout_ms,
    )
