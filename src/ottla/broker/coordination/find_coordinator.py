"""FindCoordinator 0-6: which node coordinates a group or a transactional id; several at once from version 4 (KIP-699).

The coordinator is the leader of the partition of an internal topic that the key belongs to. A topic that does not exist
yet is created; the client is told to ask again.
"""

from ottla.broker.admin.topic_creation import TopicCreation
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.cluster.cluster_view import ClusterView
from ottla.broker.coordination.coordinators import GROUPS, TRANSACTIONS
from ottla.broker.coordination.placement import partition_of
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse

_FIRST_WITH_SEVERAL = 4
_TOPICS = {0: GROUPS, 1: TRANSACTIONS}

Found = FindCoordinatorResponse.Coordinator


def handle_find_coordinator(
    metadata: ClusterMetadata,
    topic_creation: TopicCreation,
    context: RequestContext,
    request: FindCoordinatorRequest,
    respond: Respond,
) -> None:
    view = ClusterView(metadata.image, context.connection.listener)
    is_single = context.api_version < _FIRST_WITH_SEVERAL
    keys = [request.key] if is_single else request.coordinator_keys
    found = [_find(metadata, topic_creation, view, request.key_type, key) for key in keys]
    if not is_single:
        respond(FindCoordinatorResponse(coordinators=found))
        return
    (only,) = found
    respond(
        FindCoordinatorResponse(
            error_code=only.error_code,
            error_message=only.error_message or ErrorCode(only.error_code).name,
            node_id=only.node_id,
            host=only.host,
            port=only.port,
        )
    )


def _find(
    metadata: ClusterMetadata, topic_creation: TopicCreation, view: ClusterView, key_type: int, key: str
) -> Found:
    name = _TOPICS.get(key_type)
    if name is None:
        return _nobody(key, ErrorCode.INVALID_REQUEST)
    topic = metadata.image.topics.by_name.get(name)
    if topic is None:
        topic_creation.create([name])
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions.get(partition_of(key, len(topic.partitions)))
    leader = view.alive.get(partition.leader) if partition is not None else None
    if leader is None:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member, endpoint = leader
    return Found(
        key=key, node_id=member.id, host=endpoint.host, port=endpoint.port, error_code=ErrorCode.NONE, error_message=""
    )


def _nobody(key: str, error: ErrorCode) -> Found:
    return Found(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=error.name)
