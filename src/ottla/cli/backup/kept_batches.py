"""Which batches of what a broker sent are kept, and what is to be known of them.

Read committed: those that a consumer is shown. Batches of aborted transactions and markers are left out. Raw: all of
them, and of each transaction where its records and its marker are, so that a restore knows which were committed.

Every batch is held against its checksum first. One that does not match, or is no batch, is damaged at the broker.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from ottla.base.checksum import crc32c
from ottla.cli.backup.block_files import Batches, Block
from ottla.records.batch import MAGIC, checksum_matches, read_header
from ottla.records.control import parse_end_transaction_marker
from ottla.records.header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    CorruptBatch,
)
from ottla.records.reader import read_records
from ottla.records.visibility import Visibility

_HEAD: Final = Struct(">qiibIhi")
_PRODUCER: Final = Struct(">q")
_PRODUCER_POSITION: Final = 43
_COUNT: Final = Struct(">i")
_COUNT_POSITION: Final = 57
_LENGTH: Final = Struct(">i")
_LENGTH_POSITION: Final = 8
_LEAST_SIZE: Final = 61

DATA: Final = "data"
COMMIT: Final = "commit"
ABORT: Final = "abort"


class Kept(NamedTuple):
    batches: Batches
    damaged: list[tuple[int, int]]
    """Offsets from and up to of batches that are not as they were written; they are left out."""


def kept_batches(
    data: memoryview, begin: int, fetched_end: int, end: int, aborted: list[tuple[int, int]], *, is_raw: bool
) -> Kept:
    """Of the batches in `data`, which may be cut off at its end, those with offsets of [`begin`, `end`).

    `fetched_end` is where the next fetch continues.
    """
    pieces: list[memoryview] = []
    kept_from = -1
    at, size = 0, len(data)
    covered = begin
    batches = records = largest = compressed_bytes = raw_bytes = 0
    epoch = -1
    transactions: list[tuple[int, int, str]] = []
    open_producers: set[int] = set()
    visibility = Visibility(aborted) if aborted and not is_raw else None
    damaged: list[tuple[int, int]] = []
    while size - at > MAGIC_POSITION:
        (length,) = _LENGTH.unpack_from(data, at + _LENGTH_POSITION)
        total = length + LOG_OVERHEAD
        if total > size - at:
            break
        if data[at + MAGIC_POSITION] == MAGIC and total >= _LEAST_SIZE:
            base, _, leader_epoch, _, crc, attributes, last_delta = _HEAD.unpack_from(data, at)
            (count,) = _COUNT.unpack_from(data, at + _COUNT_POSITION)
            next_offset = base + last_delta + 1
            is_whole = last_delta >= 0 and crc32c(data[at + ATTRIBUTES_POSITION : at + total]) == crc
        else:
            try:
                old = read_header(data, at)
                is_whole = checksum_matches(data, at, old)
            except CorruptBatch:  # nor is it known where the next one begins
                damaged.append((covered, min(fetched_end, end)))
                break
            base, leader_epoch, attributes = old.base_offset, old.partition_leader_epoch, old.attributes
            count, next_offset = old.record_count, old.next_offset
        if base >= end:
            break
        if is_whole and next_offset <= begin:  # before what was asked for
            at += total
            continue
        is_kept = is_whole
        if is_whole:
            epoch = leader_epoch
            if attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG):
                is_control = attributes & CONTROL_FLAG != 0
                if is_raw:
                    _note(transactions, open_producers, data, at, base, is_control=is_control)
                elif visibility is not None:
                    is_kept = visibility.shows(data, at, read_header(data, at))
                else:
                    is_kept = not is_control
        else:
            next_offset = max(min(next_offset, fetched_end), covered + 1)
            damaged.append((covered, next_offset))
        if is_kept:
            if kept_from < 0:
                kept_from = at
            batches += 1
            records += count if base >= begin else _records_from(data, at, begin)
            raw_bytes += total
            if total > largest:
                largest = total
            if attributes & COMPRESSION_MASK:
                compressed_bytes += total
        elif kept_from >= 0:
            pieces.append(data[kept_from:at])
            kept_from = -1
        covered = next_offset
        at += total
    if kept_from >= 0:
        pieces.append(data[kept_from:at])
    return Kept(
        Batches(
            pieces,
            raw_bytes,
            begin,
            fetched_end if fetched_end <= end else covered,
            batches,
            records,
            epoch,
            largest,
            tuple(transactions),
            compressed_bytes * 2 > raw_bytes,
        ),
        damaged,
    )


def _records_from(data: memoryview, at: int, begin: int) -> int:
    """How many records of the batch are from this offset on."""
    return sum(record.offset >= begin for record in read_records(data, at))


def _note(
    transactions: list[tuple[int, int, str]],
    open_producers: set[int],
    data: memoryview,
    at: int,
    base: int,
    *,
    is_control: bool,
) -> None:
    (producer,) = _PRODUCER.unpack_from(data, at + _PRODUCER_POSITION)
    if not is_control:
        if producer not in open_producers:
            open_producers.add(producer)
            transactions.append((producer, base, DATA))
        return
    marker = parse_end_transaction_marker(data, at)
    if marker is not None:
        open_producers.discard(producer)
        transactions.append((producer, base, COMMIT if marker.committed else ABORT))


class Uncommitted:
    """Which transactional batches of a raw back-up were not committed: aborted, or open at its end."""

    def __init__(self, blocks: Iterator[Block], end: int) -> None:
        self._spans: dict[int, list[tuple[int, int]]] = {}
        """By producer: first offset, and that of the marker."""
        open_since: dict[int, int] = {}
        for block in blocks:
            for producer, offset, event in block.transactions:
                if offset >= end:
                    continue
                if event == DATA:
                    open_since.setdefault(producer, offset)
                elif (since := open_since.pop(producer, None)) is not None and event == ABORT:
                    self._spans.setdefault(producer, []).append((since, offset))
        self.open_count = len(open_since)
        for producer, since in open_since.items():
            self._spans.setdefault(producer, []).append((since, end))

    def has(self, producer: int, offset: int) -> bool:
        from bisect import bisect_right

        spans = self._spans.get(producer)
        if not spans:
            return False
        index = bisect_right(spans, (offset, 1 << 63)) - 1
        return index >= 0 and offset < spans[index][1]
