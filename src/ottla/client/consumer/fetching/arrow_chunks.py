"""Fetched chunks to Arrow's record batches. Imported only by those who use it: it needs pyarrow."""

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.client.consumer.fetching.fetched_chunks import Chunk
from ottla.client.errors import CorruptMessage
from ottla.records import arrow
from ottla.records.batch import checksum_matches, complete_batches
from ottla.records.header import CorruptBatch


def to_arrow(chunk: Chunk, *, check_crcs: bool, end_offset: int = arrow.NO_END) -> pa.RecordBatch:
    """The records of the chunk that were not handed out before, up to `end_offset`.

    It may be empty: control records are no rows.
    """
    records, partition = chunk.records, chunk.state.partition
    try:
        if check_crcs:
            _check(records.data)
        return arrow.decode(
            records.data,
            partition.topic,
            partition.partition,
            first_offset=records.next_offset,
            end_offset=end_offset,
            aborted=chunk.aborted,
        )
    except CorruptBatch as problem:
        raise CorruptMessage(f"what was fetched from {partition} is damaged: {problem}") from problem


def _check(data: bytes | bytearray | memoryview) -> None:
    for position, header in complete_batches(data):
        if not checksum_matches(data, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its checksum {header.crc}")
