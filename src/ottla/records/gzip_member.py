"""gzip, with the header that Java writes (no name, no time, operating system unknown)."""

import zlib
from struct import Struct

from ottla.base.ports import Buffer
from ottla.records.faults import LEAST_PIECE_BYTES, BrokenCompression, DecompressionBomb
from ottla.records.large_buffers import joined

_HEADER = bytes.fromhex("1f8b08000000000000ff")
_TRAILER = Struct("<II")
_RAW_DEFLATE = -zlib.MAX_WBITS
_WITH_GZIP_HEADER = zlib.MAX_WBITS + 16
_FIRST_WINDOW = 512
_GROWTH = 8
_LARGEST_PART = 1 << 20


def compress(data: Buffer, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    trailer = _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_HEADER, deflate.compress(data), deflate.flush(), trailer))


def decompress(data: memoryview, limit: int) -> Buffer:
    """All members, one after the other; like Java, what then follows is not looked at unless it begins like one.

    zlib itself grows no further than the limit. A member counts for at least `LEAST_PIECE_BYTES`.
    """
    parts: list[bytes] = []
    left, total, position = limit, 0, 0
    while position == 0 or data[position : position + 2] == _HEADER[:2]:
        if left < 0:
            raise DecompressionBomb("gzip", limit)
        size, position = _member(data, position, left, limit, parts)
        total += size
        left -= max(size, LEAST_PIECE_BYTES)
    return joined(parts, total)


def _member(data: memoryview, position: int, left: int, limit: int, parts: list[bytes]) -> tuple[int, int]:
    """Adds what the member at `position` holds; returns how much that is, and where the member ends.

    What zlib does not use of its input it copies, so it is given the input in windows, each many times as large as the
    last: a thousand small members would otherwise copy the rest of the batch a thousand times. What it gives is taken
    in pieces, between which other threads can run.
    """
    inflate = zlib.decompressobj(_WITH_GZIP_HEADER)
    size, window = 0, _FIRST_WINDOW
    while not inflate.eof:
        given: Buffer = inflate.unconsumed_tail
        if not given:
            if position == len(data):
                raise BrokenCompression("gzip", "it ends early")
            given = data[position : position + window]
            position += len(given)
            window *= _GROWTH
        try:
            part = inflate.decompress(given, min(left - size + 1, _LARGEST_PART))
        except zlib.error as error:
            raise BrokenCompression("gzip", str(error)) from None
        size += len(part)
        if size > left:
            raise DecompressionBomb("gzip", limit)
        parts.append(part)
    return size, position - len(inflate.unused_data)
