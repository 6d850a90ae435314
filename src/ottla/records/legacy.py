"""The message formats before batches: magic 0 and magic 1 (KIP-32). Read from old segments; never written.

An entry is one message, big endian:

     0  offset        int64    of a compressed entry: the offset of the last message in it
     8  size          int32    bytes that follow this field
    12  crc           uint32   CRC-32 of everything from `magic` on
    16  magic         int8     0 or 1
    17  attributes    int8     bits: 0-2 compression, 3 timestamp type (magic 1)
    18  timestamp     int64    magic 1 only
     .  key, value    int32 length (-1 for null) and bytes

A compressed entry's value is a sequence of entries. Their offsets are absolute in magic 0 and relative to the
first in magic 1 (KIP-31), so the offset of the first is known only after looking inside.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ottla.base.lent import Seen
from ottla.base.ports import Buffer
from ottla.records.compression import DEFAULT_LIMIT, decompress
from ottla.records.header import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Compression,
    CorruptBatch,
)
from ottla.records.record import Record

_ENTRY = Struct(">qiIbb")
_TIMESTAMP = Struct(">q")
_LENGTH = Struct(">i")
_SMALLEST_ENTRY = (_ENTRY.size + 8, _ENTRY.size + _TIMESTAMP.size + 8)


class _Entry(NamedTuple):
    offset: int
    size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: memoryview | None

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK


def read_header(data: Seen, position: int) -> BatchHeader:
    """The entry at `position` in a batch's terms: one record, or as many as a compressed entry holds."""
    entry = _read_entry(memoryview(data), position)
    base_offset, count = entry.offset, 1
    if entry.compression:
        inner = _inner_entries(entry, position, DEFAULT_LIMIT)
        base_offset, count = inner[0].offset, len(inner)
    return BatchHeader(
        base_offset=base_offset,
        batch_length=entry.size - LOG_OVERHEAD,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=entry.magic,
        crc=entry.crc,
        attributes=entry.attributes,
        last_offset_delta=entry.offset - base_offset,
        base_timestamp=entry.timestamp,
        max_timestamp=entry.timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=count,
    )


def read_records(data: Seen, position: int = 0, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
    """The records of the entry at `position`; a compressed entry is read whole before the first one comes."""
    entry = _read_entry(memoryview(data), position)
    for inner in _inner_entries(entry, position, limit) if entry.compression else [entry]:
        value = None if inner.value is None else bytes(inner.value)
        yield Record(inner.offset, inner.timestamp, inner.key, value)


def checksum_matches(data: Seen, position: int, header: BatchHeader) -> bool:
    return zlib.crc32(memoryview(data)[position + MAGIC_POSITION : position + header.size]) == header.crc


def _read_entry(data: memoryview, position: int) -> _Entry:
    left = len(data) - position
    if left < _SMALLEST_ENTRY[0]:
        raise CorruptBatch(f"{left} bytes at {position} are too few for a message of the older formats")
    offset, length, crc, magic, attributes = _ENTRY.unpack_from(data, position)
    size = length + LOG_OVERHEAD
    if magic not in (0, 1):
        raise CorruptBatch(f"message at {position} has magic {magic}, not 0 or 1")
    if size < _SMALLEST_ENTRY[magic] or size > left:
        raise CorruptBatch(f"message at {position} says it has {size} bytes; {left} are there")
    end = position + size
    cursor = position + _ENTRY.size
    timestamp = NO_TIMESTAMP
    if magic == 1:
        (timestamp,) = _TIMESTAMP.unpack_from(data, cursor)
        cursor += _TIMESTAMP.size
    key, cursor = _read_bytes(data, cursor, end)
    value, cursor = _read_bytes(data, cursor, end)
    if cursor != end:
        raise CorruptBatch(f"message at {position} is longer than its key and value")
    return _Entry(offset, size, crc, magic, attributes, timestamp, None if key is None else bytes(key), value)


def _read_bytes(data: memoryview, position: int, end: int) -> tuple[memoryview | None, int]:
    start = position + _LENGTH.size
    if start > end:
        raise CorruptBatch(f"a message ends in the middle of the length at {position}")
    (length,) = _LENGTH.unpack_from(data, position)
    if length < 0:
        return None, start
    if length > end - start:
        raise CorruptBatch(f"{length} bytes at {start} run past the message's end at {end}")
    return data[start : start + length], start + length


def _inner_entries(wrapper: _Entry, position: int, limit: int) -> list[_Entry]:
    """The entries in a compressed one, with absolute offsets and the timestamps that count."""
    if wrapper.value is None or wrapper.compression == Compression.ZSTD:
        raise CorruptBatch(f"message at {position} cannot be a compressed one")
    data = memoryview(_decompress(wrapper, wrapper.value, limit))
    inner: list[_Entry] = []
    cursor = 0
    while cursor < len(data):
        entry = _read_entry(data, cursor)
        if entry.compression:
            raise CorruptBatch(f"message at {position} holds a compressed one at {cursor}")
        cursor += entry.size
        inner.append(entry)
    if not inner:
        raise CorruptBatch(f"message at {position} is compressed and empty")
    if wrapper.magic == 0:
        return inner
    # Some versions of librdkafka left the wrapper's offset at 0: the offsets inside are then all there is.
    base = 0 if wrapper.offset == 0 else wrapper.offset - inner[-1].offset
    if base < 0:
        raise CorruptBatch(f"message at {position} has offset {wrapper.offset}, less than the ones inside it")
    stamped = wrapper.attributes & LOG_APPEND_TIME_FLAG
    return [
        entry._replace(offset=base + entry.offset, timestamp=wrapper.timestamp if stamped else entry.timestamp)
        for entry in inner
    ]


def _decompress(wrapper: _Entry, value: memoryview, limit: int) -> Buffer:
    if wrapper.magic == 0 and wrapper.compression == Compression.LZ4:
        from ottla.records import lz4_frame

        return lz4_frame.decompress(value, limit, check_header=False)
    return decompress(wrapper.compression, value, limit)
