"""Which batches belong to aborted transactions, and which markers are still needed (KIP-98).

Theory of operation. The cleaner goes through the log as a reader at `read_committed` does: a transaction of the index
is open from its first offset to its marker. Records of aborted transactions can go at once. A marker can go when no
batch of its transaction was met on the way, not even an empty one, since a batch without its marker would be a
transaction that never ends. An abort marker that stays takes its entry of the index into the new segment; one whose
records are gone needs no entry, and a later cleaning removes it.

All aborted transactions must be known, those too whose markers are past the cleaned part: one that is not is taken for
committed, and its records would come back to life (KAFKA-13727).
"""

from collections.abc import Iterable

from ottla.base.ports import Buffer
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.batch import BatchHeader
from ottla.records.control import parse_end_transaction_marker


class CleanedTransactions:
    """The transactions that are open where the cleaner is. It sees every batch, in order."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._waiting = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        # By producer: the entry, and whether a batch of it has been met.
        self._aborting: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committing: set[int] = set()
        self._needed: list[AbortedTransaction] = []

    def on_data(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction, so that its records can go."""
        self._open_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        aborting = self._aborting.get(header.producer_id)
        if aborting is None:
            self._committing.add(header.producer_id)
            return False
        self._aborting[header.producer_id] = aborting[0], True
        return True

    def on_control(self, header: BatchHeader, data: Buffer) -> bool:
        """Whether the control batch is of no more use: the marker of a transaction that has no batches left."""
        self._open_up_to(header.last_offset)
        if header.record_count == 0:
            return True  # What an earlier cleaning has left of a marker.
        marker = parse_end_transaction_marker(data, 0, header)
        if marker is None:
            return False  # Not of a transaction; it is not ours to remove.
        if marker.committed:
            was_met = header.producer_id in self._committing
            self._committing.discard(header.producer_id)
            return not was_met
        entry, was_met = self._aborting.pop(header.producer_id, (None, False))
        if entry is not None and was_met:
            self._needed.append(entry)
        return not was_met

    def take_needed(self) -> list[AbortedTransaction]:
        """The entries for the index of the segment that ends here: those whose markers have been met since the last."""
        needed, self._needed = self._needed, []
        return needed

    def _open_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            entry = self._waiting.pop()
            self._aborting.setdefault(entry.producer_id, (entry, False))
