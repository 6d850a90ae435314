"""What the kernels take and give besides records: headers, and Arrow's columns as plain buffers.

Arrow itself is not needed here: a column of byte strings is an int32 offset for each row and one more, the
bytes, and a bitmap of the rows that are not null (https://arrow.apache.org/docs/format/Columnar.html). All
numbers are in the machine's own byte order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ottla.base.ports import Buffer

Header: TypeAlias = tuple[str, bytes | None]
Headers: TypeAlias = tuple[Header, ...]


class BinaryColumn(NamedTuple):
    offsets: Buffer
    data: Buffer
    validity: Buffer | None
    """A bit for each row, lowest first; None when no row is null."""
    null_count: int = 0
    first: int = 0
    """The row to start at, in an array that is a slice of a longer one."""


class HeaderColumn(NamedTuple):
    """For each record a list of headers: the list's bounds, then the headers of all lists in a row."""

    offsets: Buffer
    keys: BinaryColumn
    values: BinaryColumn
    first: int = 0


class RecordColumns(NamedTuple):
    """Decoded records, a buffer for each column, all of `row_count` rows."""

    row_count: int
    key: BinaryColumn
    value: BinaryColumn
    offset: Buffer
    """int64"""
    timestamp_us: Buffer
    """int64, microseconds: what Spark's timestamps are made of"""
    timestamp_type: Buffer
    """int32"""
    headers: HeaderColumn
    header_count: int


class Scan(NamedTuple):
    """What a broker has to know about the records of a batch."""

    earliest_timestamp: int | None
    """None when no record has a timestamp (-1 stands for none)."""
    latest_timestamp: int
    first_keyless: int
    """Index of the first record with a null key, or -1."""
    in_sequence: bool
    """Whether the offset deltas are 0, 1, 2 and so on."""


class Retained(NamedTuple):
    """What compaction leaves of a batch's records."""

    record_count: int
    keyless: int
    """Records that went because they have no key."""
    has_tombstones: bool
    base_timestamp: int
    max_timestamp: int
    """Of the records that are left; -1 for none."""
    records: bytearray | None
    """Them, encoded anew; None when all are left and nothing about them changes."""


class RetainedRun(NamedTuple):
    """What compaction leaves of some batches in a row, each of which stays as it is or goes."""

    size: int
    """In bytes, of the batches that were gone through."""
    next_offset: int
    records_read: int
    records_written: int
    keyless: int


OpenedRecords: TypeAlias = tuple[Buffer, int, int, int | None, int]
"""A batch's encoded records, its base offset and timestamp, the log's append time if it has one, and its count."""

Decompress: TypeAlias = Callable[[int, Buffer], Buffer]
"""By the number of a codec."""
OpenBatch: TypeAlias = Callable[[Buffer, int], tuple[int, int, int, OpenedRecords | None]]
"""Size, next offset and leader epoch of the batch at a position, and its records; None for those not to be shown.

Raises `CorruptBatch`, also for a wrong checksum."""

Deserialize: TypeAlias = Callable[[str, bytes, Headers], Any]
"""Topic, bytes and headers to what the application wants. Not called for null."""
