"""Connect's schemas as Protobuf's, and back, as Confluent's ProtobufData maps them.

| Connect | Protobuf |
| --- | --- |
| a struct | a message; one within another is nested; without a name `ConnectDefault1` … |
| INT8, INT16 | int32 with `connect.type` in its `confluent.field_meta` |
| Decimal, Timestamp | confluent.type.Decimal, google.protobuf.Timestamp |
| Date, Time | google.type.Date, google.type.TimeOfDay |
| an array, a map | `repeated`; `repeated` messages of a `key` and a `value` whose names end with `Entry` |
| optional | nothing; the word with `optional.for.nullables`; a wrapper of google's with `wrapper.for.nullables` |
| a value that is no struct | a message of google's wrappers, with `wrapper.for.raw.primitives` |
| a oneof | a struct, of whose fields one is set |
| an enum | STRING with parameters |
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

from ottla.connect.data.schema import DATE, DECIMAL, PRECISION, SCALE, TIME, TIMESTAMP, Field, Schema, Type
from ottla.connect.errors import DataError
from ottla.schemas.protobuf.elements import Option
from ottla.schemas.protobuf.schema import ProtobufSchema, read_file
from ottla.schemas.schema import DEFAULT_LIMITS

TYPE: Final = "io.confluent.connect.protobuf.Type"
TAG: Final = "io.confluent.connect.protobuf.Tag"
ENUM: Final = "io.confluent.connect.protobuf.Enum"
UNION: Final = "io.confluent.connect.protobuf.Union."
_LOGICAL: Final = {
    DECIMAL: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE: ("google.type.Date", "google/type/date.proto"),
    TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_SCALARS: Final = {
    Type.INT8: ("int32", "Int32Value"),
    Type.INT16: ("int32", "Int32Value"),
    Type.INT32: ("int32", "Int32Value"),
    Type.INT64: ("int64", "Int64Value"),
    Type.FLOAT32: ("float", "FloatValue"),
    Type.FLOAT64: ("double", "DoubleValue"),
    Type.BOOLEAN: ("bool", "BoolValue"),
    Type.STRING: ("string", "StringValue"),
    Type.BYTES: ("bytes", "BytesValue"),
}
_UNSIGNED: Final = {
    "uint32": "UInt32Value",
    "fixed32": "UInt32Value",
    "uint64": "UInt64Value",
    "fixed64": "UInt64Value",
}
WRAPPERS: Final = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}
_VALID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Mapping:
    enhanced: bool = False
    scrub: bool = False
    optionals: bool = False
    proto2_optionals: bool = True
    wrappers: bool = False
    raw_wrappers: bool = True

    def name(self, text: str) -> str:
        if not self.scrub or not text or _VALID.fullmatch(text):
            return text
        encoded = quote_plus(text, safe="*-.")
        return _INVALID.sub("_", f"x{encoded}" if encoded[0].isdigit() or encoded[0] == "_" else encoded)

    def full_name(self, text: str) -> tuple[str | None, str]:
        parts = text.split(".")
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        parts = [self.name(part) for part in parts]
        return (".".join(parts[:-1]) if len(parts) > 1 else None), parts[-1]


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION)


class ToProtobuf:
    """One schema of structs: its text, the name of its message, and the message that stands for each struct and map."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._unnamed = 0
        self._imports: dict[str, None] = {}

    def text(self, schema: Schema) -> tuple[str, str]:
        """The text, and the full name of the message. Raises `DataError`."""
        space, name = self._mapping.full_name(self._named(schema.name))
        lines = list(self._message(schema, name))
        head = ['syntax = "proto3";', *([f"package {space};"] if space else [])]
        head += [f'import "{one}";' for one in self._imports]
        return "\n".join([*head, *lines]), f"{space}.{name}" if space else name

    def _named(self, name: str | None) -> str:
        if name:
            return name
        self._unnamed += 1
        return f"ConnectDefault{self._unnamed}"

    def _last(self, name: str | None) -> str:
        return self._mapping.name(self._named(name).rpartition(".")[2])

    def _message(self, schema: Schema, name: str) -> Iterator[str]:
        fields: list[str] = []
        nested: dict[str, list[str]] = {}
        index = 1
        for field in schema.fields:
            said = (field.schema.parameters or {}).get(TAG)
            if said is None:
                tag, index = index, index + 1
            else:
                tag = int(said)
            fields += self._field(field.schema, self._mapping.name(field.name), tag, nested)
        yield f"message {name} {{"
        yield from fields
        for lines in nested.values():
            yield from lines
        yield "}"

    def _field(self, schema: Schema, name: str, tag: int, nested: dict[str, list[str]]) -> list[str]:
        if is_union(schema):
            assert schema.name is not None
            lines: list[str] = []
            union = self._last(schema.name[len(UNION) :])
            for field in schema.fields:
                number = int((field.schema.parameters or {}).get(TAG, "0"))
                lines += self._field(field.schema, self._mapping.name(field.name), number, nested)
            return [f"oneof {union} {{", *lines, "}"]
        label = ""
        inner = schema
        if schema.type is Type.ARRAY:
            assert schema.items is not None
            label, inner = "repeated ", schema.items
        elif schema.type is Type.MAP:
            label = "repeated "
        elif self._mapping.optionals and schema.optional:
            label = "optional "
        type, options = self._type(inner, name, nested)
        said = ""
        if options:
            pairs = ", ".join(
                f"{{key: {json.dumps(key)}, value: {json.dumps(value)}}}" for key, value in options.items()
            )
            said = f" [(confluent.field_meta) = {{params: [{pairs}]}}]"
            self._imports["confluent/meta.proto"] = None
        return [f"{label}{type} {name} = {tag}{said};"]

    def _type(self, schema: Schema, field: str, nested: dict[str, list[str]]) -> tuple[str, dict[str, str]]:
        parameters = schema.parameters or {}
        if schema.logical is not None:
            type, file = _LOGICAL[schema.logical]
            self._imports[file] = None
            options: dict[str, str] = {}
            if schema.logical == DECIMAL:
                options = {
                    new: parameters[old]
                    for old, new in ((PRECISION, "precision"), (SCALE, "scale"))
                    if old in parameters
                }
            return type, options
        if schema.type is Type.ARRAY:
            raise DataError("Array cannot be nested")
        if schema.type is Type.MAP:
            name = _entry(self._last(schema.name))
            assert schema.keys is not None and schema.items is not None
            within: dict[str, list[str]] = {}
            lines = [*self._field(schema.keys, "key", 1, within), *self._field(schema.items, "value", 2, within)]
            nested[name] = [f"message {name} {{", *lines, *(line for one in within.values() for line in one), "}"]
            return name, {}
        if schema.type is Type.STRUCT:
            name = self._last(schema.name)
            name = f"{name}Message" if name == field else name
            if name not in nested:
                nested[name] = []
                nested[name] = list(self._message(schema, name))
            return name, {}
        if schema.type is Type.STRING and ENUM in parameters:
            name = self._last(schema.name)
            if name not in nested:
                values = [
                    f"{key[len(ENUM) + 1 :]} = {tag};" for key, tag in parameters.items() if key.startswith(f"{ENUM}.")
                ]
                nested[name] = [f"enum {name} {{", *values, "}"]
            return parameters[ENUM], {}
        plain, wrapper = _SCALARS[schema.type]
        if schema.type in (Type.INT32, Type.INT64):
            plain = parameters.get(TYPE, plain)
            wrapper = _UNSIGNED.get(plain, wrapper)
        options = {"connect.type": schema.type.value} if schema.type in (Type.INT8, Type.INT16) else {}
        if self._mapping.wrappers and schema.optional:
            self._imports["google/protobuf/wrappers.proto"] = None
            return f"google.protobuf.{wrapper}", options
        return plain, options


def _entry(name: str) -> str:
    """As the compiler names entries: `orders_by_id` becomes `OrdersByIdEntry`."""
    parts = name.split("_")
    return "".join(part[:1].upper() + part[1:] for part in parts) + "Entry"


def wrapper_of(schema: Schema) -> str | None:
    """The message that stands for a value that is no struct."""
    if schema.logical is not None:
        return _LOGICAL[schema.logical][0]
    if schema.type not in _SCALARS:
        return None
    plain = (schema.parameters or {}).get(TYPE, "") if schema.type is Type.INT64 else ""
    return f"google.protobuf.{_UNSIGNED.get(plain, _SCALARS[schema.type][1])}"


# From Protobuf: descriptors, as the package protobuf has them.


class FromProtobuf:
    """The schema of a message's descriptor. Raises `DataError` for a message that is within itself."""

    def __init__(self, mapping: Mapping, params: dict[str, dict[str, str]]) -> None:
        self._mapping = mapping
        self._params = params
        self._within: list[str] = []

    def schema(self, descriptor: Any, version: int | None) -> Schema:
        if self._mapping.raw_wrappers and descriptor.full_name in WRAPPERS:
            return Schema(WRAPPERS[descriptor.full_name], version=version)
        return self._message(descriptor, version)

    def _name(self, descriptor: Any) -> str:
        name: str = descriptor.full_name if self._mapping.enhanced else descriptor.name
        return name

    def _message(self, descriptor: Any, version: int | None = None) -> Schema:
        if descriptor.full_name in self._within:
            raise DataError(f"{descriptor.full_name} is within itself, and columns cannot be recursive")
        self._within.append(descriptor.full_name)
        try:
            fields = [Field(union_name(one), self._union(one)) for one in unions_of(descriptor)]
            fields += [Field(one.name, self.field(one)) for one in plain_fields(descriptor)]
        finally:
            self._within.pop()
        return Schema(Type.STRUCT, name=self._name(descriptor), version=version, fields=tuple(fields))

    def _union(self, oneof: Any) -> Schema:
        name = oneof.full_name if self._mapping.enhanced else oneof.name
        fields = tuple(Field(one.name, self.field(one).but(optional=True)) for one in oneof.fields)
        return Schema(Type.STRUCT, True, name=UNION + name, fields=fields)

    def field(self, field: Any) -> Schema:
        made = self._base(field)
        if field.is_repeated and made.type is not Type.MAP:
            made = Schema(Type.ARRAY, True, items=made.but(optional=True))
        plain = not self._mapping.optionals and not self._mapping.wrappers
        made = made.but(optional=plain or made.optional or has_optional_keyword(field))
        return made.but(parameters={**(made.parameters or {}), TAG: str(field.number)})

    def _base(self, field: Any) -> Schema:
        kind = _KINDS[field.type]
        if kind == "enum":
            name = self._name(field.enum_type)
            parameters = {ENUM: field.enum_type.name}
            parameters |= {f"{ENUM}.{value.name}": str(value.number) for value in field.enum_type.values}
            return Schema(Type.STRING, True, name=name, parameters=parameters)
        if kind == "message":
            return self._message_field(field).but(optional=True)
        if kind in ("int32", "sint32", "sfixed32"):
            said = {"int8": Type.INT8, "int16": Type.INT16}.get(
                self._params.get(field.full_name, {}).get("connect.type", "")
            )
            if said is not None:
                return Schema(said)
            return Schema(Type.INT32, parameters=None if kind == "int32" else {TYPE: kind})
        if kind in _OF_LONGS:
            return Schema(Type.INT64, parameters=None if kind == "int64" else {TYPE: kind})
        return Schema(_PLAIN[kind])

    def _message_field(self, field: Any) -> Schema:
        message = field.message_type
        if message.full_name == "confluent.type.Decimal":
            params = self._params.get(field.full_name, {})
            parameters = {SCALE: params["scale"] if _is_number(params.get("scale")) else "0"}
            if _is_number(params.get("precision")):
                parameters[PRECISION] = params["precision"]
            return Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)
        for name, (type, _) in _LOGICAL.items():
            if message.full_name == type:
                return Schema(Type.INT64 if name == TIMESTAMP else Type.INT32, name=name, version=1)
        if (self._mapping.wrappers or self._mapping.raw_wrappers) and message.full_name in WRAPPERS:
            return Schema(WRAPPERS[message.full_name])
        if is_entry(field):
            key, value = (self.field(message.fields_by_name[name]) for name in ("key", "value"))
            return Schema(Type.MAP, name=_map_field(self._name(message)), keys=key, items=value)
        return self._message(message)


_KINDS: Final = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string",
    10: "message", 11: "message", 12: "bytes", 13: "uint32", 14: "enum", 15: "sfixed32", 16: "sfixed64", 17: "sint32",
    18: "sint64",
}  # fmt: skip
_OF_LONGS: Final = ("int64", "uint64", "fixed64", "fixed32", "uint32", "sfixed64", "sint64")
_PLAIN: Final = {
    "double": Type.FLOAT64,
    "float": Type.FLOAT32,
    "bool": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}


def _is_number(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"-?[0-9]+", text) is not None


def _map_field(entry: str) -> str:
    """`OrdersByIdEntry` becomes `orders_by_id`."""
    name = entry.removesuffix("Entry")
    space, dot, last = name.rpartition(".")
    return space + dot + re.sub(r"(?<!^)(?=[A-Z])", "_", last).lower()


def is_entry(field: Any) -> bool:
    if not field.is_repeated:
        return False
    message = field.message_type
    names = [one.name for one in message.fields]
    return (
        message.name.endswith("Entry")
        and names == ["key", "value"]
        and not any(one.is_repeated for one in message.fields)
    )


def _is_synthetic(oneof: Any) -> bool:
    """The oneof that the compiler puts around a field with `optional`."""
    return len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}"


def unions_of(descriptor: Any) -> list[Any]:
    return [one for one in descriptor.oneofs if not _is_synthetic(one)]


def union_name(oneof: Any) -> str:
    return f"{oneof.name}_{oneof.index}"


def plain_fields(descriptor: Any) -> list[Any]:
    return [one for one in descriptor.fields if one.containing_oneof is None or _is_synthetic(one.containing_oneof)]


def has_optional_keyword(field: Any) -> bool:
    if field.containing_oneof is not None:
        return _is_synthetic(field.containing_oneof)
    is_proto2 = field.has_presence and _KINDS[field.type] != "message"
    return is_proto2 and not field.is_required and not field.is_repeated


def field_params(schema: ProtobufSchema) -> dict[str, dict[str, str]]:
    """What `confluent.field_meta` says of each field, by the field's full name. From the text: descriptors have it only
    where the text imports its definition, which older versions of Confluent's do not."""
    file = read_file(schema.canonical, DEFAULT_LIMITS)
    found: dict[str, dict[str, str]] = {}
    waiting = [(f"{file.package}." if file.package else "", one) for one in file.messages()]
    while waiting:
        before, message = waiting.pop()
        name = f"{before}{message.name}"
        for field in (*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)):
            params = _params(field.options)
            if params:
                found[f"{name}.{field.name}"] = params
        waiting += [(f"{name}.", one) for one in message.messages()]
    return found


def _params(options: list[Option]) -> dict[str, str]:
    made: dict[str, str] = {}
    for option in options:
        value: Any = option.value
        if not option.is_extension or option.name.lstrip(".") != "confluent.field_meta" or not isinstance(value, dict):
            continue
        entries = value.get("params", [])
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, dict):
                made[str(entry.get("key", ""))] = str(entry.get("value", ""))
    return made
