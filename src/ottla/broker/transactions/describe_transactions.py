"""DescribeTransactions, version 0: what the coordinator knows of transactional ids (KIP-664)."""

from collections.abc import Callable
from functools import partial

from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.machines.transaction.transaction import Transaction
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeTransactionsRequest, DescribeTransactionsResponse

_State = DescribeTransactionsResponse.TransactionState
_Topic = DescribeTransactionsResponse.TopicData


def handle_describe_transactions(
    transactions: Transactions, _context: RequestContext, request: DescribeTransactionsRequest, respond: Respond
) -> None:
    asked = request.transactional_ids
    states: dict[int, DescribeTransactionsResponse.TransactionState] = {}

    def answer(place: int, state: DescribeTransactionsResponse.TransactionState) -> None:
        states[place] = state
        if len(states) == len(asked):
            respond(DescribeTransactionsResponse(transaction_states=[states[place] for place in range(len(asked))]))

    if not asked:
        respond(DescribeTransactionsResponse())
    for place, name in enumerate(asked):
        _describe(transactions, name, partial(answer, place))


def _describe(
    transactions: Transactions, name: str, then: Callable[[DescribeTransactionsResponse.TransactionState], None]
) -> None:
    if not name:
        then(_State(transactional_id=name, error_code=ErrorCode.INVALID_REQUEST))
        return
    transactions.query(
        name,
        lambda machine, _now_ms: machine.transactions.get(name),
        lambda found: then(_described(name, found)),
        lambda error: then(_State(transactional_id=name, error_code=error)),
    )


def _described(name: str, transaction: Transaction | None) -> DescribeTransactionsResponse.TransactionState:
    if transaction is None:
        return _State(transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    return _State(
        transactional_id=name,
        transaction_state=transaction.state.public_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[_Topic(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()],
    )
