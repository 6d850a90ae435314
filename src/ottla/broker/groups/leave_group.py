"""LeaveGroup 0-5: one member, or from version 3 several, leave a classic group (KIP-345)."""

from ottla.broker.coordination.coordinators import Groups
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import LeaveGroupRequest, LeaveGroupResponse

_FIRST_WITH_SEVERAL = 3


def handle_leave_group(groups: Groups, context: RequestContext, request: LeaveGroupRequest, respond: Respond) -> None:
    is_single = context.api_version < _FIRST_WITH_SEVERAL
    if is_single:
        request.members = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    if not request.group_id:
        respond(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return

    def reply(response: LeaveGroupResponse) -> None:
        if is_single:
            response = LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)
        respond(response)

    groups.submit(
        request.group_id,
        lambda machine, now_ms: machine.members.leave(request, now_ms),
        reply,
        lambda error: respond(LeaveGroupResponse(error_code=error)),
    )
