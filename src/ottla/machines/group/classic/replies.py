"""Replies to members of a classic group."""

from typing import Final

from ottla.machines.group.classic.group import ClassicGroup
from ottla.machines.group.classic.member import ClassicMember
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse

_FIRST_WITH_SKIPPED_ASSIGNMENT: Final = 9


def write_error(error: ErrorCode) -> ErrorCode:
    """What a member gets when the group could not be written down: that it has grown too large is not its doing."""
    is_too_large = error in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
    return ErrorCode.UNKNOWN_SERVER_ERROR if is_too_large else error


def refused_join(request: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=request.member_id, error_code=error, protocol_name=None)


def rejoin(member: ClassicMember) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=member.member_id, error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def joined(group: ClassicGroup, member: ClassicMember, *, with_members: bool = False) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=group.for_leader() if with_members else [],
    )


def rejoined(
    group: ClassicGroup, member: ClassicMember, old_leader_id: str | None, api_version: int
) -> JoinGroupResponse:
    """A static member is back and nothing changes for the others.

    The reply to a leader says so (KIP-814); one too old to understand gets the leader that was, so that it divides
    nothing.
    """
    if api_version >= _FIRST_WITH_SKIPPED_ASSIGNMENT:
        is_leader = group.leader_id == member.member_id
        reply = joined(group, member, with_members=is_leader)
        reply.skip_assignment = is_leader
        return reply
    reply = joined(group, member)
    reply.leader = old_leader_id or ""
    return reply


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)
