"""ConsumerGroupHeartbeat 0-1: members of consumer groups join, stay, learn their partitions and leave (KIP-848)."""

from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.coordination.coordinators import Groups
from ottla.machines.group.consumer.heartbeats import Client, Refused, Reply
from ottla.machines.metadata.image.features import GROUP_VERSION
from ottla.runtime.request import RequestContext, Respond
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode, error_with_message
from ottla.wire.messages import ConsumerGroupHeartbeatRequest

_PROTOCOL = "consumer"


def handle_consumer_group_heartbeat(
    groups: Groups,
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    respond: Respond,
) -> None:
    if not is_enabled(metadata, node_settings):
        respond(_refused(Refused(ErrorCode.UNSUPPORTED_VERSION, "consumer groups are not enabled in this cluster")))
        return
    client = Client(context.client_id or "", f"/{context.connection.client_host}", context.may_use)
    groups.submit(
        request.group_id,
        lambda machine, now_ms: machine.members.consumer_heartbeat(request, client, now_ms),
        lambda reply: respond(_refused(reply) if isinstance(reply, Refused) else reply),
        lambda error: respond(Reply(error_code=error)),
    )


def is_enabled(metadata: ClusterMetadata, node_settings: NodeSettings) -> bool:
    """By the cluster (`group.version`) and by this node's settings."""
    by_cluster = metadata.image.features.level(GROUP_VERSION) >= 1
    return by_cluster and _PROTOCOL in node_settings.effective.list("group.coordinator.rebalance.protocols")


def _refused(refused: Refused) -> Reply:
    error, message = error_with_message(refused.error, refused.message)
    return Reply(error_code=error, error_message=message)
