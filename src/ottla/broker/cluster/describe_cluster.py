"""DescribeCluster 0-2: the brokers of the cluster, for admin clients (KIP-700).

This listener is a broker's: a client that asks for the controllers (KIP-919) has come to the wrong door.
"""

from ottla.broker.cluster.cluster_metadata import ClusterMetadata, NodeIdentity
from ottla.broker.cluster.cluster_view import ClusterView
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import RequestContext, Respond
from ottla.security.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED
from ottla.serving.endpoint_types import BROKERS, CONTROLLERS, unsupported_endpoint
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeClusterRequest, DescribeClusterResponse


def handle_describe_cluster(
    metadata: ClusterMetadata,
    identity: NodeIdentity,
    context: RequestContext,
    request: DescribeClusterRequest,
    respond: Respond,
) -> None:
    if request.endpoint_type != BROKERS:
        respond(_wrong_door(request.endpoint_type))
        return
    view = ClusterView(metadata.image, context.connection.listener)
    respond(
        DescribeClusterResponse(
            cluster_id=identity.cluster_id,
            controller_id=view.controller_id(identity.node_id),
            brokers=_brokers(metadata.image, context.connection.listener, with_fenced=request.include_fenced_brokers),
            cluster_authorized_operations=(
                ALL_ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED
            ),
        )
    )


def _brokers(
    image: MetadataImage, listener: str, *, with_fenced: bool
) -> list[DescribeClusterResponse.DescribeClusterBroker]:
    """Fenced brokers on request (KIP-1073). A broker without the listener is never shown."""
    described = []
    for member in sorted(image.brokers.by_id.values(), key=lambda member: member.id):
        endpoint = member.endpoint(listener)
        if endpoint is not None and (with_fenced or not member.fenced):
            described.append(
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=member.id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=member.rack,
                    is_fenced=member.fenced,
                )
            )
    return described


def _wrong_door(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="This is an endpoint of a broker; the request is for one of a controller.",
        )
    return unsupported_endpoint(endpoint_type)
