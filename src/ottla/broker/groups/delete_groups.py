"""DeleteGroups 0-2: forgets groups that are empty, with their offsets (KIP-229)."""

from collections.abc import Callable
from functools import partial
from itertools import chain

from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import Gathered
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse

_Result = DeleteGroupsResponse.DeletableGroupResult


def handle_delete_groups(
    groups: Groups, _context: RequestContext, request: DeleteGroupsRequest, respond: Respond
) -> None:
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        by_partition.setdefault(groups.partition_for(group_id), []).append(group_id)

    def reply(results: list[_Result]) -> None:
        respond(DeleteGroupsResponse(results=results))

    group_ids = list(chain.from_iterable(by_partition.values()))
    gathered = Gathered(len(group_ids), reply)
    for index, group_id in enumerate(group_ids):
        _delete(groups, group_id, partial(gathered.put, index))


def _delete(groups: Groups, group_id: str, put: Callable[[_Result], None]) -> None:
    groups.submit(
        group_id,
        lambda machine, now_ms: machine.delete_group(group_id, now_ms),
        put,
        lambda error: put(_Result(group_id=group_id, error_code=error)),
    )
