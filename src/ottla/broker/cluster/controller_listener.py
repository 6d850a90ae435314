"""What the listeners of controllers answer otherwise than those of brokers (KIP-919).

Tools come here with `--bootstrap-controller`, to look after a cluster whose brokers do not answer. What they ask is
the same; but a controller is no broker: it shows the controllers and not the brokers, and takes settings for any
broker and not for itself alone.
"""

from collections import Counter
from functools import cache
from typing import Final

from ottla.broker.admin.settings.logger_changes import change_loggers
from ottla.broker.cluster.api_versions import answer_api_versions, served
from ottla.broker.cluster.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED
from ottla.broker.cluster.describe_cluster import BROKERS, CONTROLLERS, unsupported_endpoint
from ottla.broker.cluster.forwarding import forward
from ottla.broker.context import Broker
from ottla.broker.dispatch import CONTROLLER_ROUTES
from ottla.machines.metadata.decisions.alter_configs import ALTERABLE
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_FIRST_WITH_ENDPOINT_TYPES: Final = 1


def handle_api_versions(broker: Broker, context: RequestContext, request: ApiVersionsRequest, respond: Respond) -> None:
    answer_api_versions(broker, context, request, respond, _served_by_controllers())


@cache
def _served_by_controllers() -> list[ApiVersionsResponse.ApiVersion]:
    return served(CONTROLLER_ROUTES)


def handle_describe_cluster(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest, respond: Respond
) -> None:
    quorum = broker.quorum
    assert quorum is not None, "the node gives the broker its quorum before it listens"
    if request.endpoint_type == BROKERS:
        respond(_wrong_door(context.api_version))
        return
    if request.endpoint_type != CONTROLLERS:
        respond(unsupported_endpoint(request.endpoint_type))
        return
    respond(
        DescribeClusterResponse(
            endpoint_type=CONTROLLERS,
            cluster_id=broker.cluster_id,
            controller_id=quorum.leader_id,
            brokers=[
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=controller.node_id, host=controller.host, port=controller.port
                )
                for controller in quorum.endpoints()
                if controller.listener == context.connection.listener
            ],
            cluster_authorized_operations=(
                ALL_ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED
            ),
        )
    )


def _wrong_door(api_version: int) -> DescribeClusterResponse:
    """Clients of version 0 do not know that there are two kinds of endpoint, nor the error that says so."""
    knows = api_version >= _FIRST_WITH_ENDPOINT_TYPES
    return DescribeClusterResponse(
        error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if knows else ErrorCode.INVALID_REQUEST,
        error_message="This is an endpoint of a controller; the request is for one of a broker.",
    )


def handle_alter_configs(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest, respond: Respond
) -> None:
    def refused(error: ErrorCode) -> AlterConfigsResponse:
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=error,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ]
        )

    forward(broker, lambda controller, now_ms: controller.alter_configs(request, now_ms), respond, refused)


def handle_incremental_alter_configs(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest, respond: Respond
) -> None:
    """Loggers are this node's own business, and changed here. Each resource has one answer, also if named twice."""
    settled, others = [], []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    for key, resource in resources.items():
        if times[key] > 1:
            settled.append(_altered(resource, ErrorCode.INVALID_REQUEST, "Duplicate resource."))
        elif resource.resource_type == ResourceType.BROKER_LOGGER:
            outcome = change_loggers(broker.node_id, resource, validate_only=request.validate_only)
            settled.append(_altered(resource, *outcome))
        elif resource.resource_type not in ALTERABLE:
            unknown = f"Unknown resource type {resource.resource_type}."
            settled.append(_altered(resource, ErrorCode.UNSUPPORTED_VERSION, unknown))
        elif _is_strangers(broker, resource):
            unknown = f"No node with id {resource.resource_name} found."
            settled.append(_altered(resource, ErrorCode.BROKER_ID_NOT_REGISTERED, unknown))
        else:
            others.append(resource)
    rest = IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only)

    def decided(reply: IncrementalAlterConfigsResponse) -> None:
        reply.responses += settled
        respond(reply)

    def failed(error: ErrorCode) -> None:
        refused = [_altered(resource, error, None) for resource in others]
        respond(IncrementalAlterConfigsResponse(responses=refused + settled))

    broker.controller.submit(
        lambda controller, now_ms: controller.incremental_alter_configs(rest, now_ms), decided, failed
    )


def handle_assign_replicas_to_dirs(
    broker: Broker, context: RequestContext, request: AssignReplicasToDirsRequest, respond: Respond
) -> None:
    """AssignReplicasToDirs, version 0, of brokers that do not share a process with the controller (KIP-858)."""
    forward(
        broker,
        lambda controller, now_ms: controller.assign_replicas_to_dirs(request, now_ms),
        respond,
        lambda error: AssignReplicasToDirsResponse(error_code=error),
    )


def _is_strangers(broker: Broker, resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> bool:
    name = resource.resource_name
    if resource.resource_type != ResourceType.BROKER or not name.isdecimal():
        return False
    return int(name) not in broker.image.brokers.by_id and int(name) != broker.node_id


def _altered(
    resource: IncrementalAlterConfigsRequest.AlterConfigsResource, error: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    return IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
