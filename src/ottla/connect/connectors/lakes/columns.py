"""Types that lakes have, and whether a column of a table can take a field.

Both formats have Arrow's common types, and fewer of the rare ones. What a lake has not becomes the next type that loses
nothing; what has none is refused by name. All columns may be null: a record of a later schema may lack any of them.
"""

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.data.arrow import to_arrow
from ottla.connect.data.columns import Column
from ottla.connect.data.schema import DECIMAL, PRECISION, Field, Schema
from ottla.connect.errors import DataError

_MOST_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class LakeTypes:
    """What a format has of the rare types."""

    small_integers: bool
    """8 and 16 bits; without them, 32."""
    times: bool
    """Times of a day; without them, text of ISO 8601."""


def lake_array(name: str, column: Column, types: LakeTypes) -> Any:
    """A column as an array that a lake can have. Raises `DataError`."""
    _, array = to_arrow(name, Column(_with_precision(column.schema), column.array))
    return cast(name, array, _lake_type(name, array.type, types))


def _with_precision(schema: Schema) -> Schema:
    """Decimals that say no precision get the most that there is."""
    if schema.logical == DECIMAL and PRECISION not in (schema.parameters or {}):
        return schema.but(parameters={**(schema.parameters or {}), PRECISION: str(_MOST_DIGITS)})
    return schema.but(
        fields=tuple(Field(field.name, _with_precision(field.schema)) for field in schema.fields),
        keys=None if schema.keys is None else _with_precision(schema.keys),
        items=None if schema.items is None else _with_precision(schema.items),
    )


def _lake_type(name: str, kind: Any, types: LakeTypes) -> Any:
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise DataError(f"field {name} is a struct without fields, which no table can have: leave it out")
        return pa.struct([pa.field(one.name, _lake_type(f"{name}.{one.name}", one.type, types)) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(_lake_type(name, kind.key_type, types), _lake_type(name, kind.item_type, types))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _lake_type(name, kind.value_type, types)))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return pa.time64("us") if types.times else pa.string()
    if kind in (pa.int8(), pa.int16()) and not types.small_integers:
        return pa.int32()
    if pa.types.is_decimal256(kind):
        raise DataError(f"field {name} has {kind.precision} digits, and a column at most {_MOST_DIGITS}: make it text")
    return kind


def cast(name: str, array: Any, kind: Any) -> Any:
    """Raises `DataError` if something would be lost."""
    try:
        if pa.types.is_time(array.type) and pa.types.is_string(kind):
            array = array.cast(pa.time64("us"))
        return array if array.type == kind else array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"field {name} cannot become {kind}: {error}") from None


_ROOM: Final[dict[Any, tuple[Any, ...]]] = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64()),
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
    pa.string(): (pa.large_string(), pa.string_view()),
    pa.binary(): (pa.large_binary(), pa.binary_view()),
}


def fits(kind: Any, column: Any) -> bool:
    """Whether every value of one type is one of a column's type."""
    if kind == column or column in _ROOM.get(kind, ()):
        return True
    if pa.types.is_decimal128(kind) and pa.types.is_decimal128(column):
        return bool(kind.scale == column.scale and kind.precision <= column.precision)
    if pa.types.is_struct(kind) and pa.types.is_struct(column):
        there = {one.name: one.type for one in column}
        return all(one.name in there and fits(one.type, there[one.name]) for one in kind)
    if pa.types.is_map(kind) and pa.types.is_map(column):
        return fits(kind.key_type, column.key_type) and fits(kind.item_type, column.item_type)
    if _is_list(kind) and _is_list(column):
        return fits(kind.value_type, column.value_type)
    return False


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def wider(name: str, first: Any, second: Any) -> Any:
    """The type that takes both: for records of two schemas in one put. Raises `DataError`."""
    if fits(first, second):
        return second
    if fits(second, first):
        return first
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        fields = {one.name: one.type for one in first}
        for one in second:
            known = fields.get(one.name)
            fields[one.name] = one.type if known is None else wider(f"{name}.{one.name}", known, one.type)
        return pa.struct(list(fields.items()))
    raise DataError(f"field {name} is {first} in some records and {second} in others: no column can have both")


def in_columns(rows: Any, schema: Any) -> Any:
    """Rows with the columns of a schema: those that they have not are null. Raises `DataError` where none may be."""
    arrays: list[Any] = []
    for field in schema:
        place = rows.schema.get_field_index(field.name)
        array = pa.nulls(rows.num_rows, field.type) if place < 0 else cast(field.name, rows.column(place), field.type)
        if array.null_count and not field.nullable:
            raise DataError(f"column {field.name} may not be null, and a record has no value for it")
        arrays.append(array)
    return pa.table(arrays, schema=schema)
