"""Which transactions ListTransactions shows (KIP-664, KIP-994, KIP-1152)."""

from dataclasses import dataclass

from ottla.machines.transaction.states import TransactionState
from ottla.machines.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """All that is asked for must hold; an empty set and a negative duration ask for nothing.

    `states` is None if any will do: an empty set comes of names that nobody knows, and shows nothing.
    """

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1

    def takes(self, transaction: Transaction, now_ms: int) -> bool:
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.states is not None and transaction.state not in self.states:
            return False
        return self.longer_than_ms < 0 or now_ms - transaction.start_ms > self.longer_than_ms
