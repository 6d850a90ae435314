"""What only a connection to a listener of controllers can ask (KIP-919): ApiVersions, DescribeCluster, SASL in vain.

Tools come here with `--bootstrap-controller`, to look after a cluster whose brokers do not answer. A controller is no
broker: it shows the controllers and not the brokers.
"""

from typing import Final

from ottla.apis.table import served_by_controllers
from ottla.controller.controller_server import ControllerServer
from ottla.runtime.request import RequestContext, Respond
from ottla.security.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED
from ottla.serving import sasl_state
from ottla.serving.api_versions import answer_api_versions, served
from ottla.serving.endpoint_types import BROKERS, CONTROLLERS, unsupported_endpoint
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

_FIRST_WITH_ENDPOINT_TYPES: Final = 1


def handle_api_versions(
    server: ControllerServer, context: RequestContext, request: ApiVersionsRequest, respond: Respond
) -> None:
    answer_api_versions(
        context,
        request,
        respond,
        served(served_by_controllers()),
        server.image.features,
        features_epoch=server.quorum.high_watermark - 1,
    )


def handle_sasl_handshake(
    server: ControllerServer, context: RequestContext, request: SaslHandshakeRequest, respond: Respond
) -> None:
    sasl_state.handle_sasl_handshake(context, request, respond)


def handle_sasl_authenticate(
    server: ControllerServer, context: RequestContext, request: SaslAuthenticateRequest, respond: Respond
) -> None:
    sasl_state.handle_sasl_authenticate(context, request, respond)


def handle_describe_cluster(
    server: ControllerServer, context: RequestContext, request: DescribeClusterRequest, respond: Respond
) -> None:
    if request.endpoint_type == BROKERS:
        respond(_wrong_door(context.api_version))
        return
    if request.endpoint_type != CONTROLLERS:
        respond(unsupported_endpoint(request.endpoint_type))
        return
    respond(
        DescribeClusterResponse(
            endpoint_type=CONTROLLERS,
            cluster_id=server.cluster_id,
            controller_id=server.quorum.leader_id,
            brokers=[
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=controller.node_id, host=controller.host, port=controller.port
                )
                for controller in server.quorum.endpoints()
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
