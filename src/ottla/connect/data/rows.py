"""Values of single rows, in Python: for what cannot be done in columns, and for defaults.

| schema | value |
| --- | --- |
| INT8 to INT64, Date, Time, Timestamp | int (days, milliseconds of the day, milliseconds since 1970) |
| FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES | float, bool, str, bytes |
| Decimal | Decimal, with the schema's scale |
| ARRAY, MAP | list; list of (key, value) |
| STRUCT | dict of all fields |

Without a schema a value says itself what it is, as Java's objects do: int is Java's Long and float its Double, which
is what JSON becomes; the narrower ones and dates have classes here. A map is a dict.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.data.columns import Column, storage_type
from ottla.connect.data.schema import DECIMAL, TIME, Schema, Type, scale_of
from ottla.connect.errors import DataError

MOST_DIGITS: Final = 20_000
"""Of a decimal. Kafka has no limit, and may be made to compute for hours."""

_BOUNDS: Final = {
    Type.INT8: 1 << 7,
    Type.INT16: 1 << 15,
    Type.INT32: 1 << 31,
    Type.INT64: 1 << 63,
}
_DAY_MS: Final = 86_400_000


class Int8(int):
    """Java's Byte, where there is no schema to say so."""


class Int16(int):
    """Java's Short."""


class Int32(int):
    """Java's Integer."""


class Float32(float):
    """Java's Float."""


class Moment(int):
    """Java's Date: milliseconds since 1970."""


_CLASSES: Final[dict[type, Type]] = {
    int: Type.INT64,
    Int8: Type.INT8,
    Int16: Type.INT16,
    Int32: Type.INT32,
    float: Type.FLOAT64,
    Float32: Type.FLOAT32,
    bool: Type.BOOLEAN,
    str: Type.STRING,
    bytes: Type.BYTES,
    list: Type.ARRAY,
    dict: Type.MAP,
}
_JAVA: Final[dict[type, str]] = {
    int: "java.lang.Long",
    Int8: "java.lang.Byte",
    Int16: "java.lang.Short",
    Int32: "java.lang.Integer",
    float: "java.lang.Double",
    Float32: "java.lang.Float",
    bool: "java.lang.Boolean",
    str: "java.lang.String",
    bytes: "[B",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    Decimal: "java.math.BigDecimal",
    Moment: "java.util.Date",
}
_JAVA_OF_TYPES: Final[dict[Type, str]] = {
    **{type: _JAVA[klass] for klass, type in _CLASSES.items()},
    Type.STRUCT: "org.apache.kafka.connect.data.Struct",
}


def type_of(value: Any) -> Type | None:
    """The type of a value that has no schema; None if there is none for it."""
    return _CLASSES.get(type(value))


def java_class(value: Any, schema: Schema | None = None) -> str:
    """What Kafka's messages call the class of a value."""
    if value is None:
        return "null"
    if schema is None:
        return _JAVA.get(type(value), type(value).__name__)
    if schema.logical is not None:
        return "java.math.BigDecimal" if schema.logical == DECIMAL else "java.util.Date"
    return _JAVA_OF_TYPES[schema.type]


def check(schema: Schema, value: Any, place: str = "value") -> None:
    """Holds a value to its schema, in Kafka's words. Raises `DataError`."""
    if value is None:
        if not schema.may_be_null:
            raise DataError(f"Invalid value: null used for required {place}, schema type: {schema.type.name}")
        return
    kind = schema.type
    if schema.logical == DECIMAL:
        if not isinstance(value, Decimal) or not value.is_finite():
            raise _wrong(schema, value, place)
        unscaled(schema, value)
    elif kind in _BOUNDS:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(schema, value, place)
        if not -_BOUNDS[kind] <= value < _BOUNDS[kind]:
            raise DataError(f"{value} is out of the range of {kind.name} for {place}")
        if schema.logical == TIME and not 0 <= value <= _DAY_MS:
            raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    elif kind is Type.STRUCT:
        if not isinstance(value, dict):
            raise _wrong(schema, value, place)
        if unknown := value.keys() - {field.name for field in schema.fields}:
            raise DataError(f"{min(unknown)} is not a valid field name")
        for field in schema.fields:
            check(field.schema, value.get(field.name), f'field: "{field.name}"')
    elif kind is Type.ARRAY:
        if not isinstance(value, list):
            raise _wrong(schema, value, place)
        assert schema.items is not None
        for item in value:
            check(schema.items, item, f"element of array {place}")
    elif kind is Type.MAP:
        if not isinstance(value, list) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            raise _wrong(schema, value, place)
        assert schema.keys is not None and schema.items is not None
        for key, item in value:
            if key is None:
                raise DataError(f"a map has no null keys: key of map {place}")
            check(schema.keys, key, f"key of map {place}")
            check(schema.items, item, f"value of map {place}")
    elif not isinstance(value, _PLAIN[kind]) or (kind in _FLOATS and isinstance(value, bool)):
        raise _wrong(schema, value, place)


_PLAIN: Final[dict[Type, type | tuple[type, ...]]] = {
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.FLOAT32: (float, int),
    Type.FLOAT64: (float, int),
}
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)


def _wrong(schema: Schema, value: Any, place: str) -> DataError:
    name = "" if schema.name is None else f' "{schema.name}"'
    return DataError(
        f"Invalid Java object for schema{name} with type {schema.type.name}: class {java_class(value)} for {place}"
    )


def unscaled(schema: Schema, value: Decimal) -> int:
    """The number that a decimal is stored as. A value with fewer digits behind the point is given zeros, where Kafka
    refuses it: nothing of it is lost. Raises `DataError` if something would be."""
    scale = scale_of(schema)
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise DataError(f"{value} is no number that a Decimal can have")
    more = exponent + scale
    if len(digits) + max(more, 0) > MOST_DIGITS and any(digits):
        raise DataError(f"a decimal has more than {MOST_DIGITS} digits")
    number = _integer(digits)
    if more >= 0:
        number *= 10**more if number else 1
    else:
        number, rest = divmod(number, 10 ** min(-more, MOST_DIGITS))
        if rest:
            raise DataError(
                "Decimal value has mismatching scale for given Decimal schema. "
                f"Schema has scale {scale}, value has scale {-exponent}."
            )
    return -number if sign else number


def _integer(digits: Sequence[int]) -> int:
    # `int(text)` refuses more than 4,300 digits; a Decimal does not.
    return int(Decimal((0, tuple(digits), 0)))


def decimal_of(number: int, scale: int) -> Decimal:
    """A decimal of this unscaled number."""
    _, digits, _ = Decimal(abs(number)).as_tuple()
    return Decimal((int(number < 0), digits, -scale))


def stored_bytes(number: int) -> bytes:
    """As Java's BigInteger writes itself: big-endian, two's complement, as few bytes as it needs."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def column_of(schema: Schema, values: Iterable[Any]) -> Column:
    """A column of these rows, each held to the schema. Raises `DataError`, which names the row."""
    stored: list[Any] = []
    for row, value in enumerate(values):
        try:
            check(schema, value)
            stored.append(_stored(schema, value))
        except DataError as error:
            raise error.at(row) from None
    return _column(schema, stored)


def column_of_checked(schema: Schema, values: list[Any]) -> Column:
    """The same of rows that were held to the schema where they were made."""
    return _column(schema, [_stored(schema, value) for value in values] if _has_decimals(schema) else values)


def _column(schema: Schema, stored: list[Any]) -> Column:
    try:
        return Column(schema, pa.array(stored, storage_type(schema)))
    except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError) as error:
        raise DataError(f"{schema}: {error}") from None


def _stored(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.logical == DECIMAL:
        return stored_bytes(unscaled(schema, value))
    if schema.type is Type.STRUCT:
        return {field.name: _stored(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return [_stored(schema.items, item) for item in value]
    if schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        return [(_stored(schema.keys, key), _stored(schema.items, item)) for key, item in value]
    if schema.type in _FLOATS:
        return float(value)
    return value


def rows_of(column: Column) -> list[Any]:
    """The rows of a column as values. Raises `DataError` for a decimal without a scale."""
    values: list[Any] = column.array.to_pylist()
    if not _has_decimals(column.schema):
        return values
    return [_read(column.schema, value) for value in values]


def _has_decimals(schema: Schema) -> bool:
    inner = [field.schema for field in schema.fields] + [one for one in (schema.keys, schema.items) if one]
    return schema.logical == DECIMAL or any(map(_has_decimals, inner))


def _read(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.logical == DECIMAL:
        if len(value) > MOST_DIGITS:
            raise DataError(f"a decimal has more than {MOST_DIGITS} digits")
        return decimal_of(int.from_bytes(value, "big", signed=True), scale_of(schema))
    if schema.type is Type.STRUCT:
        return {field.name: _read(field.schema, value[field.name]) for field in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return [_read(schema.items, item) for item in value]
    if schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        return [(_read(schema.keys, key), _read(schema.items, item)) for key, item in value]
    return value


def with_default(column: Column) -> Column:
    """The default wherever there is no value: what Connect calls the value of a field."""
    if column.schema.default is None or not column.array.null_count:
        return column
    one = column_of(column.schema, [column.schema.default])
    last = len(column.array)
    rows = pc.if_else(column.array.is_null(), pa.scalar(last, pa.int64()), pa.array(range(last), pa.int64()))
    return Column(column.schema, pa.concat_arrays([column.array, one.array]).take(rows))


def field_value(parent: Column, place: int) -> Column:
    """A field of a struct with its default where it has no value, but not where there is no struct to have one."""
    child = parent.child(place)
    filled = with_default(child)
    if filled is child or not parent.array.null_count:
        return filled
    rows = pc.if_else(parent.array.is_valid(), pa.array(range(len(child)), pa.int64()), pa.scalar(None, pa.int64()))
    return Column(child.schema, filled.array.take(rows))


def constant(schema: Schema, value: Any, length: int) -> Column:
    """The same value in every row."""
    one = column_of(schema, [value])
    return Column(schema, one.array.take(pa.array([0] * length, pa.int64())))
