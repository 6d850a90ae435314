"""What commands are answered, and what a writer of markers gets."""

from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.machines.transaction.states import TransactionState
from ottla.machines.transaction.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Transaction
from ottla.wire.errors import ErrorCode


class ProducerReply(NamedTuple):
    """Answers InitProducerId and EndTxn: the id and epoch that the producer has from now on, or an error."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class Verified(NamedTuple):
    """Answers a verification: one error for all, or the partitions that are not in the transaction (KIP-890)."""

    error: ErrorCode = ErrorCode.NONE
    missing: frozenset[TopicPartition] = frozenset()


class DecidedEnd(NamedTuple):
    """A transaction's end is committed: markers are to be written, and then the coordinator is to complete it
    (`complete`).

    In the older protocol one epoch has many transactions; `start_ms` and `decided_ms` tell their ends apart.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int
    start_ms: int
    decided_ms: int

    @classmethod
    def of(cls, transactional_id: str, prepared: Transaction) -> "DecidedEnd":
        return cls(
            transactional_id,
            prepared.producer_id,
            prepared.producer_epoch,
            prepared.state is TransactionState.PREPARE_COMMIT,
            prepared.partitions,
            prepared.client_version,
            prepared.start_ms,
            prepared.last_update_ms,
        )
