"""DeleteGroups 0-2: forgets groups that are empty, with their offsets (KIP-229)."""

from collections.abc import Callable
from functools import partial

from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import Gathered
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse

_Result = DeleteGroupsResponse.DeletableGroupResult


def handle_delete_groups(
    groups: Groups, _context: RequestContext, request: DeleteGroupsRequest, respond: Respond
) -> None:
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        by_partition.setdefault(groups.partition_for(group_id), []).append(group_id)

    def reply(parts: list[list[_Result]]) -> None:
        respond(DeleteGroupsResponse(results=[result for part in parts for result in part]))

    gathered = Gathered(len(by_partition), reply)
    for index, group_ids in enumerate(by_partition.values()):
        _delete(groups, group_ids, partial(gathered.put, index))


def _delete(groups: Groups, group_ids: list[str], put: Callable[[list[_Result]], None]) -> None:
    """Groups of one partition, together."""
    groups.submit(
        group_ids[0],
        lambda machine, now_ms: machine.delete_groups(group_ids, now_ms),
        put,
        lambda error: put(_refused(group_ids, error)),
    )


def _refused(group_ids: list[str], error: ErrorCode) -> list[_Result]:
    return [_Result(group_id=group_id, error_code=error) for group_id in group_ids]
