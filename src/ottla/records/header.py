"""A record batch's header as a value: its fields, its flags, its constants.

`ottla.records.batch` says where each field is in the bytes; this module says what they mean. It knows no
bytes, so that the reader of the current format and the reader of the older ones can share it.
"""

from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ProtocolError

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

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40


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

    def assigned(self, base_offset: int, leader_epoch: int) -> "BatchHeader":
        """This header with what the leader assigns. Quicker than `_replace`, as it is done once per batch."""
        return BatchHeader._make((base_offset, self[1], leader_epoch, *self[3:]))

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def log_append_time(self) -> int | None:
        """What every record of the batch has as its timestamp, if the broker stamped it."""
        return self.max_timestamp if self.attributes & LOG_APPEND_TIME_FLAG else None

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class CorruptBatch(ProtocolError):
    """Bytes that are not a record batch, or not the one that was written."""


class ChecksumMismatch(CorruptBatch):
    """A batch that does not match its checksum where a log was to write it. Nothing of it was written."""
