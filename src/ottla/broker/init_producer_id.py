"""InitProducerId, versions 0 to 5: an id for an idempotent producer (KIP-98).

Left out: transactions. A producer with a transactional id is told that there is no coordinator for it.
"""

from ottla.broker.context import Broker
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1


def handle_init_producer_id(
    broker: Broker, _context: RequestContext, request: InitProducerIdRequest, respond: Respond
) -> None:
    error = _refusal(request)
    if error:
        respond(InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE))
    else:
        broker.producer_ids.take(lambda error, producer_id: respond(_reply(error, producer_id)))


def _refusal(request: InitProducerIdRequest) -> ErrorCode:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE) or request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if request.transactional_id is None else ErrorCode.NOT_COORDINATOR


def _reply(error: ErrorCode, producer_id: int) -> InitProducerIdResponse:
    if error:
        return InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
