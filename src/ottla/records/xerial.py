"""snappy in the framing of Java's xerial library, which is what Kafka means by snappy.

Sixteen bytes (a marker, version 1, compatible with 1), then blocks of at most 32 KB before compression, each
behind its compressed length. Data without the marker is one raw snappy block: Java reads it, and librdkafka
writes it.
"""

from struct import Struct

import cramjam

from ottla.base.ports import Buffer
from ottla.records.faults import LEAST_PIECE_BYTES, BrokenCompression, DecompressionBomb
from ottla.records.large_buffers import room_for

BLOCK_SIZE = 32 * 1024

_MARKER = b"\x82SNAPPY\x00"
_HEADER = _MARKER + bytes.fromhex("0000000100000001")
_LENGTH = Struct(">i")


def compress(data: Buffer, level: int) -> bytes:
    """snappy has no levels; the argument is there for the table of codecs."""
    parts: list[Buffer] = [_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = memoryview(cramjam.snappy.compress_raw(view[start : start + BLOCK_SIZE]))
        parts.append(_LENGTH.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def decompress(data: memoryview, limit: int) -> memoryview:
    blocks = _blocks(data, limit)
    sizes = [_decompressed_size(block) for block in blocks]
    total = sum(sizes)
    if total > limit:
        raise DecompressionBomb("snappy", limit)
    target = room_for(total)
    position = 0
    for block, size in zip(blocks, sizes, strict=True):
        try:
            written = cramjam.snappy.decompress_raw_into(block, target[position : position + size])
        except cramjam.DecompressionError as error:
            raise BrokenCompression("snappy", str(error)) from None
        if written != size:
            raise BrokenCompression("snappy", f"a block of {size} bytes has {written}")
        position += size
    return target


def _blocks(data: memoryview, limit: int) -> list[memoryview]:
    if data[: len(_MARKER)] != _MARKER:
        return [data]
    if len(data) < len(_HEADER):
        raise BrokenCompression("snappy", "its header is cut off")
    blocks: list[memoryview] = []
    position = len(_HEADER)
    while position < len(data):
        if len(data) - position < _LENGTH.size:
            raise BrokenCompression("snappy", "a block's length is cut off")
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if not 0 < length <= len(data) - position:
            raise BrokenCompression("snappy", f"a block says it has {length} bytes; {len(data) - position} are there")
        if len(blocks) * LEAST_PIECE_BYTES > limit:
            raise DecompressionBomb("snappy", limit)
        blocks.append(data[position : position + length])
        position += length
    return blocks


def _decompressed_size(block: memoryview) -> int:
    """The varint that a raw snappy block begins with: a claim, which the decoder then enforces."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise BrokenCompression("snappy", "a block does not say its size")
