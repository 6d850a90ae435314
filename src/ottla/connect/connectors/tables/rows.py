"""Records as rows of a table: which columns they have, which of them are the key, and the columns themselves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.connectors.tables.databases import NewColumn, comparable
from ottla.connect.data.arrow import to_arrow
from ottla.connect.data.columns import Column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import constant, rows_of
from ottla.connect.data.schema import DECIMAL, Schema, Type
from ottla.connect.errors import ConnectError, DataError

KAFKAS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True, slots=True)
class KeyRule:
    """What the key of a table's rows is: `none`, `kafka`, `record_key` or `record_value`, and of which fields."""

    mode: str
    fields: tuple[str, ...]
    names: tuple[str, ...] = KAFKAS
    """Of the columns with topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table with the same columns. `batch` has the key's columns first."""

    columns: tuple[NewColumn, ...]
    batch: Any
    position: Any

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.is_key)


def rows_to_write(records: Records, rule: KeyRule, keeps: Callable[[str], bool]) -> Rows:
    """Rows of records that have values, which are structs. Raises `DataError`."""
    value = records.value
    if not isinstance(value, Column) or value.schema.type is not Type.STRUCT:
        raise DataError(
            "tables are written from structs: set a converter that has schemas, as JsonConverter with "
            "schemas.enable=true, or AvroConverter"
        )
    named = _key_columns(records, rule, value)
    keys = {name for name, _ in named}
    for place, field in enumerate(value.schema.fields):
        if field.name not in keys and keeps(field.name):
            named.append((field.name, value.child(place)))
    return _rows(records, named, len(keys))


def rows_to_delete(records: Records, rule: KeyRule) -> Rows:
    """Keys of tombstones. Raises `DataError`."""
    named = _key_columns(records, rule, None)
    return _rows(records, named, len(named))


def _rows(records: Records, named: list[tuple[str, Column]], keys: int) -> Rows:
    columns: list[NewColumn] = []
    arrays: list[Any] = []
    for number, (name, column) in enumerate(named):
        columns.append(NewColumn(name, column.schema, number < keys))
        arrays.append(_array(name, column))
        if number < keys and column.array.null_count:
            raise DataError(f"the key's column {name} is null", column.array.is_null().index(True).as_py())
    batch = pa.RecordBatch.from_arrays(arrays, [name for name, _ in named])
    return Rows(tuple(columns), batch, records.position)


def _array(name: str, column: Column) -> Any:
    if column.schema.type in (Type.ARRAY, Type.MAP, Type.STRUCT):
        raise DataError(
            f"field {name}: {column.schema} has no type of a column; take it apart with the transform Flatten, or "
            "leave the field out"
        )
    if column.schema.logical == DECIMAL:
        return pa.array([None if one is None else str(one) for one in rows_of(column)], pa.string())
    return to_arrow(name, column)[1]


def _key_columns(records: Records, rule: KeyRule, value: Column | None) -> list[tuple[str, Column]]:
    if rule.mode == "none":
        return []
    if rule.mode == "kafka":
        length = len(records)
        return [
            (rule.names[0], constant(Schema(Type.STRING), records.topic, length)),
            (rule.names[1], Column(Schema(Type.INT32), records.partition)),
            (rule.names[2], Column(Schema(Type.INT64), records.offset)),
        ]
    if rule.mode == "record_value":
        assert value is not None
        return _fields(value, rule.fields, "record_value", "values")
    key = records.key
    if not isinstance(key, Column):
        raise DataError("the key's mode is record_key, and keys have no schema: set a key.converter that has schemas")
    if key.schema.type is not Type.STRUCT:
        if len(rule.fields) != 1:
            raise DataError("keys are no structs: name the one column for them in pk.fields")
        return [(rule.fields[0], key)]
    return _fields(key, rule.fields, "record_key", "keys")


def _fields(column: Column, names: Sequence[str], mode: str, what: str) -> list[tuple[str, Column]]:
    if column.schema.type is not Type.STRUCT:
        raise DataError(f"the key's mode is {mode}, and {what} are no structs")
    known = {field.name: place for place, field in enumerate(column.schema.fields)}
    wanted = names or tuple(known)
    for name in wanted:
        if name not in known:
            raise DataError(f"the key's mode is {mode}, and {what} have no field {name}: see pk.fields")
    return [(name, column.child(known[name])) for name in wanted]


def last_of_each(rows: Rows) -> Rows:
    """The last row of each key: many at once may not meet the same row twice."""
    keys = rows.keys
    if not keys or rows.batch.num_rows < 2:
        return rows
    seen = list(zip(*(comparable(rows.batch.column(name)) for name in keys), strict=True))
    last = {key: number for number, key in enumerate(seen)}
    if len(last) == len(seen):
        return rows
    chosen = pa.array(sorted(last.values()), pa.int64())
    return Rows(rows.columns, rows.batch.take(chosen), rows.position.take(chosen))


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several batches in the order of their positions."""
    if len(parts) == 1:
        return parts[0]
    if any(part.batch.schema != parts[0].batch.schema for part in parts):
        raise ConnectError("rows of different columns cannot be joined")
    table = pa.Table.from_batches([part.batch for part in parts]).combine_chunks()
    positions = pa.concat_arrays([part.position for part in parts])
    order = pc.sort_indices(positions)
    batches = table.take(order).combine_chunks().to_batches()
    return Rows(parts[0].columns, batches[0] if batches else parts[0].batch, positions.take(order))
