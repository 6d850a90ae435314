"""JoinGroup 0-9: coming to the barrier of a classic group. The reply may take as long as the rebalance does."""

from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import ParkedRequest
from ottla.config.parse import Values
from ottla.machines.group.classic.joining import JoiningClient
from ottla.machines.group.classic.replies import write_error
from ottla.runtime.request import RequestContext, Respond
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import JoinGroupRequest, JoinGroupResponse

_FIRST_WITH_REBALANCE_TIMEOUT = 1
_FIRST_WITH_NULL_PROTOCOL = 7


def handle_join_group(
    groups: Groups, node_settings: NodeSettings, context: RequestContext, request: JoinGroupRequest, respond: Respond
) -> None:
    version = context.api_version

    def reply(message: Message | None) -> None:
        assert isinstance(message, JoinGroupResponse)
        if version < _FIRST_WITH_NULL_PROTOCOL and message.protocol_name is None:
            message.protocol_name = ""
        respond(message)

    error = _refusal(node_settings.effective, request)
    if error:
        reply(JoinGroupResponse(member_id=request.member_id, error_code=error))
        return
    if version < _FIRST_WITH_REBALANCE_TIMEOUT:
        request.rebalance_timeout_ms = request.session_timeout_ms
    waiter = ParkedRequest(reply, lambda error: JoinGroupResponse(error_code=error))
    client = JoiningClient(context.client_id or "", f"/{context.connection.client_host}", version)
    groups.submit(
        request.group_id,
        lambda machine, now_ms: machine.members.join(request, client, waiter, now_ms),
        lambda _: None,
        lambda error: waiter.failed(write_error(error)),
    )


def _refusal(settings: Values, request: JoinGroupRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    shortest_ms = settings.integer("group.min.session.timeout.ms")
    longest_ms = settings.integer("group.max.session.timeout.ms")
    if not shortest_ms <= request.session_timeout_ms <= longest_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE
