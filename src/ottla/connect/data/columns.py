"""One part of many records, their values for instance, in columns.

Arrays have the storage that the schema's type names, whatever else the schema says: a Decimal is its unscaled number
in bytes (big-endian, two's complement, as few as it needs), a Date days, a Time and a Timestamp milliseconds. So there
is one representation for each type, nothing is ever too large for it, and what a name means is only looked at where it
matters. `arrow` has the types that others expect.

| schema | array |
| --- | --- |
| INT8 to INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES | int8 to int64, float, double, bool, string, binary |
| ARRAY, MAP, STRUCT | list, map, struct |

Without a schema, every row may be something else: such a column is a tuple of Python values (`rows` says which), and
what is done with it is done row by row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.data.schema import Schema, Type

_STORED: Final[dict[Type, Any]] = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}


@lru_cache(maxsize=1_000)
def storage_type(schema: Schema) -> Any:
    """The type of the arrays of a column."""
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return pa.list_(storage_type(schema.items))
    if schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        return pa.map_(storage_type(schema.keys), storage_type(schema.items))
    if schema.type is Type.STRUCT:
        return pa.struct([pa.field(field.name, storage_type(field.schema)) for field in schema.fields])
    return _STORED[schema.type]


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one schema."""

    schema: Schema
    array: Any

    def __post_init__(self) -> None:
        assert self.array.type == storage_type(self.schema), f"{self.array.type} for {self.schema}"

    def __len__(self) -> int:
        return len(self.array)

    def take(self, rows: Any) -> "Column":
        return Column(self.schema, self.array.take(rows))

    def is_null(self) -> Any:
        """Which rows are null, as an array of booleans."""
        return self.array.is_null()

    def child(self, place: int) -> "Column":
        """A field of a struct: null wherever the struct is."""
        schema = self.schema.fields[place].schema
        return Column(schema, pc.struct_field(self.array, [place]) if len(self.array) else _empty(schema))


@dataclass(frozen=True, slots=True)
class Schemaless:
    """Values without a schema. All null is what a tombstone's value is."""

    values: tuple[Any, ...]

    @property
    def schema(self) -> None:
        return None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> "Schemaless":
        return Schemaless(tuple(self.values[row] for row in rows.to_pylist()))

    def is_null(self) -> Any:
        return pa.array([value is None for value in self.values], pa.bool_())


AnyColumn: TypeAlias = Column | Schemaless


def nothing(length: int) -> Schemaless:
    """Null in every row, and no schema: what the value of tombstones is."""
    return Schemaless((None,) * length)


def struct_column(schema: Schema, columns: Sequence[Column], length: int, missing: Any = None) -> Column:
    """A struct of these fields. `missing` says in which rows there is none."""
    assert len(columns) == len(schema.fields)
    if not columns:
        gone = [False] * length if missing is None else missing.to_pylist()
        return Column(schema, pa.array([None if one else {} for one in gone], pa.struct([])))
    arrays = [column.array for column in columns]
    return Column(schema, pa.StructArray.from_arrays(arrays, fields=list(storage_type(schema)), mask=missing))


def _empty(schema: Schema) -> Any:
    return pa.array([], storage_type(schema))
