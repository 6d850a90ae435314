"""AddOffsetsToTxn, versions 0 to 4: the offsets of a group will be committed in the transaction.

To the coordinator that is one more partition: the group's, of `__consumer_offsets`. Clients of the newer protocol do
not ask; their TxnOffsetCommit does it.
"""

from ottla.base.ids import TopicPartition
from ottla.broker.coordination.coordinators import Groups
from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_KNOWS_FENCED = 2
_OLDER = 0


def handle_add_offsets_to_txn(
    groups: Groups,
    transactions: Transactions,
    context: RequestContext,
    request: AddOffsetsToTxnRequest,
    respond: Respond,
) -> None:
    def answer(error: ErrorCode) -> None:
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < _KNOWS_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        respond(AddOffsetsToTxnResponse(error_code=error))

    if not request.transactional_id:
        answer(ErrorCode.INVALID_REQUEST)
        return
    partition = TopicPartition(groups.topic_name, groups.partition_for(request.group_id))
    transactions.submit(
        request.transactional_id,
        lambda machine, now_ms: machine.add_partitions(
            request.transactional_id, request.producer_id, request.producer_epoch, [partition], _OLDER, now_ms
        ),
        answer,
        answer,
    )
