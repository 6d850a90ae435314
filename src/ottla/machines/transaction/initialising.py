"""InitProducerId: who owns a transactional id from now on (KIP-98), and carrying on after an error (KIP-360).

A producer that starts gives no epoch: it gets the next one, and everybody before it is fenced. A producer that carries
on gives the id and epoch that it has (the expected ones). It gets the next epoch if they are the current ones; if they
are the ones before, its last request was answered and the answer lost, and it is answered again; otherwise somebody
else has the id by now, and it is fenced.
"""

from typing import NamedTuple

from ottla.machines.transaction.states import TransactionState
from ottla.machines.transaction.transaction import (
    LAST_CLIENT_EPOCH,
    NO_PRODUCER_EPOCH,
    Transaction,
)
from ottla.wire.errors import ErrorCode

_COMPLETED = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})


class Expected(NamedTuple):
    """The producer id and epoch that a client says it has."""

    producer_id: int
    producer_epoch: int


class Bumped(NamedTuple):
    """The producer id and epoch that came of an InitProducerId, and those before them.

    Not in the log, in Kafka as here: it only lets a lost answer be given again. `last_epoch` is -1 for a producer that
    started, since then the one before is a zombie.
    """

    producer_id: int
    producer_epoch: int
    last_producer_id: int
    last_epoch: int


def expected_is_known(transaction: Transaction, expected: Expected, last: Bumped | None) -> bool:
    """Whether the producer can be this id's, by its producer id alone; its epoch is looked at when it is bumped."""
    if transaction.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == transaction.producer_id:
        return True
    before = {transaction.previous_producer_id}
    if last is not None and _is_of(last, transaction):
        before.add(last.last_producer_id)  # Which version 0 of the log has no place for.
    return expected.producer_id in before and expected.producer_epoch >= LAST_CLIENT_EPOCH


def needs_new_id(transaction: Transaction, expected: Expected | None) -> bool:
    matches = expected is None or expected.producer_epoch == transaction.producer_epoch
    return transaction.is_epoch_exhausted and matches


def rotated(transaction: Transaction, expected: Expected | None, producer_id: int) -> Bumped:
    """The first epoch of a new producer id."""
    last = NO_PRODUCER_EPOCH if expected is None else transaction.producer_epoch
    return Bumped(producer_id, 0, transaction.producer_id, last)


def bumped(transaction: Transaction, expected: Expected | None, last: Bumped | None) -> Bumped | ErrorCode:
    """The epoch after this request, where no new producer id is needed."""
    current, producer_id = transaction.producer_epoch, transaction.producer_id
    if expected is not None and current not in (NO_PRODUCER_EPOCH, expected.producer_epoch):
        if expected.producer_epoch == last_epoch(transaction, last) != NO_PRODUCER_EPOCH:
            return Bumped(producer_id, current, expected.producer_id, expected.producer_epoch)
        return ErrorCode.PRODUCER_FENCED
    return Bumped(producer_id, current + 1, producer_id, NO_PRODUCER_EPOCH if expected is None else current)


def last_epoch(transaction: Transaction, last: Bumped | None) -> int:
    """The epoch that the current owner had before this one; -1 if it had none, or if nobody remembers."""
    if last is not None and _is_of(last, transaction):
        return last.last_epoch
    if transaction.bumps_epochs and transaction.state in _COMPLETED:
        has_new_id = transaction.producer_epoch == 0
        return LAST_CLIENT_EPOCH if has_new_id else transaction.producer_epoch - 1
    return NO_PRODUCER_EPOCH


def _is_of(last: Bumped, transaction: Transaction) -> bool:
    return (last.producer_id, last.producer_epoch) == (transaction.producer_id, transaction.producer_epoch)
