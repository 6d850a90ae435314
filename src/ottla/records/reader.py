"""The records inside a batch, one object each: for tools and tests, never on the way of a request."""

from collections.abc import Iterator

from ottla.base.lent import Seen
from ottla.base.ports import Buffer
from ottla.records import legacy
from ottla.records.batch import HEADER_SIZE, MAGIC, read_header
from ottla.records.compression import DEFAULT_LIMIT, decompress
from ottla.records.header import BatchHeader
from ottla.records.kernel import Record, RecordReader


def record_bytes(data: Seen, position: int, header: BatchHeader, limit: int = DEFAULT_LIMIT) -> Buffer:
    """The encoded records of a batch of magic 2, decompressed to at most `limit` bytes."""
    encoded = memoryview(data)[position + HEADER_SIZE : position + header.size]
    return decompress(header.compression, encoded, limit)


def read_records(
    data: Seen, position: int = 0, header: BatchHeader | None = None, limit: int = DEFAULT_LIMIT
) -> Iterator[Record]:
    """The records of the batch at `position`, made one at a time. Its checksum is the caller's to look at.

    What is wrong with the bytes is raised when the record it is in is asked for (for a compressed batch, some of
    it already at the first): the records before it have been given out by then.
    """
    header = header or read_header(data, position)
    if header.magic < MAGIC:
        return legacy.read_records(data, position, limit)
    return RecordReader(
        record_bytes(data, position, header, limit),
        header.base_offset,
        header.base_timestamp,
        header.log_append_time,
        header.record_count,
    )
