"""Record batches to Arrow and back: the kernel fills and reads Arrow's buffers, and no record becomes an object.

The columns are those of Spark's Kafka connector. This is the only module that imports pyarrow (`ottla[arrow]`).
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.base.ports import Buffer
from ottla.records.builder import BatchBuilder
from ottla.records.columns import BinaryColumn, HeaderColumn
from ottla.records.compression import DEFAULT_LIMIT
from ottla.records.fetched import current_record_bytes
from ottla.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Compression
from ottla.records.kernel import ColumnReader
from ottla.records.visibility import visible_batches

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))
TIMESTAMP_TYPE = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP_TYPE),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", HEADERS_TYPE),
    ]
)
NO_END = (1 << 63) - 1
_INT32 = Struct("=i")


def decode(
    data: Buffer | Iterable[Buffer],
    topic: str,
    partition: int,
    *,
    first_offset: int = 0,
    end_offset: int = NO_END,
    aborted: Iterable[tuple[int, int]] = (),
    keep_control: bool = False,
    limit: int = DEFAULT_LIMIT,
) -> pa.RecordBatch:
    """The records of all batches in `data` (or in each of its pieces) with offsets in [`first_offset`, `end_offset`).

    `aborted` are the transactions to leave out, as a fetch names them, for pieces that follow one another. The
    result holds at most 2 GiB of keys and values; more is an `OverflowError`, before anything is decoded twice.
    """
    reader = ColumnReader()
    pieces = [data] if isinstance(data, bytes | bytearray | memoryview) else data
    aborted = list(aborted)
    for piece in pieces:
        for position, header in visible_batches(piece, aborted, keep_control=keep_control):
            if header.last_offset < first_offset or header.base_offset >= end_offset:
                continue
            encoded, base_timestamp = current_record_bytes(piece, position, header, limit)
            reader.add(
                encoded,
                header.base_offset,
                base_timestamp,
                header.log_append_time,
                header.record_count,
                first_offset,
                end_offset,
            )
    return _record_batch(reader, topic, partition)


def encode(
    rows: pa.RecordBatch | pa.Table,
    *,
    timestamp_ms: int | None = None,
    compression: int = Compression.NONE,
    level: int | None = None,
    max_batch_size: int = 1_000_000,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> Iterator[bytearray]:
    """Batches of the rows, in order: column `value`, and `key`, `timestamp` and `headers` where there are such.

    `timestamp_ms` is for rows without a timestamp. A batch ends before it grows beyond `max_batch_size`, counted
    before compression; one record that is larger gets a batch to itself. Sequences continue from batch to batch.
    """
    for (_, timestamps, key, value, headers), chunk in row_columns(rows, timestamp_ms):
        begin = 0
        while begin < chunk.num_rows:
            builder = BatchBuilder(
                compression=compression,
                level=level,
                limit=max_batch_size,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                transactional=transactional,
            )
            end = builder.extend_columns(timestamps, key, value, headers, begin, chunk.num_rows)
            yield builder.build()
            if base_sequence != NO_SEQUENCE:
                base_sequence = (base_sequence + end - begin) & 0x7FFFFFFF
            begin = end


class RowColumns(NamedTuple):
    """Rows as the kernel takes them."""

    row_count: int
    timestamps: Buffer
    """int64 milliseconds"""
    key: BinaryColumn | None
    value: BinaryColumn
    headers: HeaderColumn | None


def row_columns(
    rows: pa.RecordBatch | pa.Table, timestamp_ms: int | None
) -> Iterator[tuple[RowColumns, pa.RecordBatch]]:
    """The columns of each chunk of rows, with the chunk. `timestamp_ms` is for rows without a timestamp."""
    for chunk in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        timestamps = _timestamps(chunk, timestamp_ms)
        key = binary_column(chunk.column("key")) if "key" in chunk.schema.names else None
        value = binary_column(chunk.column("value"))
        headers = header_column(chunk.column("headers")) if "headers" in chunk.schema.names else None
        yield RowColumns(chunk.num_rows, timestamps, key, value, headers), chunk


def rows_by_partition(rows: pa.RecordBatch, placed: Buffer) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in their order. `placed` has an int32 for each row."""
    from pyarrow import compute  # only those whose rows have keys need it

    partitions = pa.Array.from_buffers(pa.int32(), rows.num_rows, [None, pa.py_buffer(placed)])
    ordered = rows.take(compute.array_sort_indices(partitions))
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in compute.value_counts(partitions)}
    first = 0
    for partition in sorted(counts):
        yield partition, ordered.slice(first, counts[partition])
        first += counts[partition]


def _record_batch(reader: ColumnReader, topic: str, partition: int) -> pa.RecordBatch:
    columns = reader.finish()
    rows = columns.row_count
    origin = _origin_columns(topic, partition, 1 << max(rows - 1, 0).bit_length())
    header_keys = _array(pa.string(), columns.headers.keys, columns.header_count)
    header_values = _array(pa.binary(), columns.headers.values, columns.header_count)
    fields = list(HEADERS_TYPE.value_type)
    headers = pa.StructArray.from_arrays([header_keys, header_values], fields=fields)
    return pa.RecordBatch.from_arrays(
        [
            _array(pa.binary(), columns.key, rows),
            _array(pa.binary(), columns.value, rows),
            origin[0].slice(0, rows),
            origin[1].slice(0, rows),
            pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(columns.offset)]),
            pa.Array.from_buffers(TIMESTAMP_TYPE, rows, [None, pa.py_buffer(columns.timestamp_us)]),
            pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(columns.timestamp_type)]),
            pa.Array.from_buffers(
                HEADERS_TYPE, rows, [None, pa.py_buffer(columns.headers.offsets)], children=[headers]
            ),
        ],
        schema=SCHEMA,
    )


@lru_cache(maxsize=16)
def _origin_columns(topic: str, partition: int, rows: int) -> tuple[pa.Array, pa.Array]:
    """Topic and partition, the same for so many rows. A consumer needs them again and again, and never changes them."""
    numbers = pa.py_buffer(_INT32.pack(partition) * rows)
    return pa.repeat(pa.scalar(topic, pa.string()), rows), pa.Array.from_buffers(pa.int32(), rows, [None, numbers])


def _array(type_: pa.DataType, column: BinaryColumn, rows: int) -> pa.Array:
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(type_, rows, buffers, null_count=column.null_count)


def _timestamps(rows: pa.RecordBatch, timestamp_ms: int | None) -> Buffer:
    """The column as int64 milliseconds, one for each row."""
    if "timestamp" not in rows.schema.names:
        column = pa.nulls(rows.num_rows, pa.int64())
    else:
        column = rows.column("timestamp")
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False)
        column = column.cast(pa.int64())
    if column.null_count:
        if timestamp_ms is None:
            raise ValueError("some rows have no timestamp, and no timestamp_ms was given for them")
        column = column.fill_null(timestamp_ms)
    _, numbers = column.buffers()
    return memoryview(numbers or b"")[column.offset * 8 :]


def binary_column(column: pa.Array) -> BinaryColumn:
    """A column of bytes or text as the kernel takes it."""
    if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        column = column.cast(pa.binary())
    validity, offsets, data = column.buffers()
    return BinaryColumn(
        memoryview(offsets or bytes(4)),
        memoryview(data or b""),
        None if validity is None else memoryview(validity),
        column.null_count,
        column.offset,
    )


def header_column(column: pa.Array) -> HeaderColumn | None:
    """A null list is no headers, as is an empty one. The child arrays are taken whole: list offsets point into them."""
    if column.null_count == len(column):
        return None
    if column.type != HEADERS_TYPE or column.null_count:
        column = pa.array([row or [] for row in column.to_pylist()], HEADERS_TYPE)
    _, offsets = column.buffers()[:2]
    keys, values = column.values.field("key"), column.values.field("value")
    return HeaderColumn(memoryview(offsets), binary_column(keys), binary_column(values), column.offset)
