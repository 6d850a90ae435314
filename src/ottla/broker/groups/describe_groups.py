"""DescribeGroups 0-6: classic groups with their members and what these were given.

A group that does not exist is reported as Dead; from version 6 as not found (KIP-1043).
"""

from collections.abc import Callable
from functools import partial

from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import Gathered
from ottla.runtime.request import RequestContext, Respond
from ottla.security.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from ottla.wire.errors import ErrorCode, error_with_message
from ottla.wire.messages import DescribeGroupsRequest, DescribeGroupsResponse

_FIRST_WITH_NOT_FOUND = 6
_DEAD = "Dead"

_Described = DescribeGroupsResponse.DescribedGroup


def handle_describe_groups(
    groups: Groups, context: RequestContext, request: DescribeGroupsRequest, respond: Respond
) -> None:
    operations = ALL_ON_GROUP if request.include_authorized_operations else NOT_ASKED
    knows_not_found = context.api_version >= _FIRST_WITH_NOT_FOUND

    def reply(described: list[_Described]) -> None:
        for group in described:
            group.authorized_operations = NOT_ASKED if group.error_code else operations
        respond(DescribeGroupsResponse(groups=described))

    group_ids = list(dict.fromkeys(request.groups))  # A large group is reported once, however often it is named.
    gathered = Gathered(len(group_ids), reply)
    for index, group_id in enumerate(group_ids):
        _describe(groups, group_id, partial(gathered.put, index), knows_not_found=knows_not_found)


def _describe(groups: Groups, group_id: str, put: Callable[[_Described], None], *, knows_not_found: bool) -> None:
    groups.query(
        group_id,
        lambda machine, _now_ms: machine.describe_group(group_id),
        lambda found: put(found or _missing(group_id, knows_not_found=knows_not_found)),
        lambda error: put(_Described(group_id=group_id, error_code=error)),
    )


def _missing(group_id: str, *, knows_not_found: bool) -> _Described:
    if not knows_not_found:
        return _Described(group_id=group_id, group_state=_DEAD)
    error, message = error_with_message(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return _Described(group_id=group_id, group_state=_DEAD, error_code=error, error_message=message)
