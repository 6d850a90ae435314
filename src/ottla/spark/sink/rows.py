"""Rows of a DataFrame as records: which columns they have, and where each row goes.

The columns are those of Spark's Kafka sink: `value`, and `key`, `headers`, `topic` and `partition` where there are
such; others are passed over, so that what was read can be written as it is. The option `topic` wins over the column.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.errors import OttlaError
from ottla.records.arrow import HEADERS_TYPE, binary_column, header_column, rows_by_partition
from ottla.spark.sink.digest import rows_digest

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class WrongRows(OttlaError, ValueError):
    """A DataFrame, or a row of it, cannot be written. The message names the column or the option."""


class RoutedRows(NamedTuple):
    """Rows for one topic, with the columns that a producer takes. `partition` is None where keys decide."""

    topic: str
    partition: int | None
    rows: "pa.RecordBatch"


class Routing:
    """`topic` is the option, None if it is not given."""

    def __init__(self, columns: Sequence[str], topic: str | None) -> None:
        self._topic = topic
        self._has_topics = topic is None
        self._has_partitions = "partition" in columns
        self._placing = [*(["topic"] if self._has_topics else []), *(["partition"] if self._has_partitions else [])]
        self._columns = [name for name in ("key", "value", "headers") if name in columns]

    def routes(self, batch: "pa.RecordBatch | pa.Table") -> Iterator[RoutedRows]:
        """The rows of each topic, and of each partition where the column names one. Order is kept in each."""
        import pyarrow as pa

        for chunk in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            if chunk.num_rows:
                yield from self._of_topics(chunk)

    def digest(self, batch: "pa.RecordBatch") -> int:
        """Of what becomes of the rows (see `rows_digest`). Columns that are passed over do not count."""
        import pyarrow as pa

        used = {name: batch.column(name) for name in self._placing}
        used = {name: binary_column(column.cast(pa.string())) for name, column in used.items()}
        records = self._record_columns(batch)
        for name in self._columns:
            column = records.column(name)
            used[name] = header_column(column) if name == "headers" else binary_column(column)
        cells = [used.get(name) for name in ("topic", "partition", "key", "value")]
        return rows_digest(batch.num_rows, cells, used.get("headers"))

    def _of_topics(self, chunk: "pa.RecordBatch") -> Iterator[RoutedRows]:
        if not self._has_topics:
            assert self._topic is not None
            yield from self._of_partitions(self._topic, chunk)
            return
        from pyarrow import compute

        topics = chunk.column("topic")
        if topics.null_count:
            raise WrongRows('column "topic": a row has none; give every row a topic, or set the option "topic"')
        for topic in topics.unique().to_pylist():
            yield from self._of_partitions(topic, chunk.filter(compute.equal(topics, topic)))

    def _of_partitions(self, topic: str, chunk: "pa.RecordBatch") -> Iterator[RoutedRows]:
        rows = self._record_columns(chunk)
        if not self._has_partitions or chunk.column("partition").null_count == chunk.num_rows:
            yield RoutedRows(topic, None, rows)
            return
        from pyarrow import compute

        column = chunk.column("partition")
        if (least := compute.min(column).as_py()) < 0:
            raise WrongRows(f'column "partition": {least} is none; it counts from 0, and null lets the key decide')
        placed = column.fill_null(-1)
        for partition, part in rows_by_partition(rows, memoryview(placed.buffers()[1])[placed.offset * 4 :]):
            yield RoutedRows(topic, None if partition < 0 else partition, part)

    def _record_columns(self, chunk: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa

        columns = [_plain(chunk.column(name), name) for name in self._columns]
        return pa.RecordBatch.from_arrays(columns, names=self._columns)


def _plain(column: "pa.Array", name: str) -> "pa.Array":
    """A column as the producer takes it without copying."""
    import pyarrow as pa

    if name == "headers":
        return _headers(column)
    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_large_binary(column.type) else column


def _headers(column: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    entries = column.values
    keys = entries.field("key")
    if keys.null_count and any(header["key"] is None for row in column.to_pylist() for header in row or ()):
        raise WrongRows('column "headers": a header has no key')
    if column.null_count or entries.null_count:
        return pa.array(
            [[header for header in row or () if header is not None] for row in column.to_pylist()], HEADERS_TYPE
        )
    children = [_plain(keys, "key"), _plain(entries.field("value"), "value")]
    inner = pa.StructArray.from_arrays(children, fields=list(HEADERS_TYPE.value_type))
    return pa.Array.from_buffers(HEADERS_TYPE, len(column), column.buffers()[:2], 0, column.offset, children=[inner])


_TYPES: dict[str, tuple[str, ...]] = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


def check_columns(types: "dict[str, str]", topic: str | None, *, encodes_values: bool = False) -> None:
    """Raises `WrongRows` for a DataFrame that cannot be written. `types` are Spark's, in their short form."""
    if "value" not in types:
        raise WrongRows(f'column "value": missing; the DataFrame has {_listed(types)}')
    if topic is None and "topic" not in types:
        raise WrongRows('option "topic": neither it is set, nor has the DataFrame a column "topic"')
    for name, allowed in _TYPES.items():
        if name == "value" and encodes_values:
            continue
        if name in types and types[name] not in allowed:
            raise WrongRows(f'column "{name}": it must be {" or ".join(allowed)}, and is {types[name]}')


def _listed(types: Any) -> str:
    return ", ".join(f'"{name}"' for name in types) or "no columns"
