"""Confluent's JsonSchemaConverter: JSON with the id of its JSON Schema in a registry.

Values are written as JsonConverter writes them, by whole columns, but for maps whose keys are no strings (lists of
objects of a `key` and a `value`) and for `oneOf`, of which the member is written that is set.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.bounds import OneOf
from ottla.config.parse import Values
from ottla.config.setting import ANY, LOW, MEDIUM, Flag, Setting, Text
from ottla.connect.converters.converter import Part, naming_the_row
from ottla.connect.converters.json_columns import JsonWriter
from ottla.connect.converters.json_rows import node, read_json, reader
from ottla.connect.converters.json_schema_schemas import ONE_OF, FromJsonSchema, Shaping, has_named_keys, to_json_schema
from ottla.connect.converters.registered import REGISTRY_OPTIONS, Registered, framed
from ottla.connect.data.columns import AnyColumn, Column, Schemaless
from ottla.connect.data.rows import check, column_of_checked
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import DataError
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.json_text import write_json
from ottla.schemas.registry_port import BlockingRegistry
from ottla.schemas.schema import InvalidSchema, parse
from ottla.schemas.serializing.framing import prefix
from ottla.schemas.serializing.serializers import Kept

OPTIONS: Final[tuple[Setting, ...]] = (
    *REGISTRY_OPTIONS,
    Text(
        "decimal.format",
        "BASE64",
        OneOf(("NUMERIC", "BASE64"), any_case=True),
        LOW,
        "How decimals are written: BASE64 of their unscaled number, or NUMERIC. Both are read.",
        acted_on=True,
    ),
    Flag(
        "object.additional.properties",
        True,
        ANY,
        MEDIUM,
        "Whether schemas that are made allow members that they do not name.",
        acted_on=True,
    ),
    Flag(
        "use.optional.for.nonrequired",
        False,
        ANY,
        MEDIUM,
        "Whether properties that are not `required` become optional fields.",
        acted_on=True,
    ),
)
Prepare = Callable[[Any], Any]


class JsonSchemaConverter:
    def __init__(self, options: Values, registry: BlockingRegistry, is_key: bool) -> None:
        self._registered = Registered("JSON", options, registry, is_key)
        self._shaping = Shaping(
            options.flag("object.additional.properties"), options.flag("use.optional.for.nonrequired")
        )
        self._writer = _Writer(numeric=options.text("decimal.format").upper() == "NUMERIC", defaults=True)
        most = options.integer("schemas.cache.config")
        self._written: Kept[JsonSchema] = Kept(most)
        self._readers: Kept[tuple[Schema, Prepare]] = Kept(most)

    # Writing.

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Schemaless):
            row = column.is_null().index(False).as_py()
            if row >= 0:
                raise DataError("JSON Schema needs a schema, and the record has none", row)
            return pa.nulls(len(column), pa.binary())
        local = self._written.get(column.schema)
        if local is None:
            local = self._written.put(column.schema, self._mapped(column.schema))
        id, _ = self._registered.for_writing(topic, local, local.name)
        texts = naming_the_row(self._writer.texts, column).cast(pa.binary())
        return pc.binary_join_element_wise(pa.scalar(prefix(id), pa.binary()), texts, pa.scalar(b"", pa.binary()))

    def _mapped(self, schema: Schema) -> JsonSchema:
        def default_of(one: Schema) -> Any:
            return json.loads(self._writer.value_text(one, one.default), parse_float=Decimal)

        tree = to_json_schema(schema, self._shaping, default_of)
        try:
            parsed = parse("JSON", write_json(tree), {})
        except InvalidSchema as error:
            raise DataError(f"{schema} is no schema that JSON Schema can have: {error}") from None
        assert isinstance(parsed, JsonSchema)
        return parsed

    # Reading.

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        parts: dict[Schema | None, tuple[list[int], list[Any]]] = {}
        for row, one in enumerate(content.to_pylist()):
            schema: Schema | None = None
            value: Any = None
            try:
                if one is not None:
                    schema, read = self._reader(topic, framed(one))
                    value = read(_json(one[5:], topic))
            except DataError as error:
                raise error.at(row) from None
            except RecursionError:
                raise DataError("the JSON is nested too deep", row) from None
            rows, values = parts.setdefault(schema, ([], []))
            rows.append(row)
            values.append(value)
        found: list[Part] = []
        for schema, (rows, values) in parts.items():
            column: AnyColumn
            if schema is None:
                column = Schemaless(tuple(values))
            else:
                try:
                    column = column_of_checked(schema, values)
                except DataError as error:
                    raise error if error.row is None else error.at(rows[error.row]) from None
            found.append(Part(pa.array(rows, pa.int64()), column))
        return found

    def _reader(self, topic: str, id: int) -> tuple[Schema, Prepare]:
        known = self._readers.get((topic, id))
        if known is not None:
            return known
        parsed, version = self._registered.for_reading(topic, id)
        assert isinstance(parsed, JsonSchema)
        references = {name: json.loads(text, parse_float=Decimal) for name, text in parsed.references.items()}
        schema = FromJsonSchema(parsed.tree, references, self._shaping, _default_of).schema(version)
        return self._readers.put((topic, id), (schema, _read_all(schema)))


def _json(content: bytes, topic: str) -> Any:
    try:
        return read_json(content.decode())
    except (UnicodeDecodeError, ValueError) as error:
        raise DataError(f"Failed to deserialize data for topic {topic} to JSON: {error}") from None


def _default_of(schema: Schema, said: Any) -> Any:
    value = _read_all(schema)(said)
    check(schema, value)
    return value


def _read_all(schema: Schema) -> Prepare:
    """What reads values of a schema: JsonConverter's way, after what is of another form has been given its form."""
    prepare, read = _prepare(schema), reader(schema, True)
    return read if prepare is None else lambda value: read(prepare(value))


def _prepare(schema: Schema) -> Prepare | None:
    """None for a schema whose values have the form already. Null stays null."""
    made = _prepare_present(schema)
    return None if made is None else lambda value: None if value is None else made(value)


def _prepare_present(schema: Schema) -> Prepare | None:
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        item = _prepare(schema.items)
        return None if item is None else lambda value: [item(one) for one in value] if type(value) is list else value
    if schema.type is Type.MAP:
        return _prepare_map(schema)
    if schema.type is not Type.STRUCT:
        return None
    if schema.name == ONE_OF:
        return _prepare_one_of(schema)
    fields = {field.name: made for field in schema.fields if (made := _prepare(field.schema)) is not None}
    if not fields:
        return None

    def prepare(value: Any) -> Any:
        if type(value) is not dict:
            return value
        return value | {name: made(value.get(name)) for name, made in fields.items()}

    return prepare


def _prepare_map(schema: Schema) -> Prepare | None:
    assert schema.keys is not None and schema.items is not None
    key, item = _prepare(schema.keys), _prepare(schema.items)
    if has_named_keys(schema):
        if item is None:
            return None
        return lambda value: {name: item(one) for name, one in value.items()} if type(value) is dict else value

    def prepare(value: Any) -> Any:
        if type(value) is not list:
            raise DataError(
                f"Maps with non-string fields should be encoded as JSON array of objects, but found {node(value)}"
            )
        pairs: list[Any] = []
        for entry in value:
            if type(entry) is not dict:
                raise DataError(f"Found invalid map entry instead of object: {node(entry)}")
            if entry.keys() != {"key", "value"}:
                raise DataError(f"Found invalid map entry, with the members {', '.join(entry)}")
            one, other = entry["key"], entry["value"]
            pairs.append([one if key is None else key(one), other if item is None else item(other)])
        if schema.keys is not None and schema.keys.type is Type.STRING:
            if any(type(one) is not str for one, _ in pairs):
                raise DataError("a map has no null keys")
            return dict(pairs)
        return pairs

    return prepare


def _prepare_one_of(schema: Schema) -> Prepare:
    kinds = [(field.name, field.schema, _prepare(field.schema)) for field in schema.fields]

    def prepare(value: Any) -> Any:
        for name, kind, made in kinds:
            if _is_of(kind, value):
                return {name: value if made is None else made(value)}
        raise DataError(f"Did not find matching oneof field for data: {node(value)}")

    return prepare


def _is_of(schema: Schema, value: Any) -> bool:
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return type(value) is int
        case Type.FLOAT32 | Type.FLOAT64:
            return type(value) in (int, Decimal)
        case Type.BOOLEAN:
            return type(value) is bool
        case Type.STRING:
            return type(value) is str
        case Type.BYTES:
            return type(value) in ((int, Decimal) if schema.logical is not None else (str,))
        case Type.ARRAY:
            return type(value) is list
        case Type.MAP:
            return type(value) in (dict, list)
    return type(value) is dict and value.keys() <= {field.name for field in schema.fields}


class _Writer(JsonWriter):
    """Values as JsonSchemaConverter writes them."""

    def _maps(self, schema: Schema, array: Any) -> Any:
        if has_named_keys(schema):
            return super()._maps(schema, array)
        return self._entries(schema, array)

    def _structs(self, schema: Schema, array: Any) -> Any:
        if schema.name != ONE_OF:
            return super()._structs(schema, array)
        found: Any = pa.array(["null"] * len(array), pa.string())
        for place in reversed(range(len(schema.fields))):
            child = Column(schema, array).child(place)
            if child.array.null_count == len(child):
                continue
            texts = self._texts(child.schema.but(optional=True, default=None), child.array)
            found = pc.if_else(child.array.is_valid(), texts, found)
        return found
