"""lz4 frames as Kafka writes them: independent blocks of 64 KB, no content size, no checksums but the header's.

The frame is taken apart here, and only its blocks are given to the lz4 library: it is faster than the library's
own stream, it bounds what a block may expand to, and it lets us refuse what Java's reader refuses (blocks that
depend on the ones before them). Entries of magic 0 carry a wrong header checksum, which no one may look at.
"""

from struct import Struct

import cramjam

from ottla.base.ports import Buffer
from ottla.records.compression import DEFAULT_LEVELS
from ottla.records.faults import LEAST_PIECE_BYTES, BrokenCompression, DecompressionBomb
from ottla.records.header import Compression
from ottla.records.large_buffers import room_for

FAST_LEVEL = DEFAULT_LEVELS[Compression.LZ4]
"""Kafka's default. It stands for lz4's fast compressor; every other level is a level of lz4 HC (KIP-390)."""

BLOCK_SIZE = 64 * 1024

_MAGIC = b"\x04\x22\x4d\x18"
_FRAME_HEADER = _MAGIC + b"\x60\x40\x82"
_END_MARK = bytes(4)
_SIZE = Struct("<I")
_STORED = 0x80000000
_FIRST_BLOCK = len(_FRAME_HEADER) + _SIZE.size
_HC_LEVELS = range(2, 13)


def compress(data: Buffer, level: int) -> bytes:
    if level != FAST_LEVEL:
        return _compress_high(data, level)
    parts: list[Buffer] = [_FRAME_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = view[start : start + BLOCK_SIZE]
        compressed = memoryview(cramjam.lz4.compress_block(block, store_size=False))
        if len(compressed) < len(block):
            parts.append(_SIZE.pack(len(compressed)))
            parts.append(compressed)
        else:
            parts.append(_SIZE.pack(len(block) | _STORED))
            parts.append(block)
    parts.append(_END_MARK)
    return b"".join(parts)


def _compress_high(data: Buffer, level: int) -> bytes:
    level = min(max(level, _HC_LEVELS.start), _HC_LEVELS.stop - 1)
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))  # it takes nothing but bytes
    return bytes(compressor.finish())


def decompress(data: memoryview, limit: int, *, check_header: bool = True) -> Buffer:
    if limit >= BLOCK_SIZE and data[: len(_FRAME_HEADER)] == _FRAME_HEADER and len(data) > _FIRST_BLOCK:
        (size,) = _SIZE.unpack_from(data, len(_FRAME_HEADER))
        if 0 < size <= BLOCK_SIZE and data[_FIRST_BLOCK + size : _FIRST_BLOCK + size + _SIZE.size] == _END_MARK:
            return _only_block(data[_FIRST_BLOCK : _FIRST_BLOCK + size])
    position, block_size, has_block_checksum = _read_frame_header(data, check_header)
    blocks = _blocks(data, position, block_size, has_block_checksum, limit)
    target = room_for(min(limit, len(blocks) * block_size))
    used = 0
    for block, compressed in blocks:
        room = min(block_size, len(target) - used)
        if not compressed:
            if len(block) > room:
                raise DecompressionBomb("lz4", limit)
            target[used : used + len(block)] = block
            used += len(block)
            continue
        try:
            used += cramjam.lz4.decompress_block_into(block, target[used : used + room], output_len=room)
        except cramjam.DecompressionError as error:
            if room < block_size:
                raise DecompressionBomb("lz4", limit) from None
            raise BrokenCompression("lz4", str(error)) from None
    return target[:used]


def _only_block(block: memoryview) -> Buffer:
    """Most batches are one block, which is compressed: the short way."""
    target = memoryview(bytearray(BLOCK_SIZE))
    try:
        return target[: cramjam.lz4.decompress_block_into(block, target, output_len=BLOCK_SIZE)]
    except cramjam.DecompressionError as error:
        raise BrokenCompression("lz4", str(error)) from None


def _read_frame_header(data: memoryview, check: bool) -> tuple[int, int, bool]:
    if data[: len(_FRAME_HEADER)] == _FRAME_HEADER:
        return len(_FRAME_HEADER), BLOCK_SIZE, False
    if len(data) < len(_FRAME_HEADER) or data[:4] != _MAGIC:
        raise BrokenCompression("lz4", "no frame begins here")
    flags, block_descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or block_descriptor & 0x8F:
        raise BrokenCompression("lz4", "its frame is of an unknown version")
    if not flags & 0x20:
        raise BrokenCompression("lz4", "its blocks depend on each other, which Kafka's frames may not")
    if block_descriptor >> 4 < 4:
        raise BrokenCompression("lz4", "its block size is unknown")
    end = 14 if flags & 0x08 else 6
    if len(data) <= end:
        raise BrokenCompression("lz4", "its frame header is cut off")
    if check and data[end] != _header_checksum(data[4:end]):
        raise BrokenCompression("lz4", "its frame header does not match its checksum")
    return end + 1, 1 << (8 + 2 * (block_descriptor >> 4)), bool(flags & 0x10)


def _blocks(
    data: memoryview, position: int, block_size: int, has_block_checksum: bool, limit: int
) -> list[tuple[memoryview, bool]]:
    """The blocks, and whether each is compressed. What follows the end mark is not looked at, as in Java."""
    blocks: list[tuple[memoryview, bool]] = []
    while True:
        if len(data) - position < _SIZE.size:
            raise BrokenCompression("lz4", "it ends early")
        (word,) = _SIZE.unpack_from(data, position)
        position += _SIZE.size
        size = word & ~_STORED
        if size == 0:
            return blocks
        end = position + size + (4 if has_block_checksum else 0)
        if size > block_size or end > len(data):
            raise BrokenCompression("lz4", f"a block says it has {size} bytes")
        if len(blocks) * LEAST_PIECE_BYTES > limit:
            raise DecompressionBomb("lz4", limit)
        blocks.append((data[position : position + size], word & _STORED == 0))
        position = end


def _header_checksum(descriptor: memoryview) -> int:
    from xxhash import xxh32_intdigest  # Only frames that Kafka's own clients do not write get here.

    return xxh32_intdigest(descriptor) >> 8 & 0xFF
