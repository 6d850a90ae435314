"""The door to Arrow as everybody else has it: logical types are Arrow's own, and metadata has the rest of a schema.

    field, array = to_arrow("value", column)      # for a sink that writes Parquet, say
    column = from_arrow(field, array)             # from a source that gives Arrow

| schema | Arrow |
| --- | --- |
| Date, `io.debezium.time.Date` | date32 |
| Time, `io.debezium.time.Time`, `.MicroTime`, `.NanoTime` | time32(ms), time64(us), time64(ns) |
| Timestamp | timestamp(ms, UTC) |
| `io.debezium.time.Timestamp`, `.MicroTimestamp`, `.NanoTimestamp` | timestamp(ms), (us), (ns), of no zone |
| Decimal with the parameter `connect.decimal.precision` up to 76 | decimal128 or decimal256 |
| any other Decimal | binary, the unscaled number |
| the rest | as `columns` stores it |

A field is nullable where the schema is optional or has a default. What Arrow cannot say is in the field's metadata:
`connect.optional` (only where `nullable` does not tell), `connect.name`, `connect.version`, `connect.doc`,
`connect.parameters` and `connect.default` (JSON). A field without metadata is what its type says; types that Connect
does not have become the next larger one (uint8 becomes INT16), and if there is none the field is refused by name.
"""

import base64
import json
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.data.columns import Column, storage_type
from ottla.connect.data.rows import check, rows_of, stored_bytes
from ottla.connect.data.schema import (
    DATE,
    DECIMAL,
    PRECISION,
    SCALE,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    scale_of,
)
from ottla.connect.errors import DataError

_DEBEZIUM: Final = "io.debezium.time."
_NAMED: Final[dict[tuple[str, Type], Any]] = {
    (DATE, Type.INT32): pa.date32(),
    (TIME, Type.INT32): pa.time32("ms"),
    (TIMESTAMP, Type.INT64): pa.timestamp("ms", "UTC"),
    (_DEBEZIUM + "Date", Type.INT32): pa.date32(),
    (_DEBEZIUM + "Time", Type.INT32): pa.time32("ms"),
    (_DEBEZIUM + "MicroTime", Type.INT64): pa.time64("us"),
    (_DEBEZIUM + "NanoTime", Type.INT64): pa.time64("ns"),
    (_DEBEZIUM + "Timestamp", Type.INT64): pa.timestamp("ms"),
    (_DEBEZIUM + "MicroTimestamp", Type.INT64): pa.timestamp("us"),
    (_DEBEZIUM + "NanoTimestamp", Type.INT64): pa.timestamp("ns"),
}
_PLAIN: Final[dict[Any, Schema]] = {
    pa.int8(): Schema(Type.INT8),
    pa.int16(): Schema(Type.INT16),
    pa.int32(): Schema(Type.INT32),
    pa.int64(): Schema(Type.INT64),
    pa.uint8(): Schema(Type.INT16),
    pa.uint16(): Schema(Type.INT32),
    pa.uint32(): Schema(Type.INT64),
    pa.float16(): Schema(Type.FLOAT32),
    pa.float32(): Schema(Type.FLOAT32),
    pa.float64(): Schema(Type.FLOAT64),
    pa.bool_(): Schema(Type.BOOLEAN),
    pa.string(): Schema(Type.STRING),
    pa.large_string(): Schema(Type.STRING),
    pa.string_view(): Schema(Type.STRING),
    pa.binary(): Schema(Type.BYTES),
    pa.large_binary(): Schema(Type.BYTES),
    pa.binary_view(): Schema(Type.BYTES),
    pa.null(): Schema(Type.STRING),
    pa.date32(): Schema(Type.INT32, name=DATE, version=1),
    pa.date64(): Schema(Type.INT32, name=DATE, version=1),
    pa.time32("s"): Schema(Type.INT32, name=TIME, version=1),
    pa.time32("ms"): Schema(Type.INT32, name=TIME, version=1),
    pa.time64("us"): Schema(Type.INT64, name=_DEBEZIUM + "MicroTime", version=1),
    pa.time64("ns"): Schema(Type.INT64, name=_DEBEZIUM + "NanoTime", version=1),
}
_MOMENTS: Final[dict[str, Schema]] = {
    "s": Schema(Type.INT64, name=TIMESTAMP, version=1),
    "ms": Schema(Type.INT64, name=TIMESTAMP, version=1),
    "us": Schema(Type.INT64, name=_DEBEZIUM + "MicroTimestamp", version=1),
    "ns": Schema(Type.INT64, name=_DEBEZIUM + "NanoTimestamp", version=1),
}
_MOST_PRECISION: Final = 76


def arrow_field(name: str, schema: Schema) -> Any:
    """The field of Arrow for a schema; `schema_of` reads it back."""
    metadata: dict[str, str] = {}
    if schema.may_be_null and not schema.optional:
        metadata["connect.optional"] = "false"
    if schema.name is not None:
        metadata["connect.name"] = schema.name
    if schema.version is not None:
        metadata["connect.version"] = str(schema.version)
    if schema.doc is not None:
        metadata["connect.doc"] = schema.doc
    if schema.parameters is not None:
        metadata["connect.parameters"] = json.dumps(dict(schema.parameters))
    if schema.default is not None:
        metadata["connect.default"] = json.dumps(_default_out(schema, schema.default))
    return pa.field(name, _arrow_type(schema), nullable=schema.may_be_null, metadata=metadata or None)


def _arrow_type(schema: Schema) -> Any:
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return pa.list_(arrow_field("item", schema.items))
    if schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        key = arrow_field("key", schema.keys).with_nullable(False)
        return pa.map_(key, arrow_field("value", schema.items))
    if schema.type is Type.STRUCT:
        return pa.struct([arrow_field(field.name, field.schema) for field in schema.fields])
    if schema.name is not None and (schema.name, schema.type) in _NAMED:
        return _NAMED[schema.name, schema.type]
    precision = _precision(schema)
    if precision is not None:
        return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale_of(schema))
    return storage_type(schema)


def _precision(schema: Schema) -> int | None:
    """How many digits a decimal has, if it says so and Arrow can have as many."""
    if schema.logical != DECIMAL:
        return None
    text = (schema.parameters or {}).get(PRECISION, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 2 or not 1 <= int(text) <= _MOST_PRECISION:
        return None
    return int(text) if 0 <= scale_of(schema) <= int(text) else None


def schema_of(field: Any) -> Schema:
    """The schema that a field of Arrow stands for. Raises `DataError` for a type that Connect has nothing for."""
    base = _schema_of_type(field.type, field.name)
    said = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    try:
        parameters = json.loads(said["connect.parameters"]) if "connect.parameters" in said else base.parameters
        version = int(said["connect.version"]) if "connect.version" in said else None
        schema = base.but(
            optional=field.nullable and said.get("connect.optional") != "false",
            name=said.get("connect.name", base.name),
            version=version if "connect.name" in said or version is not None else base.version,
            doc=said.get("connect.doc"),
            parameters=parameters,
        )
        if "connect.default" in said:
            default = _default_in(schema, json.loads(said["connect.default"]))
            check(schema, default)
            schema = schema.but(default=default)
    except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation, RecursionError) as error:
        raise DataError(f"field {field.name}: its metadata is no schema of Connect's: {error}") from None
    return schema


def _schema_of_type(kind: Any, name: str) -> Schema:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind):
        return _MOMENTS[kind.unit]
    if pa.types.is_decimal128(kind) or pa.types.is_decimal256(kind):
        parameters = {SCALE: str(kind.scale), PRECISION: str(kind.precision)}
        return Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)
    if pa.types.is_fixed_size_binary(kind):
        return Schema(Type.BYTES)
    if pa.types.is_dictionary(kind):
        return _schema_of_type(kind.value_type, name)
    if pa.types.is_map(kind):
        return Schema(Type.MAP, keys=schema_of(kind.key_field), items=schema_of(kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return Schema(Type.ARRAY, items=schema_of(kind.value_field))
    if pa.types.is_struct(kind):
        return Schema(Type.STRUCT, fields=tuple(Field(field.name, schema_of(field)) for field in kind))
    raise DataError(f"field {name}: Connect has no type for Arrow's {kind}")


def _default_out(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.logical == DECIMAL:
        return str(value)
    if schema.type is Type.BYTES:
        return base64.b64encode(value).decode()
    if schema.type is Type.STRUCT:
        return {field.name: _default_out(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return [_default_out(schema.items, item) for item in value]
    if schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        return [[_default_out(schema.keys, key), _default_out(schema.items, item)] for key, item in value]
    return value


def _default_in(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.logical == DECIMAL:
        return Decimal(value)
    if schema.type is Type.BYTES:
        return base64.b64decode(value, validate=True)
    if schema.type is Type.STRUCT:
        return {field.name: _default_in(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return [_default_in(schema.items, item) for item in value]
    if schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        return [(_default_in(schema.keys, key), _default_in(schema.items, item)) for key, item in value]
    return value


def to_arrow(name: str, column: Column) -> tuple[Any, Any]:
    """A field and its array, for others. Raises `DataError` for a decimal that is longer than its schema says."""
    field = arrow_field(name, column.schema)
    try:
        return field, _outward(column.schema, column.array, field.type).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"field {name}: {error}") from None


def _outward(schema: Schema, array: Any, kind: Any) -> Any:
    """Row by row for decimals, whose bytes Arrow cannot read; everything else is a cast of the whole column."""
    if not _has_arrow_decimals(schema):
        return array
    if schema.type is Type.STRUCT:
        children = [
            _outward(field.schema, array.field(place), kind.field(place).type)
            for place, field in enumerate(schema.fields)
        ]
        fields = [pa.field(field.name, child.type) for field, child in zip(schema.fields, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        child = _outward(schema.items, array.values, kind.value_type)
        return pa.ListArray.from_arrays(_bounds(array), child, mask=_gaps(array))
    if schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        keys = _outward(schema.keys, array.keys, kind.key_type)
        items = _outward(schema.items, array.items, kind.item_type)
        return pa.MapArray.from_arrays(_bounds(array), keys, items, mask=_gaps(array))
    return pa.array(rows_of(Column(schema, array)), kind)


def _bounds(array: Any) -> Any:
    """Where each list begins, counted from the beginning of all values, whatever slice of them this is."""
    bounds = pa.Array.from_buffers(pa.int32(), len(array) + 1, [None, array.buffers()[1]], offset=array.offset)
    return pc.add(bounds, 0) if array.offset else bounds  # Arrow takes no slice here


def _gaps(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _has_arrow_decimals(schema: Schema) -> bool:
    inner = [field.schema for field in schema.fields] + [one for one in (schema.keys, schema.items) if one]
    return _precision(schema) is not None or any(map(_has_arrow_decimals, inner))


def from_arrow(field: Any, array: Any) -> Column:
    """A column from a field and an array of others. Raises `DataError`, for a null where there may be none too."""
    schema = schema_of(field)
    try:
        stored = _inward(schema, array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
        column = Column(schema, stored.cast(storage_type(schema)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"field {field.name}: {error}") from None
    _check_nulls(schema, column.array, f'field: "{field.name}"')
    return column


def _inward(schema: Schema, array: Any) -> Any:
    """The same array in storage that `cast` can bring to ours."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _inward(schema, array.dictionary_decode())
    if pa.types.is_decimal(kind):
        return pa.array([None if one is None else _unscaled(one) for one in array.to_pylist()], pa.binary())
    if pa.types.is_date64(kind):
        return array.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_timestamp(kind):
        return (array.cast(pa.timestamp("ms", kind.tz)) if kind.unit == "s" else array).cast(pa.int64())
    if pa.types.is_time(kind):
        ours = pa.int32() if schema.type is Type.INT32 else pa.int64()
        return (array.cast(pa.time32("ms")) if kind.unit == "s" else array).cast(ours)
    if pa.types.is_map(kind):
        assert schema.keys is not None and schema.items is not None
        keys, items = _inward(schema.keys, array.keys), _inward(schema.items, array.items)
        return pa.MapArray.from_arrays(_bounds(array), keys, items, mask=_gaps(array))
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _inward(schema, array.cast(pa.list_(kind.value_field)))
    if pa.types.is_list(kind):
        assert schema.items is not None
        return pa.ListArray.from_arrays(_bounds(array), _inward(schema.items, array.values), mask=_gaps(array))
    if pa.types.is_struct(kind) and len(schema.fields):
        children = [_inward(field.schema, array.field(place)) for place, field in enumerate(schema.fields)]
        fields = [pa.field(field.name, child.type) for field, child in zip(schema.fields, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    return array


def _unscaled(value: Decimal) -> bytes:
    sign, digits, _ = value.as_tuple()
    number = int(Decimal((0, digits, 0)))
    return stored_bytes(-number if sign else number)


def _check_nulls(schema: Schema, array: Any, place: str) -> None:
    """Arrow does not hold arrays to `nullable`; Connect does. A missing struct has no fields that could be missing."""
    if array.null_count and not schema.may_be_null:
        row = array.is_null().index(True).as_py()
        raise DataError(f"Invalid value: null used for required {place}, schema type: {schema.type.name}", row)
    if schema.type is Type.STRUCT:
        present = array.filter(array.is_valid()) if array.null_count else array
        for at, field in enumerate(schema.fields):
            _check_nulls(field.schema, present.field(at), f'field: "{field.name}"')
    elif schema.type is Type.ARRAY:
        assert schema.items is not None
        _check_nulls(schema.items, array.flatten(), f"element of array {place}")
    elif schema.type is Type.MAP:
        assert schema.items is not None
        present = array.filter(array.is_valid()) if array.null_count else array
        _check_nulls(schema.items, present.items, f"value of map {place}")
