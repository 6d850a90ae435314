"""Which batches of a fetched sequence a consumer is shown (KIP-98).

Theory of operation: with `read_committed`, a broker sends what is below the last stable offset, and with it the
aborted transactions that reach into it: producer and first offset of each. A producer is in an aborted
transaction from that offset up to its abort marker, and what it wrote in between is not shown. Control batches
are never shown.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.ports import Buffer
from ottla.records.batch import complete_batches
from ottla.records.control import parse_end_transaction_marker
from ottla.records.header import BatchHeader


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class Visibility:
    """Says of one batch after the other, in their order, whether a consumer is shown it.

    `aborted` holds (producer id, first offset) pairs; without any, all but control batches is shown, as
    `read_uncommitted` wants it.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._waiting = sorted((first_offset, producer_id) for producer_id, first_offset in aborted)
        self._waiting.reverse()
        self._aborting: set[int] = set()

    def shows(self, data: Buffer, position: int, header: BatchHeader) -> bool:
        waiting, aborting = self._waiting, self._aborting
        while waiting and waiting[-1][0] <= header.last_offset:
            aborting.add(waiting.pop()[1])
        if header.is_control:
            if header.producer_id in aborting:
                marker = parse_end_transaction_marker(data, position, header)
                if marker and not marker.committed:
                    aborting.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in aborting)


def visible_batches(
    data: Buffer, aborted: Iterable[tuple[int, int]] = (), *, keep_control: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch to be shown. A cut-off last batch, usual in a fetch, is left out."""
    visibility = Visibility(aborted)
    for position, header in complete_batches(data):
        if visibility.shows(data, position, header) or (keep_control and header.is_control):
            yield position, header
