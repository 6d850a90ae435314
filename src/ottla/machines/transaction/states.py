"""The states of a transaction, and what may follow what (KIP-98).

                 InitProducerId
                      │
                      v      first partition                 EndTxn, timeout, a newer producer
          ┌────────> Empty ──────────────> Ongoing ──────────────────┬─────────────────────┐
          │           │                     ^  ^ │ more partitions   v                     v
          │           │ (KIP-890) an abort  │  └─┘            PrepareCommit ┌──────> PrepareAbort
          │           │ of nothing          │                        │      │              │
          │           └─────────────────────┼────────────────────────┼──────┤              │
          │                                 │   markers are written  v      │              v
          └─────────────────────────────────┴─────────────────CompleteCommit┴──────CompleteAbort

Prepared is decided: from there on only the decided end can follow, however often coordinators change. Dead and
PrepareEpochFence are names that a client may ask for; no transaction is ever seen in them, since what they stand for
happens in one step here.
"""

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """The number is the one in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def public_name(self) -> str:
        """As ListTransactions and DescribeTransactions say it: PrepareCommit."""
        return self.name.title().replace("_", "")


_S = TransactionState

AT_REST: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""No transaction is open: the id may expire, or begin one."""

PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
"""The end is decided, and markers are on their way."""

MAY_FOLLOW: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: AT_REST,
    _S.ONGOING: AT_REST | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: AT_REST | {_S.ONGOING},
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
}
"""For each state that is written, those that it may come after."""

BY_PUBLIC_NAME: Final = {state.public_name: state for state in TransactionState}
