"""Cast: fields, or the whole, to another type, as Java converts.

Whole columns where Arrow converts as Java does: between whole numbers, to floating point, booleans, and texts that are
plain numbers. The rest row by row: fractions to whole numbers, decimals, dates, and texts that may not be numbers.
"""

import base64
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, REQUIRED, List, Setting
from ottla.connect.data.columns import Column, Schemaless, storage_type, struct_column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import Float32, Int8, Int16, Int32, Moment, column_of, java_class, rows_of, type_of
from ottla.connect.data.schema import DATE, DECIMAL, Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.java_dates import DAY_MS, DateFormat
from ottla.connect.java_numbers import (
    as_float32,
    integer_of,
    narrowed,
    parse_double,
    parse_float,
    parse_integer,
    wrapped,
)
from ottla.connect.java_text import java_text
from ottla.connect.options import InvalidOption, invalid
from ottla.connect.transforms.fields import DEFAULTS
from ottla.connect.transforms.transform import Place, apart_from_nulls, at, fields_of, maps_of, put, struct_of

_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)
_FROM: Final = (*_BITS, *_FLOATS, Type.BOOLEAN, Type.STRING, Type.BYTES)
_TO: Final = {type.name: type for type in _FROM if type is not Type.BYTES}
_CLASSES: Final[dict[Type, Any]] = {Type.INT8: Int8, Type.INT16: Int16, Type.INT32: Int32, Type.FLOAT32: Float32}
_PLAIN_NUMBER: Final = r"^-?[0-9]{1,18}$"
_TIME_TEXT: Final = DateFormat("HH:mm:ss.SSS'Z'")
_DATE_TEXT: Final = DateFormat("yyyy-MM-dd")
_TIMESTAMP_TEXT: Final = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


class Cast:
    """Fields, or the whole, as another type."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        List(
            "spec",
            REQUIRED,
            ANY,
            HIGH,
            "Fields and their types: `id:int64,name:string`; or one type, for the whole. The types are int8, int16, "
            "int32, int64, float32, float64, boolean and string.",
            acted_on=True,
        ),
        DEFAULTS,
    )
    _PURPOSE: Final = "cast types"

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._defaults = options.flag("replace.null.with.default")
        self._whole: Type | None = None
        self._casts: dict[str, Type] = {}
        spec = options.list("spec")
        if not spec:
            raise InvalidOption("Must specify at least one field to cast.")
        for mapping in spec:
            parts = mapping.split(":")
            while len(parts) > 1 and not parts[-1]:  # as Java splits
                parts.pop()
            if len(parts) > 2:
                raise invalid("spec", spec, f"Invalid rename mapping: {mapping}")
            if len(parts) == 1:
                self._whole = _type(parts[0])
            else:
                self._casts[parts[0].strip()] = _type(parts[1])
        if self._whole is not None and len(spec) > 1:
            raise InvalidOption(
                "Cast transformations that specify a type to cast the entire value to may only specify a single cast "
                "in their spec"
            )

    def apply(self, records: Records) -> list[Records]:
        return apart_from_nulls(records, self._place, self._applied)

    def _applied(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            return [put(records, self._place, self._without_schema(column))]
        if self._whole is not None:
            return [put(records, self._place, cast(column, _whole_schema(column.schema, self._whole)))]
        if column.schema.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        schema = self._struct_schema(column.schema)
        struct_of(column, self._PURPOSE)
        children = [
            cast(child, field.schema) if field.name in self._casts else child
            for child, field in zip(fields_of(column, self._defaults), schema.fields, strict=True)
        ]
        return [put(records, self._place, struct_column(schema, children, len(records)))]

    def _struct_schema(self, schema: Schema) -> Schema:
        if schema.default is not None:
            raise DataError("Cast transformation does not support casting from STRUCT; " + _SUPPORTED)
        fields = [
            (field.name, _field_schema(field.schema, self._casts[field.name]))
            if field.name in self._casts
            else (field.name, field.schema)
            for field in schema.fields
        ]
        return struct(
            fields,
            name=schema.name,
            version=schema.version,
            optional=schema.optional,
            doc=schema.doc,
            parameters=schema.parameters,
        )

    def _without_schema(self, column: Schemaless) -> Schemaless:
        made: list[Any] = []
        rows = list(column.values) if self._whole is not None else maps_of(column, self._PURPOSE)
        for row, value in enumerate(rows):
            try:
                if self._whole is not None:
                    made.append(_cast_object(value, self._whole))
                else:
                    casts = {name: _cast_object(value.get(name), kind) for name, kind in self._casts.items()}
                    made.append({**value, **casts})
            except DataError as error:
                raise error.at(row) from None
        return Schemaless(tuple(made))


_SUPPORTED: Final = "supported types are [INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES]"


def _type(text: str) -> Type:
    name = text.strip().upper()
    if name in _TO:
        return _TO[name]
    if name in Type.__members__:
        supported = ", ".join(_TO)
        raise InvalidOption(
            f"Cast transformation does not support casting to {name}; supported types are [{supported}]"
        )
    raise InvalidOption(f"Invalid type found in casting spec: {text.strip()}")


def _check_input(kind: Type) -> None:
    if kind not in _FROM:
        raise DataError(f"Cast transformation does not support casting from {kind.name}; {_SUPPORTED}")


def _field_schema(schema: Schema, kind: Type) -> Schema:
    """Names, documentation and parameters of a field's schema go: it is another type now."""
    default = None if schema.default is None else _cast_value(schema, schema.default, kind)
    return Schema(kind, schema.optional, default)


def _whole_schema(schema: Schema, kind: Type) -> Schema:
    default = None if schema.default is None else _cast_value(schema, schema.default, kind)
    words = {"name": schema.name, "version": schema.version, "doc": schema.doc, "parameters": schema.parameters}
    return Schema(kind, schema.optional, default, **words)  # type: ignore[arg-type]  # as the fields are named


def cast(column: Column, schema: Schema) -> Column:
    """The column as one of another type. Raises `DataError`, with the row."""
    if column.array.null_count == len(column):
        return Column(schema, pa.nulls(len(column), storage_type(schema)))
    _check_input(column.schema.type)
    array = _cast_array(column, schema.type)
    if array is not None:
        return Column(schema, array)
    made: list[Any] = []
    for row, value in enumerate(rows_of(column)):
        try:
            made.append(None if value is None else _cast_value(column.schema, value, schema.type))
        except DataError as error:
            raise error.at(row) from None
    # A name that the schema keeps (Decimal) says nothing here: the value is of the type alone.
    return Column(schema, column_of(Schema(schema.type, True), made).array)


def _cast_array(column: Column, kind: Type) -> Any:
    """The whole column at once, or None where Arrow does it otherwise than Java."""
    source, array = column.schema, column.array
    if source.type is Type.BYTES or source.logical == DECIMAL:
        return None
    if source.type is kind and source.logical is None:
        return array
    if kind is Type.STRING:
        return array.cast(pa.string()) if source.type in _BITS and source.logical is None else None
    target = storage_type(Schema(kind))
    if source.type is Type.STRING:
        if kind is Type.BOOLEAN:
            return pc.equal(pc.ascii_lower(array), "true")
        plain = pc.all(pc.match_substring_regex(array, _PLAIN_NUMBER)).as_py()
        if not plain or kind not in _BITS:
            return None
        wide = array.cast(pa.int64())
        try:
            return wide.cast(target)
        except pa.ArrowInvalid:  # out of range: which row is told below
            return None
    if source.type is Type.BOOLEAN:
        return array.cast(pa.int8()).cast(target)
    if source.type in _BITS:
        if kind is Type.BOOLEAN:
            return pc.not_equal(array, pa.scalar(0, array.type))
        return array.cast(target, safe=False)
    if kind in _FLOATS:
        return array.cast(target, safe=False)
    return None


def _cast_object(value: Any, kind: Type) -> Any:
    """A value without a schema, and the class that Java would make of it."""
    if value is None:
        return None
    found = type_of(value)
    if found is None:
        raise DataError(
            f"Cast transformation was passed a value of type class {java_class(value)} which is not supported by "
            "Connect's data API"
        )
    _check_input(found)
    made = _cast_value(Schema(found), value, kind)
    return _CLASSES[kind](made) if kind in _CLASSES else made


def _cast_value(schema: Schema, value: Any, kind: Type) -> Any:
    _check_input(schema.type)
    if kind is Type.STRING:
        return _text(schema, value)
    if isinstance(value, bytes):
        raise DataError("Unexpected type in Cast transformation: class [B")
    if kind is Type.BOOLEAN:
        if isinstance(value, str):
            return value.lower() == "true"
        return value if isinstance(value, bool) else _integer(value, 64) != 0
    if isinstance(value, str):
        try:
            if kind in _BITS:
                return parse_integer(value, _BITS[kind])
            return parse_float(value) if kind is Type.FLOAT32 else parse_double(value)
        except ValueError:
            raise DataError(f"Value ({value}) was out of range for requested data type") from None
    if kind in _BITS:
        return _integer(value, _BITS[kind])
    if kind is Type.FLOAT64 or isinstance(value, bool):
        return float(value)
    return as_float32(str(value)) if isinstance(value, Decimal | int) else narrowed(value)


def _integer(value: Any, bits: int) -> int:
    if isinstance(value, float):
        return integer_of(value, bits)
    return wrapped(int(value), bits)


def _text(schema: Schema, value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if schema.logical is None or schema.logical == DECIMAL:
        return java_text(schema if schema.logical == DECIMAL else Schema(schema.type), value)
    return moment_literal(Moment(value * DAY_MS if schema.logical == DATE else value))


def moment_literal(ms: int) -> str:
    """As Connect writes a date, time or timestamp where only the moment is known: what is before 2 January 1970 is
    taken for a time, and midnight for a date."""
    if ms < DAY_MS:
        return _TIME_TEXT.text(ms)
    return (_DATE_TEXT if ms % DAY_MS == 0 else _TIMESTAMP_TEXT).text(ms)
