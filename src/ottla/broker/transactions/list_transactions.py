"""ListTransactions, versions 0 to 2: the transactional ids that are coordinated here (KIP-664, KIP-994, KIP-1152).

Ids can be as long as a request and there can be many, so a pattern is matched on a worker.
"""

from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.machines.patterns import ClientPattern, InvalidPattern
from ottla.machines.transaction.listing import TransactionFilter
from ottla.machines.transaction.states import BY_PUBLIC_NAME
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListTransactionsRequest, ListTransactionsResponse

_State = ListTransactionsResponse.TransactionState


def handle_list_transactions(
    transactions: Transactions,
    world: World,
    _context: RequestContext,
    request: ListTransactionsRequest,
    respond: Respond,
) -> None:
    if transactions.is_loading:
        respond(ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    asked, pattern, now_ms = _filter(request), request.transactional_id_pattern, world.clock.now_ms()
    listed = [
        _State(transactional_id=name, producer_id=one.producer_id, transaction_state=one.state.public_name)
        for led in transactions.active
        for name, one in led.machine.listed(asked, now_ms)
    ]

    def answer(matching: list[_State] | None) -> None:
        if matching is None:
            respond(ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION))
            return
        unknown = [name for name in request.state_filters if name not in BY_PUBLIC_NAME]
        respond(ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=matching))

    if pattern:
        world.workers.run(lambda: _matching(pattern, listed), answer, key=_matching)
    else:
        answer(listed)


def _filter(request: ListTransactionsRequest) -> TransactionFilter:
    states = frozenset(BY_PUBLIC_NAME[name] for name in request.state_filters if name in BY_PUBLIC_NAME)
    return TransactionFilter(
        states=states if request.state_filters else None,
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
    )


def _matching(expression: str, listed: list[_State]) -> list[_State] | None:
    """None if the expression is none."""
    try:
        pattern = ClientPattern(expression)
    except InvalidPattern:
        return None
    return [state for state in listed if pattern.matches(state.transactional_id)]
