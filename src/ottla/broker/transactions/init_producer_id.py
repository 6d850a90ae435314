"""InitProducerId, versions 0 to 5: an id for an idempotent producer, or an epoch for a transactional one (KIP-98).

A producer without a transactional id gets an id that nobody has had. One with it is given to the transaction
coordinator, which fences the producer that had that transactional id before.
"""

from ottla.broker.transactions.producer_ids import ProducerIds
from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.machines.transaction.initialising import Expected
from ottla.machines.transaction.replies import ProducerReply
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1
_KNOWS_FENCED = 4


def handle_init_producer_id(
    transactions: Transactions,
    producer_ids: ProducerIds,
    context: RequestContext,
    request: InitProducerIdRequest,
    respond: Respond,
) -> None:
    def answer(reply: ProducerReply) -> None:
        error = reply.error
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < _KNOWS_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        respond(
            InitProducerIdResponse(error_code=error, producer_id=reply.producer_id, producer_epoch=reply.producer_epoch)
        )

    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE) or request.transactional_id == "":
        answer(ProducerReply(ErrorCode.INVALID_REQUEST))
    elif request.transactional_id is None:
        producer_ids.take(
            lambda error, producer_id: answer(ProducerReply(error) if error else ProducerReply(error, producer_id, 0))
        )
    else:
        name = request.transactional_id
        expected = None if request.producer_id == _NONE else Expected(request.producer_id, request.producer_epoch)
        transactions.when_id_is_at_hand(
            name,
            lambda: transactions.submit(
                name,
                lambda machine, now_ms: machine.init_producer_id(
                    name, request.transaction_timeout_ms, expected, now_ms
                ),
                answer,
                lambda error: answer(ProducerReply(error)),
            ),
        )
