"""Tables of Arrow as records, and records as tables: what most connectors have and want."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.data.arrow import from_arrow, to_arrow
from ottla.connect.data.columns import AnyColumn, Column, nothing, struct_column
from ottla.connect.data.records import Records
from ottla.connect.data.schema import Type, struct
from ottla.connect.errors import DataError


def records_from_table(topic: str, table: Any, *, key: str | None = None, name: str | None = None) -> Records:
    """A record for each row of a `pyarrow.Table` or `RecordBatch`: the columns are the fields of its value.

    `key` is the column whose value is the record's key as well. `name` is the name of the values' schema. Raises
    `DataError` for a column of a type that Connect does not have.
    """
    columns = {field.name: from_arrow(field, table.column(field.name)) for field in table.schema}
    schema = struct([(field, column.schema) for field, column in columns.items()], name=name)
    count = table.num_rows
    keys: AnyColumn = nothing(count) if key is None else columns[key]
    return without_positions(topic, keys, struct_column(schema, list(columns.values()), count))


def without_positions(topic: str, key: AnyColumn, value: AnyColumn) -> Records:
    """Records of a source that says nothing of timestamps and partitions."""
    count = len(value)
    return Records(
        topic, key, value, pa.array(range(count), pa.int64()), pa.nulls(count, pa.int64()), pa.nulls(count, pa.int32())
    )


def table_of(records: Records) -> Any:
    """The values as a `pyarrow.Table`: a struct's fields are its columns, anything else is a column `value`.

    Raises `DataError` for values without a schema, and for tombstones, which have no columns.
    """
    column = records.value
    if not isinstance(column, Column):
        raise DataError("values without a schema are no table: use a converter that has schemas", 0)
    if column.schema.type is not Type.STRUCT:
        field, array = to_arrow("value", column)
        return pa.table([array], schema=pa.schema([field]))
    missing = column.is_null()
    if pc.any(missing).as_py():
        row = missing.index(True).as_py()
        raise DataError("a tombstone has no columns: drop tombstones with a Filter transform", row)
    made = [to_arrow(field.name, column.child(place)) for place, field in enumerate(column.schema.fields)]
    return pa.table([array for _, array in made], schema=pa.schema([field for field, _ in made]))
