"""The first pass of a cleaning: the latest offset of every key in the dirty part of the log."""

from collections.abc import Callable, Iterable, Sequence

from ottla.log.cleaning.source import SegmentReader
from ottla.log.cleaning.transactions import CleanedTransactions
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.batch import MAGIC, BatchHeader
from ottla.records.kernel import OffsetMap
from ottla.records.reader import read_records, record_bytes


def fill_offset_map(
    offsets: OffsetMap,
    segments: Sequence[Segment],
    first_dirty_offset: int,
    end_offset: int,
    aborted: Iterable[AbortedTransaction],
    buffer_bytes: int,
    on_read: Callable[[int], None],
) -> None:
    """Notes keys from `first_dirty_offset` on until the map is full; `latest_offset` is how far it got.

    Aborted records are left out: what they would replace is still what a reader should see.
    """
    transactions = CleanedTransactions(entry for entry in aborted if entry.last_offset >= first_dirty_offset)
    for slot, segment in enumerate(segments):
        next_base = segments[slot + 1].base_offset if slot + 1 < len(segments) else end_offset
        if next_base <= first_dirty_offset:
            continue
        try:
            if not _note_segment(offsets, segment, first_dirty_offset, transactions, buffer_bytes, on_read):
                return
        finally:
            segment.release()
        # The segment may end before the next one begins, and what is in between is nobody's.
        offsets.latest_offset = next_base - 1


def _note_segment(
    offsets: OffsetMap,
    segment: Segment,
    first_offset: int,
    transactions: CleanedTransactions,
    buffer_bytes: int,
    on_read: Callable[[int], None],
) -> bool:
    start = segment.offset_index.position_before(first_offset)
    reader = SegmentReader(segment, buffer_bytes, start)
    while not reader.is_at_end:
        taken, next_offset = offsets.learn_run(reader.window(), first_offset, reader.next_offset, reader.limit)
        if taken:
            reader.skip(taken, next_offset)
            on_read(taken)
            continue
        header, data = reader.take()
        on_read(header.size)
        if header.is_control:
            transactions.on_control(header, data)
        elif not transactions.on_data(header) and not _note_batch(offsets, header, data, first_offset):
            return False
        if header.last_offset >= first_offset:
            offsets.latest_offset = header.last_offset
    return True


def _note_batch(offsets: OffsetMap, header: BatchHeader, data: memoryview, first_offset: int) -> bool:
    if header.magic == MAGIC:
        records = record_bytes(data, 0, header)
        return offsets.learn(records, header.base_offset, header.record_count, first_offset)
    return all(
        offsets.put(record.key, record.offset)
        for record in read_records(data, 0, header)
        if record.key is not None and record.offset >= first_offset
    )
