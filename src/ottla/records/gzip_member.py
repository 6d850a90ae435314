"""gzip, with the header that Java writes (no name, no time, operating system unknown)."""

import zlib
from struct import Struct

from ottla.base.ports import Buffer
from ottla.records.faults import BrokenCompression, DecompressionBomb

_HEADER = bytes.fromhex("1f8b08000000000000ff")
_TRAILER = Struct("<II")
_RAW_DEFLATE = -zlib.MAX_WBITS
_WITH_GZIP_HEADER = zlib.MAX_WBITS + 16


def compress(data: Buffer, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    trailer = _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_HEADER, deflate.compress(data), deflate.flush(), trailer))


def decompress(data: memoryview, limit: int) -> bytes:
    """All members, one after the other; like Java, what then follows is not looked at unless it begins like one.

    zlib itself grows no further than the limit.
    """
    parts: list[bytes] = []
    left = limit
    rest: Buffer = data
    while not parts or rest[:2] == _HEADER[:2]:
        inflate = zlib.decompressobj(_WITH_GZIP_HEADER)
        try:
            part = inflate.decompress(rest, left + 1)
        except zlib.error as error:
            raise BrokenCompression("gzip", str(error)) from None
        if len(part) > left:
            raise DecompressionBomb("gzip", limit)
        if not inflate.eof:
            raise BrokenCompression("gzip", "it ends early")
        parts.append(part)
        left -= len(part)
        rest = inflate.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)
