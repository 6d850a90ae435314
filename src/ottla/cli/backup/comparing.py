"""Whether a partition has the records of the back-up: all of them, in their order, and no others.

Two batches are the same if their records are the same bytes, under the same codec, counted from the same timestamp:
then nothing is decoded. Where the bytes differ (a batch was split, or compressed anew by a broker) the records
themselves are compared: timestamp, key, value, headers.
"""

from collections import deque
from collections.abc import Iterator

from ottla.cli.backup.saved_records import DamagedPiece, SavedBatch, SavedRecords
from ottla.records.batch import HEADER_SIZE, MAGIC
from ottla.records.header import BatchHeader
from ottla.records.kernel import Record
from ottla.records.reader import read_records
from ottla.records.visibility import visible_batches


class Comparing:
    """One partition. `take` what is read of it; then `finish`."""

    def __init__(self, saved: SavedRecords, skip_records: int = 0) -> None:
        """From the record on that has so many before it."""
        self._pieces: Iterator[SavedBatch | DamagedPiece] = saved.pieces(skip_records)
        self._expected: deque[tuple[int, Record]] = deque()
        """With the offset that a record has in the back-up."""
        self.records = 0
        """Compared, and the same."""
        self.difference: str | None = None
        """The first one."""

    def take(self, data: memoryview, begin: int, end: int, aborted: list[tuple[int, int]]) -> None:
        """Batches of the destination, as they were fetched, of which offsets from `begin` up to `end` count."""
        for position, header in visible_batches(data, aborted):
            if self.difference is not None:
                return
            if header.next_offset <= begin or header.base_offset >= end:
                continue
            encoded = data[position : position + header.size]
            is_inside = header.base_offset >= begin and header.next_offset <= end
            if is_inside and not self._expected:
                expected = self._next()
                if expected is not None and _are_same(header, encoded, expected):
                    self.records += header.record_count
                    continue
                if expected is not None:
                    self._expect(expected)
            self._compare(one for one in read_records(encoded, 0, header) if begin <= one.offset < end)

    def finish(self) -> None:
        """Nothing more is there."""
        if self.difference is None and (self._expected or (rest := self._next()) is not None):
            offset = self._expected[0][0] if self._expected else rest.first_offset  # type: ignore[union-attr]
            self.difference = f"the record of the back-up at offset {offset} is missing, and all behind it"

    def _next(self) -> SavedBatch | None:
        for piece in self._pieces:
            if isinstance(piece, SavedBatch):
                return piece
            self.difference = f"the back-up is damaged at offsets {piece.begin} to {piece.end - 1}: {piece.what}"
            return None
        return None

    def _expect(self, batch: SavedBatch) -> None:
        offsets = batch.offsets or range(batch.first_offset, batch.next_offset)
        self._expected.extend(zip(offsets, read_records(batch.encoded, 0, batch.header), strict=True))

    def _compare(self, found: Iterator[Record]) -> None:
        for record in found:
            if not self._expected:
                batch = self._next()
                if batch is not None:
                    self._expect(batch)
            if self.difference is not None:
                return
            if not self._expected:
                self.difference = f"the record at offset {record.offset} is not in the back-up"
                return
            offset, expected = self._expected.popleft()
            if _fields(record) != _fields(expected):
                self.difference = (
                    f"the record at offset {record.offset} is another one than the back-up has at offset {offset}"
                )
                return
            self.records += 1


def _are_same(header: BatchHeader, encoded: memoryview, expected: SavedBatch) -> bool:
    theirs = expected.header
    return (
        header.magic == MAGIC
        and header.record_count == theirs.record_count
        and header.last_offset_delta == theirs.last_offset_delta
        and header.compression == theirs.compression
        and header.base_timestamp == theirs.base_timestamp
        and header.log_append_time == theirs.log_append_time
        and encoded[HEADER_SIZE:] == expected.encoded[HEADER_SIZE:]
    )


def _fields(record: Record) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, tuple(record.headers)
