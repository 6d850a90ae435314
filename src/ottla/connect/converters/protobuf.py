"""Confluent's ProtobufConverter: Protobuf with the id of its schema in a registry. Needs `ottla[protobuf]`."""

from collections.abc import Callable
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.parse import Values
from ottla.config.setting import ANY, MEDIUM, Flag, Setting
from ottla.connect.converters.converter import Part
from ottla.connect.converters.protobuf_schemas import (
    ENUM,
    TYPE,
    WRAPPERS,
    FromProtobuf,
    Mapping,
    ToProtobuf,
    field_params,
    has_optional_keyword,
    is_entry,
    is_union,
    plain_fields,
    union_name,
    unions_of,
    wrapper_of,
)
from ottla.connect.converters.registered import REGISTRY_OPTIONS, Registered, framed
from ottla.connect.data.columns import AnyColumn, Column, Schemaless, storage_type
from ottla.connect.data.rows import MOST_DIGITS, column_of, stored_bytes
from ottla.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type, scale_of
from ottla.connect.errors import DataError
from ottla.connect.java_dates import calendar_of, days_of
from ottla.connect.java_numbers import wrapped
from ottla.connect.options import InvalidOption
from ottla.schemas.faults import CannotDecode
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.registry_port import BlockingRegistry
from ottla.schemas.schema import InvalidSchema, parse
from ottla.schemas.serializing.framing import prefix, read_indexes
from ottla.schemas.serializing.serializers import Kept

OPTIONS: Final[tuple[Setting, ...]] = (
    *REGISTRY_OPTIONS,
    Flag("enhanced.protobuf.schema.support", False, ANY, MEDIUM, "Whether names keep their packages.", acted_on=True),
    Flag("scrub.invalid.names", False, ANY, MEDIUM, "Whether names are made such as Protobuf can have.", acted_on=True),
    Flag(
        "optional.for.nullables", False, ANY, MEDIUM, "Whether optional fields have the word `optional`.", acted_on=True
    ),
    Flag("optional.for.proto2", True, ANY, MEDIUM, "Whether optional fields of proto2 may be null.", acted_on=True),
    Flag("wrapper.for.nullables", False, ANY, MEDIUM, "Whether optional fields are google's wrappers.", acted_on=True),
    Flag(
        "wrapper.for.raw.primitives",
        True,
        ANY,
        MEDIUM,
        "Whether values that are no structs are read as such.",
        acted_on=True,
    ),
)
_WRAPPERS_TEXT: Final = 'syntax = "proto3";\npackage google.protobuf;\n' + "\n".join(
    f"message {name} {{ {type} value = 1; }}"
    for name, type in (
        ("DoubleValue", "double"),
        ("FloatValue", "float"),
        ("Int64Value", "int64"),
        ("UInt64Value", "uint64"),
        ("Int32Value", "int32"),
        ("UInt32Value", "uint32"),
        ("BoolValue", "bool"),
        ("StringValue", "string"),
        ("BytesValue", "bytes"),
    )
)
Fill: TypeAlias = Callable[[Any, Any], None]
"""Puts a value, as columns store it, into a message."""
Convert: TypeAlias = Callable[[Any], Any]
_UNSIGNED: Final = {"uint32": 32, "fixed32": 32, "uint64": 64, "fixed64": 64}


class ProtobufConverter:
    def __init__(self, options: Values, registry: BlockingRegistry, is_key: bool) -> None:
        if not _has_protobuf():
            raise InvalidOption("ProtobufConverter needs the package protobuf: pip install 'ottla[protobuf]'")
        self._mapping = Mapping(
            enhanced=options.flag("enhanced.protobuf.schema.support"),
            scrub=options.flag("scrub.invalid.names"),
            optionals=options.flag("optional.for.nullables"),
            proto2_optionals=options.flag("optional.for.proto2"),
            wrappers=options.flag("wrapper.for.nullables"),
            raw_wrappers=options.flag("wrapper.for.raw.primitives"),
        )
        self._registered = Registered("PROTOBUF", options, registry, is_key)
        most = options.integer("schemas.cache.config")
        self._written: Kept[tuple[ProtobufSchema, str, Fill]] = Kept(most)
        self._readers: Kept[tuple[Schema, Any, Convert]] = Kept(most)

    # Writing.

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Schemaless):
            row = column.is_null().index(False).as_py()
            if row >= 0:
                raise DataError("Protobuf needs a schema, and the record has none", row)
            return pa.nulls(len(column), pa.binary())
        known = self._written.get(column.schema)
        local, name, fill = known or self._written.put(column.schema, self._mapped(column.schema))
        id, parsed = self._registered.for_writing(topic, local, name)
        assert isinstance(parsed, ProtobufSchema)
        try:
            make, start = parsed.message_class(name), prefix(id, parsed.message_indexes(name))
        except InvalidSchema as error:
            raise DataError(f"the schema of topic {topic} has no message {name}: {error}") from None
        made: list[bytes | None] = []
        for row, value in enumerate(column.array.to_pylist()):
            if value is None:
                made.append(None)
                continue
            message = make()
            try:
                fill(message, value)
                made.append(start + message.SerializeToString(deterministic=True))
            except DataError as error:
                raise error.at(row) from None
            except (TypeError, ValueError, AttributeError) as error:
                raise DataError(f"Failed to serialize Protobuf data from topic {topic} : {error}", row) from None
        return pa.array(made, pa.binary())

    def _mapped(self, schema: Schema) -> tuple[ProtobufSchema, str, Fill]:
        if schema.type is not Type.STRUCT:
            wrapper = wrapper_of(schema)
            if wrapper is None or schema.logical is not None:
                raise DataError(f"Unsupported root schema of type {schema.type.name}")
            text, name = _WRAPPERS_TEXT, wrapper
            fill: Fill = lambda message, value: setattr(message, "value", value)  # noqa: E731
        else:
            text, name = ToProtobuf(self._mapping).text(schema)
            fill = self._fill_struct(schema)
        try:
            parsed = parse("PROTOBUF", text, {})
        except InvalidSchema as error:
            hint = "" if self._mapping.scrub else "; scrub.invalid.names=true makes names such as Protobuf can have"
            raise DataError(f"{schema} is no schema that Protobuf can have: {error}{hint}") from None
        assert isinstance(parsed, ProtobufSchema)
        return parsed, name, fill

    def _fill_struct(self, schema: Schema) -> Fill:
        fills: list[tuple[str, Any, Fill]] = []
        for field in schema.fields:
            default = None
            if field.schema.default is not None:
                default = column_of(field.schema, [field.schema.default]).array.to_pylist()[0]
            fills.append((field.name, default, self._fill(field.schema, self._mapping.name(field.name))))

        def fill(message: Any, value: Any) -> None:
            for name, default, put in fills:
                found = value[name]
                if found is None:
                    found = default
                if found is not None:
                    put(message, found)

        return fill

    def _fill(self, schema: Schema, name: str) -> Fill:
        """Puts a value that is there into the field of this name."""
        if is_union(schema):
            choices = [
                (field.name, self._fill(field.schema, self._mapping.name(field.name))) for field in schema.fields
            ]

            def fill_union(message: Any, value: Any) -> None:
                for field, put in choices:
                    if value[field] is not None:
                        put(message, value[field])
                        return
                raise DataError("Cannot find non-null field")

            return fill_union
        if schema.type is Type.ARRAY:
            assert schema.items is not None
            return self._fill_array(schema.items, name)
        if schema.type is Type.MAP:
            assert schema.keys is not None and schema.items is not None
            key, item = self._fill(schema.keys, "key"), self._fill(schema.items, "value")

            def fill_map(message: Any, value: Any) -> None:
                for one, other in value:
                    entry = getattr(message, name).add()
                    key(entry, one)
                    if other is not None:
                        item(entry, other)

            return fill_map
        within = self._fill_message(schema)
        if within is not None:
            put_within = within

            def fill_message(message: Any, value: Any) -> None:
                inner = getattr(message, name)
                inner.SetInParent()
                put_within(inner, value)

            return fill_message
        convert = _scalar(schema)
        return lambda message, value: setattr(message, name, convert(value))

    def _fill_array(self, items: Schema, name: str) -> Fill:
        within = self._fill_message(items)
        convert = _scalar(items)

        def fill(message: Any, value: Any) -> None:
            field = getattr(message, name)
            for one in value:
                if one is None:
                    raise DataError(f"field {name}: Protobuf's lists have no nulls")
                if within is not None:
                    within(field.add(), one)
                else:
                    field.append(convert(one))

        return fill

    def _fill_message(self, schema: Schema) -> Fill | None:
        """For what is a message of its own: structs, logical types, wrappers."""
        if schema.logical is not None:
            scale = scale_of(schema) if schema.logical == DECIMAL else 0
            return lambda message, value: _LOGICAL_FILLS[schema.logical or ""](message, value, scale)
        if schema.type is Type.STRUCT:
            return self._fill_struct(schema)
        is_enum = ENUM in (schema.parameters or {})
        if self._mapping.wrappers and schema.optional and not is_enum and schema.type not in (Type.ARRAY, Type.MAP):
            convert = _scalar(schema)
            return lambda message, value: setattr(message, "value", convert(value))
        return None

    # Reading.

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        parts: dict[Schema | None, tuple[list[int], list[Any]]] = {}
        for row, one in enumerate(content.to_pylist()):
            schema: Schema | None = None
            value: Any = None
            try:
                if one is not None:
                    indexes, start = read_indexes(one, 5) if len(one) > 5 else ((0,), 5)
                    schema, make, convert = self._reader(topic, framed(one), indexes)
                    value = convert(make.FromString(one[start:]))
            except DataError as error:
                raise error.at(row) from None
            except (CannotDecode, ValueError, OverflowError) as error:
                raise DataError(f"Failed to deserialize data for topic {topic} to Protobuf: {error}", row) from None
            except Exception as error:
                if type(error).__name__ != "DecodeError":  # protobuf's own, which not everybody has
                    raise
                raise DataError(f"Failed to deserialize data for topic {topic} to Protobuf: {error}", row) from None
            rows, values = parts.setdefault(schema, ([], []))
            rows.append(row)
            values.append(value)
        return [
            Part(
                pa.array(rows, pa.int64()),
                Schemaless(tuple(values)) if schema is None else Column(schema, pa.array(values, storage_type(schema))),
            )
            for schema, (rows, values) in parts.items()
        ]

    def _reader(self, topic: str, id: int, indexes: tuple[int, ...]) -> tuple[Schema, Any, Convert]:
        known = self._readers.get((topic, id, indexes))
        if known is not None:
            return known
        parsed, version = self._registered.for_reading(topic, id)
        assert isinstance(parsed, ProtobufSchema)
        try:
            make = parsed.message_class(parsed.message_name(indexes))
        except InvalidSchema as error:
            raise DataError(f"schema {id}: {error}") from None
        schema = FromProtobuf(self._mapping, field_params(parsed)).schema(make.DESCRIPTOR, version)
        if schema.type is Type.STRUCT:
            convert = self._convert_message(schema, make.DESCRIPTOR)
        else:
            read = self._convert(schema, make.DESCRIPTOR.fields_by_name["value"])
            convert = lambda message: read(message.value)  # noqa: E731
        return self._readers.put((topic, id, indexes), (schema, make, convert))

    def _convert_message(self, schema: Schema, descriptor: Any) -> Convert:
        unions: list[tuple[str, str, dict[str, Convert], dict[str, None]]] = []
        for oneof in unions_of(descriptor):
            union = schema.field(union_name(oneof))
            assert union is not None
            converts = {one.name: self._convert_field(union.schema, one) for one in oneof.fields}
            unions.append((union.name, oneof.name, converts, dict.fromkeys(converts)))
        fields: list[tuple[str, bool, Convert]] = []
        for one in plain_fields(descriptor):
            is_optional = has_optional_keyword(one) and (
                self._mapping.proto2_optionals or one.containing_oneof is not None
            )
            always = (one.message_type is None or one.is_repeated) and not is_optional
            fields.append((one.name, always, self._convert_field(schema, one)))

        def convert(message: Any) -> Any:
            made: dict[str, Any] = {}
            for union_field, oneof_name, converts, empty in unions:
                chosen = message.WhichOneof(oneof_name)
                made[union_field] = (
                    None if chosen is None else empty | {chosen: converts[chosen](getattr(message, chosen))}
                )
            for name, always, inner in fields:
                made[name] = inner(getattr(message, name)) if always or message.HasField(name) else None
            return made

        return convert

    def _convert_field(self, schema: Schema, field: Any) -> Convert:
        found = schema.field(field.name)
        assert found is not None
        if not field.is_repeated:
            return self._convert(found.schema, field)
        if found.schema.type is Type.MAP:
            assert found.schema.keys is not None and found.schema.items is not None and is_entry(field)
            entry = field.message_type.fields_by_name
            key, item = (
                self._convert(found.schema.keys, entry["key"]),
                self._convert(found.schema.items, entry["value"]),
            )
            if field.message_type.GetOptions().map_entry:
                return lambda value: [(key(one), item(value[one])) for one in value]
            is_message = entry["value"].message_type is not None
            return lambda value: [
                (key(one.key), item(one.value) if not is_message or one.HasField("value") else None) for one in value
            ]
        assert found.schema.items is not None
        item = self._convert(found.schema.items, field)
        return lambda value: [item(one) for one in value]

    def _convert(self, schema: Schema, field: Any) -> Convert:
        if schema.logical == DECIMAL:
            scale = scale_of(schema)
            return lambda message: _read_decimal(message, scale)
        if schema.logical is not None:
            return _LOGICAL_READS[schema.logical]
        if field.message_type is not None:
            if schema.type is Type.STRUCT:
                return self._convert_message(schema, field.message_type)
            assert field.message_type.full_name in WRAPPERS
            inner = self._convert(schema, field.message_type.fields_by_name["value"])
            return lambda message: inner(message.value)
        if field.enum_type is not None:
            names = {value.number: value.name for value in field.enum_type.values}
            enum = field.enum_type.name
            return lambda number: names.get(number, f"UNKNOWN_ENUM_VALUE_{enum}_{number}")
        if schema.type in (Type.INT8, Type.INT16, Type.INT64):
            bits = int(schema.type.value[3:])
            return lambda number: wrapped(number, bits)
        return lambda value: value


def _has_protobuf() -> bool:
    try:
        return find_spec("google.protobuf") is not None
    except ImportError:
        return False


def _scalar(schema: Schema) -> Convert:
    parameters = schema.parameters or {}
    if schema.type is Type.STRING and ENUM in parameters:
        numbers = {key[len(ENUM) + 1 :]: int(tag) for key, tag in parameters.items() if key.startswith(f"{ENUM}.")}

        def number_of(symbol: Any) -> int:
            if symbol not in numbers:
                raise DataError(f"{symbol} is none of the symbols of {parameters[ENUM]}")
            return numbers[symbol]

        return number_of
    bits = _UNSIGNED.get(parameters.get(TYPE, "")) if schema.type is Type.INT64 else None
    if bits is not None:
        mask = (1 << bits) - 1
        return lambda value: value & mask
    return lambda value: value


def _fill_decimal(message: Any, value: bytes, scale: int) -> None:
    number = int.from_bytes(value, "big", signed=True)
    message.value = stored_bytes(number)
    message.precision = len(Decimal(abs(number)).as_tuple().digits)
    message.scale = scale


def _read_decimal(message: Any, scale: int) -> bytes:
    """A decimal says its own scale. The schema's counts: zeros are added, and nothing is lost."""
    more = scale - message.scale
    if more == 0:
        return bytes(message.value)
    number = int.from_bytes(message.value, "big", signed=True)
    if abs(more) > MOST_DIGITS:
        raise DataError(f"a decimal has more than {MOST_DIGITS} digits")
    if more > 0:
        return stored_bytes(number * 10**more)
    number, rest = divmod(number, 10**-more)
    if rest:
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {scale}, value has scale {message.scale}."
        )
    return stored_bytes(number)


def _fill_date(message: Any, value: int, scale: int) -> None:
    message.year, message.month, message.day = calendar_of(value)


def _fill_time(message: Any, value: int, scale: int) -> None:
    message.hours, rest = divmod(value, 3_600_000)
    message.minutes, rest = divmod(rest, 60_000)
    message.seconds, rest = divmod(rest, 1_000)
    message.nanos = rest * 1_000_000


def _fill_timestamp(message: Any, value: int, scale: int) -> None:
    message.seconds, rest = divmod(value, 1_000)
    message.nanos = rest * 1_000_000


_LOGICAL_FILLS: Final[dict[str, Callable[[Any, Any, int], None]]] = {
    DECIMAL: _fill_decimal,
    DATE: _fill_date,
    TIME: _fill_time,
    TIMESTAMP: _fill_timestamp,
}
_LOGICAL_READS: Final[dict[str, Convert]] = {
    DATE: lambda message: days_of(message.year, message.month - 1, message.day),
    TIME: lambda message: (
        ((message.hours * 60 + message.minutes) * 60 + message.seconds) * 1_000 + message.nanos // 1_000_000
    ),
    TIMESTAMP: lambda message: message.seconds * 1_000 + message.nanos // 1_000_000,
}
