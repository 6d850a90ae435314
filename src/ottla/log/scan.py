"""Walking through the batches of a segment file, three ways to iterate.

`find_offset` looks only at where batches end, for every fetch that is not at the end of the log; `scan_headers` reads
headers and skips over records; `scan_batches` reads everything, for checking and copying. None trusts a length: one
that runs past `end` is a `CorruptBatch`, before anything is read.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ottla.base.ports import File
from ottla.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    CorruptBatch,
    peek_header,
    read_header,
)

_LENGTH = Struct(">i")
_HEADER_WINDOW = 4096
# From one entry of an index to the next it is mostly less.
_FIND_WINDOW = 8192
_WINDOW = 1 << 20
_EXTENT = Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta
_MIN_CURRENT_LENGTH = HEADER_SIZE - LOG_OVERHEAD
# Nothing shorter than an empty entry of the oldest format is a batch.
_MIN_LENGTH = 14


class Found(NamedTuple):
    """A batch that was looked for, and what was read with it: `window` has it at `at`, whole or not."""

    position: int
    header: BatchHeader
    window: bytes = b""
    at: int = 0


def find_offset(file: File, position: int, end: int, offset: int) -> Found | None:
    """The first batch, from `position` to `end`, that ends at or after `offset`."""
    window = file.read_at(position, min(_FIND_WINDOW, end - position)) if position < end else b""
    at, last_whole = 0, len(window) - HEADER_SIZE
    while at <= last_whole:
        base_offset, length, magic, last_offset_delta = _EXTENT.unpack_from(window, at)
        if magic != MAGIC or length < _MIN_CURRENT_LENGTH or position + at + LOG_OVERHEAD + length > end:
            break  # of an older format, or damaged
        if base_offset + last_offset_delta >= offset:
            return Found(position + at, peek_header(window, at), window, at)
        at += LOG_OVERHEAD + length
    return _find_scanning(file, position + at, end, offset)


def _find_scanning(file: File, position: int, end: int, offset: int) -> Found | None:
    for at, header in scan_headers(file, position, end):
        if header.last_offset >= offset:
            return Found(at, header)
    return None


def start_after(data: bytes) -> tuple[int, int] | None:
    """The offset after the last whole batch in `data`, which begins with one, and where in it that batch ends.

    None if not even the first is whole, or not of the current format.
    """
    at, next_offset, last_whole = 0, -1, len(data) - HEADER_SIZE
    while at <= last_whole:
        base_offset, length, magic, last_offset_delta = _EXTENT.unpack_from(data, at)
        if magic != MAGIC or length < _MIN_CURRENT_LENGTH or at + LOG_OVERHEAD + length > len(data):
            break
        at, next_offset = at + LOG_OVERHEAD + length, base_offset + last_offset_delta + 1
    return (next_offset, at) if at else None


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch from `position` to `end`. Checksums are not looked at."""
    window, start = b"", position
    while position < end:
        if position + HEADER_SIZE > start + len(window):
            window, start = file.read_at(position, min(_HEADER_WINDOW, end - position)), position
        at = position - start
        size = batch_size(window, at, position, end)
        if window[at + MAGIC_POSITION] == 2:
            header = peek_header(window, at)
        else:
            header = read_header(file.read_at(position, size))
        yield position, header
        position += size


def scan_batches(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of every batch from `position` to `end`.

    The bytes are a view of a buffer that the next step reuses: a caller that keeps them copies them.
    """
    buffer = bytearray(min(_WINDOW, max(end - position, 0)))
    filled, start = 0, position
    while position < end:
        at = position - start
        if filled - at <= MAGIC_POSITION:
            filled, start, at = _fill(file, buffer, position, end), position, 0
        size = batch_size(buffer, at, position, end)
        if at + size > filled:
            if size > len(buffer):
                buffer = bytearray(size)
            filled, start, at = _fill(file, buffer, position, end), position, 0
            if size > filled:
                raise CorruptBatch(f"batch at {position} says it has {size} bytes; {filled} are there")
        view = memoryview(buffer)[at : at + size]
        yield position, read_header(view), view
        position += size


def _fill(file: File, buffer: bytearray, position: int, end: int) -> int:
    return file.read_into(position, memoryview(buffer)[: end - position])


def batch_size(window: bytes | bytearray, at: int, position: int, end: int) -> int:
    """The size of the batch at `at`, which is `position` in a file that ends at `end`."""
    if len(window) - at <= MAGIC_POSITION or end - position <= MAGIC_POSITION:
        raise CorruptBatch(f"{end - position} bytes at {position} are too few for a batch")
    length: int = _LENGTH.unpack_from(window, at + 8)[0]
    if length < _MIN_LENGTH or position + LOG_OVERHEAD + length > end:
        size = LOG_OVERHEAD + length
        raise CorruptBatch(f"batch at {position} says it has {size} bytes; {end - position} are there")
    return LOG_OVERHEAD + length
