"""AllocateProducerIds: the next thousand, for one broker alone (KIP-730)."""

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.decisions.broker_epochs import check_broker_epoch
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse, ProducerIdsRecord

BLOCK_SIZE = 1_000
LARGEST_ID = (1 << 63) - 1


def allocate_producer_ids(
    context: ControllerContext, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    stale = check_broker_epoch(context, request.broker_id, request.broker_epoch)
    if stale is not None:
        return Decision(AllocateProducerIdsResponse(error_code=stale.code))
    first = max(0, context.image.producer_ids.next_producer_id)
    if first > LARGEST_ID - BLOCK_SIZE:
        return Decision(AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    reply = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision(reply, [VersionedRecord(record, 0)])
