"""zstd, with the room it needs found out from its frame headers (RFC 8878) before anything is allocated.

Java's streams do not write the content's size, so the blocks are counted instead: none holds more than 128 KB.
A frame's window is memory too, but libzstd refuses one beyond 128 MB and touches no more of it than there is content.
"""

from struct import Struct

import cramjam

from ottla.base.ports import Buffer
from ottla.records.faults import LEAST_PIECE_BYTES, BrokenCompression, DecompressionBomb
from ottla.records.large_buffers import room_for

_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50
_LARGEST_BLOCK = 128 * 1024
_RLE_BLOCK = 1
_COMPRESSED_BLOCK = 2
_WORD = Struct("<I")


def compress(data: Buffer, level: int) -> bytes:
    """Flushed before it is finished, as Java's stream is: it costs an empty block, and gives Java's very bytes."""
    compressor = cramjam.zstd.Compressor(level=level)
    compressor.compress(bytes(data))  # it takes nothing but bytes
    return bytes(compressor.flush()) + bytes(compressor.finish())


def decompress(data: memoryview, limit: int) -> Buffer:
    try:
        bound = _size_bound(data, limit)
    except IndexError:
        raise BrokenCompression("zstd", "it ends early") from None
    out = room_for(min(bound, limit))
    try:
        size = cramjam.zstd.decompress_into(data, out)
    except cramjam.DecompressionError as error:
        if bound > limit:
            raise DecompressionBomb("zstd", limit) from None
        raise BrokenCompression("zstd", str(error)) from None
    return out[:size]


def _size_bound(data: memoryview, limit: int) -> int:
    """The most bytes that all frames together can hold. A cut-off frame is an `IndexError`."""
    bound = 0
    position = 0
    pieces_left = limit // LEAST_PIECE_BYTES + 1
    while position < len(data):
        if pieces_left <= 0:
            raise DecompressionBomb("zstd", limit)
        pieces_left -= 1
        magic = _word(data, position)
        if magic & 0xFFFFFFF0 == _SKIPPABLE:
            position += 8 + _word(data, position + 4)
            continue
        if magic != _MAGIC:
            raise BrokenCompression("zstd", "no frame begins here")
        frame_bound, blocks, position = _frame_bound(data, position + 4, limit, pieces_left)
        bound += frame_bound
        pieces_left -= blocks - 1
    return bound


def _frame_bound(data: memoryview, position: int, limit: int, most_blocks: int) -> tuple[int, int, int]:
    """Most bytes in the frame whose descriptor is at `position`, its number of blocks, where the next frame begins."""
    descriptor = data[position]
    position += 1
    single_segment = descriptor & 0x20
    window = 0
    if not single_segment:
        base = 1 << (10 + (data[position] >> 3))
        window = base + (base >> 3) * (data[position] & 7)
        position += 1
    position += (0, 1, 2, 4)[descriptor & 3]
    content_width = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    content_size = int.from_bytes(data[position : position + content_width], "little")
    if content_width == 2:
        content_size += 256
    position += content_width
    if content_size > limit:
        raise DecompressionBomb("zstd", limit)
    blocks_bound, blocks, position = _blocks_bound(data, position, min(window or content_size, _LARGEST_BLOCK))
    if blocks > most_blocks + 1:
        raise DecompressionBomb("zstd", limit)
    if descriptor & 0x04:
        position += 4
    return (content_size if content_width else blocks_bound), blocks, position


def _blocks_bound(data: memoryview, position: int, largest: int) -> tuple[int, int, int]:
    """The empty block that a stream ends with, because it was flushed first, is not counted with the others."""
    bound = blocks = 0
    while True:
        head = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        kind, size = head >> 1 & 3, head >> 3
        bound += largest if kind == _COMPRESSED_BLOCK else size
        position += 3 + (1 if kind == _RLE_BLOCK else size)
        if head & 1:
            return bound, max(blocks + (size > 0), 1), position
        blocks += 1


def _word(data: memoryview, position: int) -> int:
    if len(data) - position < 4:
        raise IndexError
    (word,) = _WORD.unpack_from(data, position)
    return int(word)
