"""ConsumerGroupDescribe 0-1: consumer groups with their epochs, members, and what these have and are to have."""

from collections.abc import Callable
from functools import partial

from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import Gathered
from ottla.broker.groups.consumer_group_heartbeat import is_enabled
from ottla.machines.group.consumer.describing import Described
from ottla.runtime.request import RequestContext, Respond
from ottla.security.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode, error_with_message
from ottla.wire.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


def handle_consumer_group_describe(
    groups: Groups,
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    _context: RequestContext,
    request: ConsumerGroupDescribeRequest,
    respond: Respond,
) -> None:
    operations = ALL_ON_GROUP if request.include_authorized_operations else NOT_ASKED

    def reply(described: list[Described]) -> None:
        for group in described:
            group.authorized_operations = NOT_ASKED if group.error_code else operations
        respond(ConsumerGroupDescribeResponse(groups=described))

    if not is_enabled(metadata, node_settings):
        reply([Described(group_id=id, error_code=ErrorCode.UNSUPPORTED_VERSION) for id in request.group_ids])
        return
    group_ids = list(dict.fromkeys(request.group_ids))  # A large group is reported once, however often it is named.
    gathered = Gathered(len(group_ids), reply)
    for index, group_id in enumerate(group_ids):
        _describe(groups, group_id, partial(gathered.put, index))


def _describe(groups: Groups, group_id: str, put: Callable[[Described], None]) -> None:
    if not group_id:
        put(Described(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID))
        return
    groups.query(
        group_id,
        lambda machine, _now_ms: machine.describe_consumer_group(group_id),
        lambda found: put(found or _missing(group_id)),
        lambda error: put(Described(group_id=group_id, error_code=error)),
    )


def _missing(group_id: str) -> Described:
    error, message = error_with_message(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return Described(group_id=group_id, error_code=error, error_message=message)
