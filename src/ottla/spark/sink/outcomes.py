"""What became of a transaction: what its coordinator says, and if that says nothing, what the log says.

A coordinator remembers an id's last transaction only. Once the id is used again, or forgotten, the log is the witness:
a read-committed fetch names the aborted transactions that reach into what it returns.
"""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.errors import (
    FatalError,
    InvalidTxnState,
    KafkaError,
    OffsetOutOfRange,
    RequestTimedOut,
)
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.decision import Piece, TaskTransaction

_PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.05
_A_LITTLE: Final = 1


class Ends(NamedTuple):
    committed: tuple[TaskTransaction, ...]
    aborted: tuple[TaskTransaction, ...]


def commit_all(access: ClusterAccess, transactions: Iterable[TaskTransaction]) -> Ends:
    """Commits those that can be, and tells which were aborted before. Any number of drivers may do so, at any time."""
    wanted = tuple(transactions)
    ended = access.end_transactions(wanted, commits=True)
    committed, aborted = [], []
    for one in wanted:
        error = ended[one.transactional_id]
        if error is None or (not _is_aborted(error) and _is_committed_in_log(access, one, error)):
            committed.append(one)
        else:
            aborted.append(one)
    return Ends(tuple(committed), tuple(aborted))


def _is_aborted(error: KafkaError) -> bool:
    """The coordinator knows the transaction, and it is not one that could be committed (KIP-890)."""
    return isinstance(error, InvalidTxnState)


def _is_committed_in_log(access: ClusterAccess, transaction: TaskTransaction, error: KafkaError) -> bool:
    if not isinstance(error, FatalError) and error.retriable:
        raise error
    for piece in transaction.pieces:
        is_aborted = _is_aborted_in_log(access, piece, transaction.producer_id)
        if is_aborted is not None:
            return not is_aborted
    return False  # nobody knows any more: that the rows cannot be read back either has to be reported


def _is_aborted_in_log(access: ClusterAccess, piece: Piece, producer_id: int) -> bool | None:
    """None if retention has taken the piece."""
    partition = TopicPartition(piece.topic, piece.partition)
    deadline_s = time.monotonic() + _PATIENCE_S
    offset = piece.first_offset
    while True:
        try:
            fetched = access.fetch(partition, offset, committed=True, max_bytes=_A_LITTLE)
        except OffsetOutOfRange:
            if offset == piece.last_offset:
                return None
            offset = piece.last_offset
            continue
        if fetched.last_stable_offset > piece.last_offset:
            return any(
                aborted_by == producer_id and first_offset <= piece.last_offset
                for aborted_by, first_offset in fetched.aborted
            )
        if time.monotonic() > deadline_s:
            raise RequestTimedOut(f"a transaction stayed open in {piece} for {_PATIENCE_S} s after its end")
        time.sleep(_PAUSE_S)
