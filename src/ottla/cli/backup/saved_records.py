"""The records of a partition in a back-up, as batches that a producer can send: what a restore writes, and compares.

Left out are records that were deleted when the run was made (before its log start), those of transactions that were not
committed, and markers. A batch is handed out as it is stored if a producer might have sent it so. One of which only
some records count, that compaction has taken records out of, whose timestamps are the broker's, or of an older format,
is written anew with the same records. The same back-up gives the same records in the same order every time: so a number
of records is a place to resume from.

What is damaged is handed out as such, in its place, and the rest behind it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.cli.backup.block_files import (
    Block,
    BlockReader,
    Damaged,
    DamagedBlock,
    blocks_between,
    read_index,
)
from ottla.cli.backup.kept_batches import Uncommitted
from ottla.cli.backup.runs import BackupDirectory, Chain, ChainLink
from ottla.client.producer.forwarded_batch import can_be_forwarded
from ottla.records.batch import batches, read_header
from ottla.records.builder import BatchBuilder
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.records.kernel import Record
from ottla.records.reader import read_records

RAW: Final = "raw"


class SavedBatch(NamedTuple):
    """Nobody else needs its bytes: a producer may write its header into them."""

    header: BatchHeader
    encoded: memoryview
    first_offset: int
    """In the source, of its first record that counts."""
    next_offset: int
    offsets: tuple[int, ...] | None = None
    """In the source, of each record, where they do not follow each other."""

    def count_before(self, offset: int) -> int:
        """How many of its records are before this offset of the source."""
        if self.offsets is not None:
            return bisect_left(self.offsets, offset)
        return min(max(offset - self.first_offset, 0), self.header.record_count)


class DamagedPiece(NamedTuple):
    """Offsets of the source, from `begin` up to `end`, that cannot be used."""

    begin: int
    end: int
    what: str


class _Place(NamedTuple):
    """A block, and the offsets of it that count."""

    link: ChainLink
    block: Block
    lower: int
    upper: int

    @property
    def is_whole(self) -> bool:
        return self.lower <= self.block.begin and self.upper >= self.block.end


class SavedRecords:
    """One partition as of one run. `skipped` are offsets (from, up to) that are passed over, damaged or not."""

    def __init__(self, directory: BackupDirectory, chain: Chain, skipped: Iterable[tuple[int, int]] = ()) -> None:
        self._directory = directory
        self._chain = chain
        self._skipped = sorted(skipped)
        self._index: list[_Place | DamagedPiece] | None = None
        self._uncommitted: Uncommitted | None = None
        self._reader: tuple[str, BlockReader] | None = None

    @property
    def raw_bytes(self) -> int:
        """About as many as there are to read."""
        return sum(link.file.raw_bytes for link in self._chain.links if link.file.end > self._chain.log_start)

    def pieces(self, skip_records: int = 0) -> Iterator[SavedBatch | DamagedPiece]:
        """From the record on that has so many before it."""
        left = skip_records
        for place in self._places():
            if isinstance(place, DamagedPiece):
                yield place
                continue
            if left and (count := self._count(place)) is not None and count <= left:
                left -= count
                continue
            for piece in self._batches(place):
                if isinstance(piece, SavedBatch) and left:
                    if piece.header.record_count <= left:
                        left -= piece.header.record_count
                        continue
                    piece = _without_first(piece, left)
                    left = 0
                yield piece
        self.close()

    def counts_before(self, offsets: Iterable[int]) -> dict[int, int]:
        """How many records there are before each of these offsets of the source."""
        wanted = sorted(set(offsets))
        found: dict[int, int] = {}
        before = 0
        for place in self._places():
            if isinstance(place, DamagedPiece):
                continue
            while wanted and wanted[0] <= place.lower:
                found[wanted.pop(0)] = before
            if not wanted:
                break
            count = self._count(place)
            if count is not None and wanted[0] >= place.upper:
                before += count
                continue
            for piece in self._batches(place):
                if isinstance(piece, DamagedPiece):
                    continue
                while wanted and wanted[0] < piece.next_offset:
                    offset = wanted.pop(0)
                    found[offset] = before + piece.count_before(offset)
                before += piece.header.record_count
        self.close()
        return {**found, **dict.fromkeys(wanted, before)}

    def largest_batch(self) -> int:
        places = (place for place in self._places() if isinstance(place, _Place))
        return max((place.block.largest_batch for place in places), default=0)

    def close(self) -> None:
        if self._reader is not None:
            self._reader[1].close()
            self._reader = None

    # --- blocks ---

    def _places(self) -> list[_Place | DamagedPiece]:
        """In the order of offsets, without those that are skipped or were deleted."""
        if self._index is None:
            self._index = list(self._find_places())
            blocks = (place.block for place in self._index if isinstance(place, _Place))
            if self._chain.isolation == RAW:
                self._uncommitted = Uncommitted(blocks, self._chain.end)
        return self._index

    def _find_places(self) -> Iterator[_Place | DamagedPiece]:
        chain = self._chain
        at = chain.log_start
        for link in chain.links:
            if link.end <= chain.log_start and chain.isolation != RAW:
                continue
            stem = self._directory.absolute(link.file.stem)
            try:
                blocks = read_index(self._directory.disk, stem).blocks
            except (Damaged, OSError) as problem:
                yield from self._gap(at, link.end, str(problem))
                at = max(at, link.end)
                continue
            for block in blocks_between(blocks, link.end):
                yield from self._gap(at, block.begin, f"{stem}.blocks: a line is damaged or missing")
                # In a raw back-up, a transaction that continues behind the log start may have begun before it.
                if block.end > chain.log_start or chain.isolation == RAW:
                    yield from self._kept_of(link, block)
                at = max(at, block.end)
            yield from self._gap(at, link.end, f"{stem}.blocks: lines are damaged or missing")
            at = max(at, link.end)

    def _gap(self, begin: int, end: int, what: str) -> Iterator[DamagedPiece]:
        """Unless it is known why nothing is there."""
        for known, known_end, _ in sorted((*self._chain.missing, *((a, b, "") for a, b in self._skipped))):
            if known <= begin < known_end:
                begin = known_end
        if begin < end:
            yield DamagedPiece(begin, end, what)

    def _kept_of(self, link: ChainLink, block: Block) -> Iterator[_Place]:
        lower, upper = max(block.begin, self._chain.log_start), min(block.end, link.end)
        for begin, end in self._skipped:
            if begin <= lower < end:
                lower = end
            elif lower < begin < upper:
                yield _Place(link, block, lower, begin)
                lower = end
        if lower < upper:
            yield _Place(link, block, lower, upper)
        elif self._chain.isolation == RAW and block.transactions:
            yield _Place(link, block, block.end, block.end)

    def _count(self, place: _Place) -> int | None:
        """How many records of it there are, if that is known without reading it."""
        return place.block.records if place.is_whole and self._chain.isolation != RAW else None

    def _batches(self, place: _Place) -> Iterator[SavedBatch | DamagedPiece]:
        if place.lower >= place.upper:
            return
        at = place.lower
        try:
            data = memoryview(self._read(place))
            for position, header in batches(data):
                encoded = data[position : position + header.size]
                if header.next_offset <= place.lower or header.base_offset >= place.upper or header.is_control:
                    continue
                if header.is_transactional and self._is_uncommitted(header):
                    continue
                is_inside = header.base_offset >= place.lower and header.next_offset <= place.upper
                if is_inside and can_be_forwarded(header):
                    yield SavedBatch(header, encoded, header.base_offset, header.next_offset)
                elif (anew := _written_anew(header, encoded, place.lower, place.upper)) is not None:
                    yield anew
                at = header.next_offset
        except (DamagedBlock, CorruptBatch, OSError) as problem:
            yield DamagedPiece(at, place.upper, str(problem))

    def _is_uncommitted(self, header: BatchHeader) -> bool:
        return self._uncommitted is not None and self._uncommitted.has(header.producer_id, header.base_offset)

    def _read(self, place: _Place) -> bytearray:
        stem = place.link.file.stem
        if self._reader is None or self._reader[0] != stem:
            self.close()
            absolute = self._directory.absolute(stem)
            self._reader = stem, BlockReader(self._directory.disk, absolute, place.link.file.compression)
        return self._reader[1].read(place.block)


def _written_anew(header: BatchHeader, encoded: memoryview, lower: int, upper: int) -> SavedBatch | None:
    """The records of a batch that are within the offsets, in a batch of their own; None if there are none."""
    return _built(header, [one for one in read_records(encoded, 0, header) if lower <= one.offset < upper])


def _without_first(batch: SavedBatch, count: int) -> SavedBatch:
    built = _built(batch.header, list(read_records(batch.encoded, 0, batch.header))[count:])
    assert built is not None, "there were more records than are left out"
    return built


def _built(header: BatchHeader, records: list[Record]) -> SavedBatch | None:
    if not records:
        return None
    builder = BatchBuilder(compression=header.compression, base_offset=records[0].offset)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    encoded = memoryview(builder.build())
    offsets = tuple(record.offset for record in records)
    return SavedBatch(read_header(encoded), encoded, offsets[0], offsets[-1] + 1, offsets)
