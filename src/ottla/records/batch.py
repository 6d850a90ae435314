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

The CRC does not cover the first two assigned fields, so assigning offsets costs two small writes. Entries of
the older formats have their magic at the same place, which is how they are distinguished; `ottla.records.legacy`
reads those.
"""

from collections.abc import Iterator
from struct import Struct

from ottla.base.checksum import crc32c
from ottla.base.lent import Seen, Writable
from ottla.base.ports import Buffer
from ottla.records import legacy
from ottla.records.header import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_SIZE,
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
    TimestampType,
)

__all__ = [
    "ATTRIBUTES_POSITION",
    "CRC_POSITION",
    "HEADER_SIZE",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAGIC_POSITION",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchHeader",
    "Compression",
    "CorruptBatch",
    "TimestampType",
    "assign",
    "assign_to_first",
    "batches",
    "checksum_matches",
    "complete_batches",
    "peek_header",
    "read_header",
    "set_max_timestamp",
    "write_header",
]

MAGIC = 2

_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET = Struct(">q")
_LENGTH = Struct(">i")
_LEADER_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")
_LENGTH_POSITION = 8
_LEADER_EPOCH_POSITION = 12
_MAX_TIMESTAMP_POSITION = 35


def read_header(data: Seen, position: int = 0) -> BatchHeader:
    """The header of the batch at `position`, whose bytes must all be in `data`; only magic and length are checked.

    The base offset and the count of a compressed entry of the older formats are inside it, so it is decompressed.
    """
    left = len(data) - position
    if left < HEADER_SIZE or data[position + MAGIC_POSITION] != MAGIC:
        return _read_other_header(data, position, left)
    header = BatchHeader._make(_HEADER.unpack_from(data, position))
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD or header.size > left:
        raise CorruptBatch(f"batch at {position} says it has {header.size} bytes; {left} are there")
    return header


def _read_other_header(data: Seen, position: int, left: int) -> BatchHeader:
    if left > MAGIC_POSITION:
        magic = data[position + MAGIC_POSITION]
        if magic < MAGIC:
            return legacy.read_header(data, position)
        if magic != MAGIC:
            raise CorruptBatch(f"batch at {position} has magic {magic}, which no version of Kafka writes")
    raise CorruptBatch(f"{left} bytes at {position} are too few for a batch header of {HEADER_SIZE}")


def peek_header(head: Buffer, position: int = 0) -> BatchHeader:
    """The header alone, for walking a file without reading its records: only these 61 bytes need be there.

    Only of the current format; its `size` is what the bytes say, and the caller holds it against the file.
    """
    if len(head) - position < HEADER_SIZE or head[position + MAGIC_POSITION] != MAGIC:
        raise CorruptBatch(f"no batch header of magic {MAGIC} at {position}")
    header = BatchHeader._make(_HEADER.unpack_from(head, position))
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatch(f"batch at {position} says it has {header.size} bytes, fewer than its header")
    return header


def batches(data: Seen) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch in `data`, which must hold whole batches only."""
    position = 0
    while position < len(data):
        header = read_header(data, position)
        yield position, header
        position += header.size


def complete_batches(data: Seen) -> Iterator[tuple[int, BatchHeader]]:
    """As `batches`, but the last batch may be cut off, as it is in a fetch response, and is then left out."""
    position = 0
    size = len(data)
    while size - position > MAGIC_POSITION:
        (length,) = _LENGTH.unpack_from(data, position + _LENGTH_POSITION)
        if length > size - position - LOG_OVERHEAD:
            return
        header = read_header(data, position)
        yield position, header
        position += header.size


def assign(data: Writable, position: int, base_offset: int, leader_epoch: int) -> None:
    """Writes what the leader assigns into the batch at `position`; its CRC stays valid."""
    _BASE_OFFSET.pack_into(data, position, base_offset)
    _LEADER_EPOCH.pack_into(data, position + _LEADER_EPOCH_POSITION, leader_epoch)


assign_to_first = Struct(">qii").pack_into
"""The same for the batch that `data` begins with, in one step: called with data, 0, base offset, the batch's length as
its header says it, and leader epoch.
"""


def set_max_timestamp(
    data: bytearray | memoryview, position: int, header: BatchHeader, timestamp_type: TimestampType, max_timestamp: int
) -> BatchHeader:
    """Writes timestamp type and maximum, and the CRC that they change; records keep their deltas untouched.

    With `LOG_APPEND_TIME` this is all it takes to stamp every record: readers then take the maximum for each.
    """
    attributes = header.attributes & ~LOG_APPEND_TIME_FLAG
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    if attributes == header.attributes and max_timestamp == header.max_timestamp:
        return header
    _ATTRIBUTES.pack_into(data, position + ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(data, position + _MAX_TIMESTAMP_POSITION, max_timestamp)
    crc = _checksum(data, position, header.size)
    _CRC.pack_into(data, position + CRC_POSITION, crc)
    return header._replace(attributes=attributes, max_timestamp=max_timestamp, crc=crc)


def write_header(data: bytearray | memoryview, header: BatchHeader) -> BatchHeader:
    """Fills in the header of a batch whose records are in `data` from byte 61 on; length and CRC are computed.

    Returns the header with these.
    """
    length = len(data) - LOG_OVERHEAD
    _HEADER.pack_into(data, 0, header[0], length, header[2], MAGIC, 0, *header[5:])
    crc = _checksum(data, 0, len(data))
    _CRC.pack_into(data, CRC_POSITION, crc)
    return header._replace(batch_length=length, magic=MAGIC, crc=crc)


def checksum_matches(data: Seen, position: int, header: BatchHeader) -> bool:
    if header.magic < MAGIC:
        return legacy.checksum_matches(data, position, header)
    return _checksum(data, position, header.size) == header.crc


def _checksum(data: Seen, position: int, size: int) -> int:
    return crc32c(memoryview(data)[position + ATTRIBUTES_POSITION : position + size])
