"""ListTransactions, versions 0 to 2: the transactional ids that are coordinated here (KIP-664, KIP-994, KIP-1152)."""

import re

from ottla.broker.context import Broker
from ottla.machines.transaction.listing import TransactionFilter
from ottla.machines.transaction.states import BY_PUBLIC_NAME
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListTransactionsRequest, ListTransactionsResponse

_State = ListTransactionsResponse.TransactionState


def handle_list_transactions(
    broker: Broker, _context: RequestContext, request: ListTransactionsRequest, respond: Respond
) -> None:
    transactions = broker.coordinators.transactions
    if transactions.is_loading:
        respond(ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    try:
        asked = _filter(request)
    except re.error:
        respond(ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION))
        return
    now_ms = broker.clock.now_ms()
    respond(
        ListTransactionsResponse(
            unknown_state_filters=[name for name in request.state_filters if name not in BY_PUBLIC_NAME],
            transaction_states=[
                _State(transactional_id=name, producer_id=one.producer_id, transaction_state=one.state.public_name)
                for led in transactions.active
                for name, one in led.machine.listed(asked, now_ms)
            ],
        )
    )


def _filter(request: ListTransactionsRequest) -> TransactionFilter:
    states = frozenset(BY_PUBLIC_NAME[name] for name in request.state_filters if name in BY_PUBLIC_NAME)
    pattern = request.transactional_id_pattern
    return TransactionFilter(
        states=states if request.state_filters else None,
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        takes_id=re.compile(pattern).fullmatch if pattern else None,
    )
