"""Heartbeat 0-4: a member of a classic group is alive, and learns whether a rebalance has begun."""

from ottla.broker.coordination.coordinators import Groups
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import HeartbeatRequest, HeartbeatResponse


def handle_heartbeat(groups: Groups, _context: RequestContext, request: HeartbeatRequest, respond: Respond) -> None:
    if not request.group_id:
        respond(HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return
    groups.submit(
        request.group_id,
        lambda machine, now_ms: machine.members.heartbeat(request, now_ms),
        respond,
        lambda error: respond(_refused(error)),
    )


def _refused(error: ErrorCode) -> HeartbeatResponse:
    """While the group is loaded its members are taken for alive."""
    is_loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error)
