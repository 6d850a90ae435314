"""The broker's view of a record batch: its header, read and patched in place; records are never touched.

Format v2 (KIP-98), big endian, 61 bytes before the records:

     0  base_offset             int64     the leader assigns it
     8  batch_length            int32     bytes that follow this field
    12  partition_leader_epoch  int32     the leader assigns it
    16  magic                   int8      2
    17  crc                     uint32    CRC-32C of everything from `attributes` on
    21  attributes              int16     bits: 0-2 compression, 3 timestamp type, 4 transactional, 5 control,
                                          6 base_timestamp is a delete horizon
    23  last_offset_delta       int32
    27  base_timestamp          int64
    35  max_timestamp           int64
    43  producer_id             int64
    51  producer_epoch          int16
    53  base_sequence           int32
    57  record_count            int32

The CRC does not cover the first two assigned fields, so assigning offsets costs two small writes.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from ottla.base.errors import ProtocolError
from ottla.base.ports import Buffer

LOG_OVERHEAD = 12
HEADER_SIZE = 61
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET_AND_LENGTH = Struct(">qi")
_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """Every field of a batch's header. Batches of the older formats (magic 0 and 1) are shown in the same terms."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & 7

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & 8 != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & 16 != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & 32 != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & 64 != 0

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class CorruptBatch(ProtocolError):
    """Bytes that are not a record batch, or not the one that was written."""


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch at `position`, whose bytes must all be in `data`; nothing but its length is checked."""
    left = len(data) - position
    if left < HEADER_SIZE:
        raise CorruptBatch(f"{left} bytes at {position} are too few for a batch header of {HEADER_SIZE}")
    header = BatchHeader._make(_HEADER.unpack_from(data, position))
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD or header.size > left:
        raise CorruptBatch(f"batch at {position} says it has {header.size} bytes; {left} are there")
    return header


def batches(data: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch in `data`, which must hold whole batches only."""
    position = 0
    while position < len(data):
        header = read_header(data, position)
        yield position, header
        position += header.size


def assign(data: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Writes what the leader assigns into the batch at `position`; its CRC stays valid."""
    _BASE_OFFSET.pack_into(data, position, base_offset)
    _LEADER_EPOCH.pack_into(data, position + 12, leader_epoch)


def checksum_matches(data: Buffer, position: int, header: BatchHeader) -> bool:
    return crc32c(memoryview(data)[position + ATTRIBUTES_POSITION : position + header.size]) == header.crc
