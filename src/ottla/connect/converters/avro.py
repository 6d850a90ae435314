"""Confluent's AvroConverter: Avro with the id of its schema in a registry.

A column's schema becomes Avro's once, and is registered once; then each row is encoded. Reading, records are gathered
by the id that they begin with, decoded, and become one column for each schema of Connect's.
"""

import json
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.parse import Values
from ottla.config.setting import ANY, LOW, MEDIUM, Flag, Setting
from ottla.connect.converters.avro_schemas import (
    NAMESPACE,
    FromAvro,
    Mapping,
    ToAvro,
    branch_field,
    is_union,
)
from ottla.connect.converters.converter import Part
from ottla.connect.converters.registered import REGISTRY_OPTIONS, Registered, framed
from ottla.connect.data.columns import AnyColumn, Column, Schemaless, storage_type
from ottla.connect.data.rows import Float32, Int32, column_of, java_class
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import DataError
from ottla.connect.java_numbers import wrapped
from ottla.schemas.avro import types as avro
from ottla.schemas.avro.codec import Decoder, Encoder
from ottla.schemas.avro.plan import decoding_plan, encoding_plan
from ottla.schemas.avro.schema import AvroSchema, parse_avro
from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.registry_port import BlockingRegistry
from ottla.schemas.schema import DEFAULT_LIMITS, InvalidSchema
from ottla.schemas.serializing.framing import prefix
from ottla.schemas.serializing.serializers import Kept

OPTIONS: Final[tuple[Setting, ...]] = (
    *REGISTRY_OPTIONS,
    Flag(
        "enhanced.avro.schema.support",
        False,
        ANY,
        MEDIUM,
        "Whether enums stay enums, and branches of unions keep their namespaces.",
        acted_on=True,
    ),
    Flag("scrub.invalid.names", False, ANY, MEDIUM, "Whether names are made such as Avro can have.", acted_on=True),
    Flag("connect.meta.data", True, ANY, LOW, "Whether Avro schemas have `connect.` properties.", acted_on=True),
    Flag(
        "discard.type.doc.default",
        False,
        ANY,
        LOW,
        "Whether documentation of types goes into fields, as old versions did.",
        acted_on=True,
    ),
    Flag(
        "allow.optional.map.keys", False, ANY, LOW, "Whether optional strings are keys of Avro's maps.", acted_on=True
    ),
    Flag("flatten.singleton.unions", True, ANY, LOW, "Whether a union of one type is that type.", acted_on=True),
    Flag(
        "ignore.default.for.nullables",
        False,
        ANY,
        MEDIUM,
        "Whether a null stays null where the field has a default.",
        acted_on=True,
    ),
)
_ANYTHING: Final = json.dumps(
    {
        "type": "record",
        "name": "Anything",
        "namespace": NAMESPACE,
        "fields": [
            *(
                {"name": kind, "type": ["null", kind], "default": None}
                for kind in ("boolean", "bytes", "double", "float", "int", "long", "string")
            ),
            {"name": "array", "type": ["null", {"type": "array", "items": "Anything"}], "default": None},
            {
                "name": "map",
                "type": [
                    "null",
                    {
                        "type": "array",
                        "items": {
                            "type": "record",
                            "name": "MapEntry",
                            "fields": [{"name": "key", "type": "Anything"}, {"name": "value", "type": "Anything"}],
                        },
                    },
                ],
                "default": None,
            },
        ],
    }
)
"""What is written without a schema: a record with a field for each kind of value, of which one is set."""

Convert: TypeAlias = Callable[[Any], Any]


class AvroConverter:
    def __init__(self, options: Values, registry: BlockingRegistry, is_key: bool) -> None:
        self._mapping = Mapping(
            metadata=options.flag("connect.meta.data"),
            enhanced=options.flag("enhanced.avro.schema.support"),
            scrub=options.flag("scrub.invalid.names"),
            discard_docs=options.flag("discard.type.doc.default"),
            optional_keys=options.flag("allow.optional.map.keys"),
            flatten=options.flag("flatten.singleton.unions"),
            no_defaults=options.flag("ignore.default.for.nullables"),
        )
        self._registered = Registered("AVRO", options, registry, is_key)
        most = options.integer("schemas.cache.config")
        self._written: Kept[tuple[AvroSchema, Convert]] = Kept(most)
        self._encoders: Kept[Callable[[Any, bytes], bytes]] = Kept(most)
        self._readers: Kept[tuple[Schema | None, Callable[[bytes], Any], Convert]] = Kept(most)

    # Writing.

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Schemaless) and all(value is None for value in column.values):
            return pa.nulls(len(column), pa.binary())
        schema = column.schema
        known = self._written.get(schema)
        local, convert = known or self._written.put(schema, self._mapped(schema))
        id, parsed = self._registered.for_writing(topic, local, local.name)
        assert isinstance(parsed, AvroSchema)
        encode = self._encoders.get(parsed.canonical)
        if encode is None:
            encode = self._encoders.put(parsed.canonical, _encoder(parsed))
        start = prefix(id)
        values = column.array.to_pylist() if isinstance(column, Column) else column.values
        made: list[bytes | None] = []
        for row, value in enumerate(values):
            try:
                if value is None:
                    if schema is not None and not schema.optional:
                        raise DataError("Found null value for non-optional schema")
                    made.append(None)
                else:
                    made.append(encode(convert(value), start))
            except DataError as error:
                raise error.at(row) from None
            except CannotEncode as error:
                raise DataError(f"Failed to serialize Avro data from topic {topic} : {error}", row) from None
        return pa.array(made, pa.binary())

    def _mapped(self, schema: Schema | None) -> tuple[AvroSchema, Convert]:
        if schema is None:
            return parse_avro(_ANYTHING, {}, as_new=True, limits=DEFAULT_LIMITS), _from_anything
        text = json.dumps(ToAvro(self._mapping).tree(schema))
        try:
            return parse_avro(text, {}, as_new=True, limits=DEFAULT_LIMITS), self._outward(schema)
        except InvalidSchema as error:
            hint = "" if self._mapping.scrub else "; scrub.invalid.names=true makes names such as Avro can have"
            raise DataError(f"{schema} is no schema that Avro can have: {error}{hint}") from None

    def _outward(self, schema: Schema) -> Convert:
        """Makes what the encoder takes of a value that is there, as columns store it."""
        if schema.type is Type.ARRAY:
            assert schema.items is not None
            item = self._or_null(schema.items, "element of array")
            return lambda value: [item(one) for one in value]
        if schema.type is Type.MAP:
            assert schema.keys is not None and schema.items is not None
            item, key = self._or_null(schema.items, "value of map"), self._or_null(schema.keys, "key of map")
            if self._mapping.is_avro_map(schema):
                return lambda value: {name: item(one) for name, one in value}
            return lambda value: [{"key": key(name), "value": item(one)} for name, one in value]
        if schema.type is Type.STRUCT:
            return self._outward_struct(schema)
        return lambda value: value

    def _or_null(self, schema: Schema, place: str) -> Convert:
        inner = self._outward(schema)
        default = None
        if schema.default is not None and place.startswith("field") and not self._mapping.no_defaults:
            default = inner(column_of(schema, [schema.default]).array.to_pylist()[0])

        def convert(value: Any) -> Any:
            if value is not None:
                return inner(value)
            if default is not None:
                return default
            if not schema.optional:
                raise DataError(f"Found null value for non-optional schema: {place}")
            return None

        return convert

    def _outward_struct(self, schema: Schema) -> Convert:
        if is_union(schema):
            branches = [
                (field.name, self._branch(field.schema), self._outward(field.schema)) for field in schema.fields
            ]

            def convert_union(value: Any) -> Any:
                for name, branch, inner in branches:
                    if value[name] is not None:
                        return branch, inner(value[name])
                if schema.optional:
                    return None
                raise DataError("Found null value for non-optional schema")

            return convert_union
        fields = [
            (field.name, self._mapping.name(field.name), self._or_null(field.schema, f"field {field.name}"))
            for field in schema.fields
        ]
        return lambda value: {new: inner(value[name]) for name, new, inner in fields}

    def _branch(self, schema: Schema) -> str:
        """The name by which the encoder knows a branch of a union."""
        node = ToAvro(self._mapping).tree(schema.but(optional=False))
        if isinstance(node, dict) and "name" in node:
            return f"{node['namespace']}.{node['name']}" if node.get("namespace") else node["name"]
        kind: str = node["type"]
        return kind

    # Reading.

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        parts: dict[Schema | None, tuple[list[int], list[Any]]] = {}
        for row, one in enumerate(content.to_pylist()):
            schema: Schema | None = None
            value: Any = None
            try:
                if one is not None:
                    schema, decode, convert = self._reader(topic, framed(one))
                    value = convert(decode(one))
            except DataError as error:
                raise error.at(row) from None
            except CannotDecode as error:
                raise DataError(f"Failed to deserialize data for topic {topic} to Avro: {error}", row) from None
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

    def _reader(self, topic: str, id: int) -> tuple[Schema | None, Callable[[bytes], Any], Convert]:
        known = self._readers.get((topic, id))
        if known is not None:
            return known
        parsed, version = self._registered.for_reading(topic, id)
        assert isinstance(parsed, AvroSchema)
        schema = FromAvro(self._mapping).schema(parsed.type, version)
        convert = _to_anything if schema is None else self._inward(schema, parsed.type)
        return self._readers.put((topic, id), (schema, _decoder(parsed), convert))

    def _inward(self, schema: Schema, type: avro.AvroType) -> Convert:
        """Makes what columns store of a value as the decoder gives it: each of a union with its branch."""
        if isinstance(type, avro.Union):
            return self._inward_union(schema, type)
        if isinstance(type, avro.Array):
            if schema.type is Type.MAP:
                assert schema.keys is not None and schema.items is not None and isinstance(type.items, avro.Record)
                key = self._inward(schema.keys, type.items.by_name["key"].type)
                item = self._inward(schema.items, type.items.by_name["value"].type)
                return lambda value: [(key(one["key"]), item(one["value"])) for one in value]
            assert schema.items is not None
            item = self._inward(schema.items, type.items)
            return lambda value: [item(one) for one in value]
        if isinstance(type, avro.Map):
            assert schema.items is not None
            item = self._inward(schema.items, type.values)
            return lambda value: [(name, item(one)) for name, one in value]
        if isinstance(type, avro.Record):
            fields = [
                (field.name, self._inward(field.schema, type.by_name[field.name].type)) for field in schema.fields
            ]
            return lambda value: {name: inner(value[name]) for name, inner in fields}
        if schema.type in (Type.INT8, Type.INT16):
            bits = int(schema.type.value[3:])
            return lambda value: wrapped(value, bits)
        if schema.type is Type.BYTES:
            return bytes
        return lambda value: value

    def _inward_union(self, schema: Schema, type: avro.Union) -> Convert:
        converts: list[tuple[str | None, Convert]] = []
        for branch in type.branches:
            if branch.kind == "null":
                converts.append((None, lambda value: None))
            elif is_union(schema):
                name = branch_field(branch, self._mapping)
                field = schema.field(name)
                assert field is not None
                converts.append((name, self._inward(field.schema, branch)))
            else:
                converts.append((None, self._inward(schema, branch)))
        empty = {field.name: None for field in schema.fields} if is_union(schema) else {}

        def convert(pair: Any) -> Any:
            index, value = pair
            name, inner = converts[index]
            made = inner(value)
            return made if name is None else empty | {name: made}

        return convert


def _encoder(schema: AvroSchema) -> Callable[[Any, bytes], bytes]:
    """Bytes alone are written as they are, without their length, as Confluent's serializer writes them."""
    if schema.type.kind == "bytes":
        return lambda value, start: start + value
    return Encoder(encoding_plan(_bare(schema.canonical))).encode


def _decoder(schema: AvroSchema) -> Callable[[bytes], Any]:
    if schema.type.kind == "bytes":
        return lambda content: content[5:]
    decode = Decoder(decoding_plan(schema.type, None), as_raw=True, as_tree=True).decode
    return lambda content: decode(content, 5)


def _bare(text: str) -> avro.AvroType:
    """The type without its logical types: values are given as they are encoded."""
    type = parse_avro(text, {}, as_new=False, limits=DEFAULT_LIMITS).type
    waiting, seen = [type], {id(type)}
    while waiting:
        one = waiting.pop()
        one.logical = None
        inner: list[avro.AvroType] = []
        if isinstance(one, avro.Record):
            inner = [field.type for field in one.fields]
        elif isinstance(one, avro.Array):
            inner = [one.items]
        elif isinstance(one, avro.Map):
            inner = [one.values]
        elif isinstance(one, avro.Union):
            inner = list(one.branches)
        for other in inner:
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)
    return type


def _from_anything(value: Any) -> dict[str, Any]:
    """A value without a schema, in the record that can be anything."""
    made: dict[str, Any] = dict.fromkeys(
        ("boolean", "bytes", "double", "float", "int", "long", "string", "array", "map")
    )
    if value is None:
        return made
    if isinstance(value, bool):
        made["boolean"] = value
    elif isinstance(value, str):
        made["string"] = value
    elif isinstance(value, float):
        made["float" if isinstance(value, Float32) else "double"] = float(value)
    elif isinstance(value, int):
        made["long" if type(value) is int else "int"] = int(value)
    elif isinstance(value, list):
        made["array"] = [_from_anything(item) for item in value]
    elif isinstance(value, dict):
        made["map"] = [{"key": _from_anything(name), "value": _from_anything(item)} for name, item in value.items()]
    else:
        raise DataError(f"Unknown Java type for schemaless data: class {java_class(value)}")
    return made


def _to_anything(value: Any) -> Any:
    for name, (_, found) in value.items():
        if found is None:
            continue
        match name:
            case "array":
                return [_to_anything(item) for item in found]
            case "map":
                return {_to_anything(entry["key"]): _to_anything(entry["value"]) for entry in found}
            case "int":
                return Int32(found)
            case "float":
                return Float32(found)
            case "bytes":
                return bytes(found)
        return found
    return None
