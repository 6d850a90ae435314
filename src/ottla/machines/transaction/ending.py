"""EndTxn: the end of a transaction, in two protocols, and aborts by the coordinator itself.

The older protocol ends a transaction in the epoch that it has; asking again for the same end is answered by the state.
In the newer one (KIP-890, `transaction.version` 2) every end takes the producer to the next epoch, and markers carry
it: whatever of the old epoch is still under way, a Produce or another EndTxn, belongs to no transaction any more. So
there an epoch one behind means that the answer was lost, and the same epoch that the producer ends the next
transaction, which for an abort may be one that never reached a partition.

While markers of a decided end are on their way, every EndTxn of the newer protocol is asked to come again, and in the
older one that of the current epoch. Only the state after them says what such a request means: the next transaction of a
producer may be over before the markers of the one before are written.

The coordinator aborts what has run for too long, and what a newer producer of the same id finds open. That too takes
the epoch one step on, which fences the producer (KIP-588: it may ask for an epoch again, if nobody else has).
"""

from ottla.machines.transaction.replies import ProducerReply
from ottla.machines.transaction.settings import EPOCH_BUMPS
from ottla.machines.transaction.states import PREPARED, TransactionState
from ottla.machines.transaction.transaction import LAST_CLIENT_EPOCH, MAX_EPOCH, Transaction
from ottla.wire.errors import ErrorCode

_S = TransactionState
_PREPARE = {True: _S.PREPARE_COMMIT, False: _S.PREPARE_ABORT}
_COMPLETE = {True: _S.COMPLETE_COMMIT, False: _S.COMPLETE_ABORT}


def answer_in_epoch(
    transaction: Transaction, producer_id: int, producer_epoch: int, *, committed: bool
) -> ProducerReply | None:
    """The answer in the older protocol; None if there is a transaction to be ended."""
    if transaction.producer_id != producer_id:
        return ProducerReply(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        return ProducerReply(ErrorCode.PRODUCER_FENCED)
    if transaction.state is _S.ONGOING:
        return None
    if transaction.state is _COMPLETE[committed]:
        return ProducerReply()
    if transaction.state in PREPARED:
        return ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    return ProducerReply(ErrorCode.INVALID_TXN_STATE)


def answer_with_bump(
    transaction: Transaction, producer_id: int, producer_epoch: int, *, committed: bool
) -> ProducerReply | None:
    """The answer in the newer protocol; None if there is a transaction to be ended, or nothing to be aborted."""
    state = transaction.state
    if state in PREPARED:
        return ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    got_new_id = (
        transaction.previous_producer_id == producer_id
        and producer_epoch == LAST_CLIENT_EPOCH
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != producer_id and not got_new_id:
        return ProducerReply(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_repeated = got_new_id or transaction.producer_epoch == producer_epoch + 1
    is_next = transaction.producer_epoch == producer_epoch
    if state in _COMPLETE.values() and is_repeated:
        if state is _COMPLETE[committed]:
            return ProducerReply(ErrorCode.NONE, transaction.producer_id, transaction.producer_epoch)
        return ProducerReply(ErrorCode.INVALID_TXN_STATE)
    if not is_next:
        return ProducerReply(ErrorCode.PRODUCER_FENCED)
    if state is _S.ONGOING or not committed:
        return None
    return ProducerReply(ErrorCode.INVALID_TXN_STATE)


def ended_in_epoch(transaction: Transaction, now_ms: int, *, committed: bool) -> Transaction:
    return transaction.prepared(_PREPARE[committed], transaction.producer_epoch, now_ms, client_version=0)


def ended_with_bump(transaction: Transaction, next_producer_id: int, now_ms: int, *, committed: bool) -> Transaction:
    """`next_producer_id` is for an exhausted epoch, and -1 otherwise."""
    return transaction.prepared(
        _PREPARE[committed],
        min(transaction.producer_epoch + 1, MAX_EPOCH),
        now_ms,
        client_version=EPOCH_BUMPS,
        next_producer_id=next_producer_id,
    )


def fenced(transaction: Transaction, now_ms: int) -> Transaction:
    """Aborted by a coordinator of a cluster in which the older protocol is used."""
    epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)
    return transaction.prepared(_S.PREPARE_ABORT, epoch, now_ms, client_version=0)
