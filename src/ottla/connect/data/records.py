"""Records of one topic whose keys have one schema and whose values have one: what converters give and transforms take.

A task's records are many such batches. `position` says where each record stood among all that were polled together:
batches that were split, by a predicate for instance, come together again in that order (`in_order`), so two records of
one key never change places.

Headers are columns too. A batch has an ordered list of headers, each with a column and with the rows that have it; the
headers of a record are those of the list that it has. Any headers can be said this way, and those that all records
have, which is nearly always, cost nothing for each record.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.data.columns import AnyColumn, Column, Schemaless
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema


@dataclass(frozen=True, slots=True)
class Header:
    """A header of some records. `present` says of which, None of all."""

    key: str
    column: AnyColumn
    present: Any = None

    def take(self, rows: Any) -> "Header":
        return Header(self.key, self.column.take(rows), None if self.present is None else self.present.take(rows))


@dataclass(frozen=True, slots=True)
class Records:
    """`timestamp` (milliseconds) and `partition` may be null. A source's records have `source_partition` and
    `source_offset`, as JSON texts; a sink's records have `offset`."""

    topic: str
    key: AnyColumn
    value: AnyColumn
    position: Any
    timestamp: Any
    partition: Any
    headers: tuple[Header, ...] = ()
    source_partition: Any = None
    source_offset: Any = None
    offset: Any = None

    def __post_init__(self) -> None:
        length = len(self.position)
        columns = [self.key, self.value, self.timestamp, self.partition]
        columns += [one for one in (self.source_partition, self.source_offset, self.offset) if one is not None]
        columns += [header.column for header in self.headers]
        assert all(len(column) == length for column in columns), "columns of different lengths"

    def __len__(self) -> int:
        return len(self.position)

    def but(self, **changes: Any) -> "Records":
        """The same with other parts."""
        return replace(self, **changes)

    def take(self, rows: Any) -> "Records":
        """These rows, in this order."""
        return Records(
            self.topic,
            self.key.take(rows),
            self.value.take(rows),
            self.position.take(rows),
            self.timestamp.take(rows),
            self.partition.take(rows),
            tuple(header.take(rows) for header in self.headers),
            *(
                None if one is None else one.take(rows)
                for one in (self.source_partition, self.source_offset, self.offset)
            ),
        )

    def split(self, chosen: Any) -> "tuple[Records | None, Records | None]":
        """The records that an array of booleans chooses, and the others; None where there are none."""
        number = pc.sum(chosen).as_py() or 0
        if number == len(self):
            return self, None
        if number == 0:
            return None, self
        return self.take(_where(chosen)), self.take(_where(pc.invert(chosen)))

    def by(self, names: Any) -> "list[tuple[str, Records]]":
        """The records for each name of an array of strings, each name in the place of its first record."""
        distinct = names.unique().to_pylist()
        if len(distinct) == 1:
            return [(distinct[0], self)]
        return [(name, self.take(_where(pc.equal(names, name)))) for name in distinct]

    def headers_of(self, row: int) -> list[tuple[str, Schema | None, Any]]:
        """Key, schema and value of each header of a record."""
        found: list[tuple[str, Schema | None, Any]] = []
        for header in self.headers:
            if header.present is None or header.present[row].as_py():
                column = header.column
                values = rows_of(column.take(pa.array([row]))) if isinstance(column, Column) else [column.values[row]]
                found.append((header.key, column.schema, values[0]))
        return found

    def where(self, row: int) -> str:
        """Which record that is, for people."""
        partition = self.partition[row].as_py()
        place = f"topic {self.topic}" if partition is None else f"{self.topic}-{partition}"
        if self.offset is not None:
            return f"the record at offset {self.offset[row].as_py()} of {place}"
        if self.source_offset is not None:
            return f"record {self.position[row].as_py()} for {place}, source offset {self.source_offset[row].as_py()}"
        return f"record {self.position[row].as_py()} for {place}"


def _where(chosen: Any) -> Any:
    return pc.indices_nonzero(chosen).cast(pa.int64())


def records_of(
    topic: str,
    key: AnyColumn,
    value: AnyColumn,
    *,
    timestamps: Sequence[int | None] | None = None,
    partitions: Sequence[int | None] | None = None,
    headers: Sequence[Iterable[tuple[str, Schema | None, Any]]] | None = None,
    first: int = 0,
) -> Records:
    """Records from rows: for tests, and where there are few."""
    length = len(value)
    return Records(
        topic,
        key,
        value,
        pa.array(range(first, first + length), pa.int64()),
        pa.array(timestamps if timestamps is not None else [None] * length, pa.int64()),
        pa.array(partitions if partitions is not None else [None] * length, pa.int32()),
        header_columns(headers) if headers is not None else (),
    )


def header_columns(headers: Sequence[Iterable[tuple[str, Schema | None, Any]]]) -> tuple[Header, ...]:
    """Headers of each record, as columns. A record's next header goes into the first column behind its last one that
    has that key and schema; if there is none, a new column begins there."""
    columns: list[tuple[str, Schema | None, dict[int, Any]]] = []
    for row, found in enumerate(headers):
        at = 0
        for key, schema, value in found:
            while at < len(columns) and columns[at][:2] != (key, schema):
                at += 1
            if at == len(columns):
                columns.append((key, schema, {}))
            columns[at][2][row] = value
            at += 1
    made: list[Header] = []
    for key, schema, values in columns:
        rows = [values.get(row) for row in range(len(headers))]
        # A row without the header has a null, where the schema may have none: the column has one that may.
        column = Schemaless(tuple(rows)) if schema is None else _with_gaps(schema, rows, values)
        present = None if len(values) == len(headers) else pa.array([row in values for row in range(len(headers))])
        made.append(Header(key, column, present))
    return tuple(made)


def _with_gaps(schema: Schema, rows: list[Any], values: dict[int, Any]) -> Column:
    column_of(schema, values.values())
    return Column(schema, column_of(schema.but(optional=True), rows).array)


def in_order(batches: Sequence[Any], positions: Sequence[Any]) -> Any:
    """Arrays that were split, together again: each of `batches` has its records' positions."""
    together = pa.concat_arrays(batches)
    return together.take(pc.sort_indices(pa.concat_arrays(positions)))
