"""SyncGroup 0-5: the leader of a classic group brings the assignments, and every member gets its own."""

from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import ParkedRequest
from ottla.machines.group.classic.replies import write_error
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import SyncGroupRequest, SyncGroupResponse

_FIRST_WITH_PROTOCOL = 5


def handle_sync_group(groups: Groups, context: RequestContext, request: SyncGroupRequest, respond: Respond) -> None:
    waiter = ParkedRequest(respond, lambda error: SyncGroupResponse(error_code=error))
    if not request.group_id:
        waiter.failed(ErrorCode.INVALID_GROUP_ID)
        return
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= _FIRST_WITH_PROTOCOL and not names_protocol:
        waiter.failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return
    groups.submit(
        request.group_id,
        lambda machine, now_ms: machine.members.sync(request, waiter, now_ms),
        lambda _: None,
        lambda error: waiter.failed(write_error(error)),
    )
