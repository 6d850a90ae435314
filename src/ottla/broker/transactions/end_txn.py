"""EndTxn, versions 0 to 5: a producer commits or aborts its transaction.

Version 5 is the newer protocol (KIP-890): the reply has the producer id and epoch for the next transaction.
"""

from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.machines.transaction.replies import ProducerReply
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import EndTxnRequest, EndTxnResponse

_KNOWS_FENCED = 2
_BUMPS_EPOCH = 5
_OLDER, _NEWER = 0, 2


def handle_end_txn(
    transactions: Transactions, context: RequestContext, request: EndTxnRequest, respond: Respond
) -> None:
    def answer(reply: ProducerReply) -> None:
        error = reply.error
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < _KNOWS_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        respond(EndTxnResponse(error_code=error, producer_id=reply.producer_id, producer_epoch=reply.producer_epoch))

    if not request.transactional_id:
        answer(ProducerReply(ErrorCode.INVALID_REQUEST))
        return
    transactions.submit(
        request.transactional_id,
        lambda machine, now_ms: machine.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            committed=request.committed,
            client_version=_NEWER if context.api_version >= _BUMPS_EPOCH else _OLDER,
            now_ms=now_ms,
        ),
        answer,
        lambda error: answer(ProducerReply(error)),
    )
