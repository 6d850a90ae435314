"""gzip, with the header that Java writes (no name, no time, operating system unknown)."""

import zlib
from struct import Struct

from ottla.base.ports import Buffer
from ottla.records.faults import LEAST_PIECE_BYTES, BrokenCompression, DecompressionBomb

_HEADER = bytes.fromhex("1f8b08000000000000ff")
_TRAILER = Struct("<II")
_RAW_DEFLATE = -zlib.MAX_WBITS
_WITH_GZIP_HEADER = zlib.MAX_WBITS + 16
_FIRST_WINDOW = 512


def compress(data: Buffer, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    trailer = _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_HEADER, deflate.compress(data), deflate.flush(), trailer))


def decompress(data: memoryview, limit: int) -> bytes:
    """All members, one after the other; like Java, what then follows is not looked at unless it begins like one.

    zlib itself grows no further than the limit. A member counts for at least `LEAST_PIECE_BYTES`.
    """
    parts: list[bytes] = []
    left = limit
    position = 0
    while position == 0 or data[position : position + 2] == _HEADER[:2]:
        if left < 0:
            raise DecompressionBomb("gzip", limit)
        size, position = _member(data, position, left, limit, parts)
        left -= max(size, LEAST_PIECE_BYTES)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _member(data: memoryview, position: int, left: int, limit: int, parts: list[bytes]) -> tuple[int, int]:
    """Adds what the member at `position` holds; returns how much that is, and where the member ends.

    What zlib does not use of its input it copies, so it is given the input in windows, each as large as all before it
    together: a thousand small members would otherwise copy the rest of the batch a thousand times.
    """
    inflate = zlib.decompressobj(_WITH_GZIP_HEADER)
    size, window = 0, _FIRST_WINDOW
    while not inflate.eof:
        if position == len(data):
            raise BrokenCompression("gzip", "it ends early")
        given = data[position : position + window]
        try:
            part = inflate.decompress(given, left - size + 1)
        except zlib.error as error:
            raise BrokenCompression("gzip", str(error)) from None
        size += len(part)
        if size > left:
            raise DecompressionBomb("gzip", limit)
        parts.append(part)
        position += len(given) - len(inflate.unused_data)
        window *= 2
    return size, position
