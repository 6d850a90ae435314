"""ListGroups 0-5: the groups that this node coordinates, by state (KIP-518) and type (KIP-848) if asked."""

from functools import partial

from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import Gathered
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListGroupsRequest, ListGroupsResponse

_Listed = ListGroupsResponse.ListedGroup


def handle_list_groups(groups: Groups, _context: RequestContext, request: ListGroupsRequest, respond: Respond) -> None:
    if groups.is_loading:
        respond(ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    states = frozenset(state.strip().lower() for state in request.states_filter)
    types = frozenset(type.lower() for type in request.types_filter)
    led = list(groups.active)

    def reply(parts: list[list[_Listed]]) -> None:
        respond(ListGroupsResponse(groups=[listed for part in parts for listed in part]))

    gathered = Gathered(len(led), reply)
    for index, partition in enumerate(led):
        partition.query(
            lambda machine, _now_ms: machine.list_groups(states, types),
            partial(gathered.put, index),
            partial(_put_nothing, gathered, index),
        )


def _put_nothing(gathered: Gathered, index: int, _error: ErrorCode) -> None:
    """Another node has the partition by now, and lists its groups."""
    gathered.put(index, [])
