"""JsonSchemaConverter: schemas, bytes and values as Confluent's converter makes them, as a table, and round trips. The
original is not asked, as other converters' is: its jar is not on Maven Central."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.converters.by_name import make_converter
from ottla.connect.converters.json_schema_schemas import ENUM, ONE_OF
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column, nothing
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Field, Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption
from ottla.schemas.registry_port import SchemaToRegister
from tests.interop.connect.connect_oracle import RandomData
from tests.unit.connect.given_registry import GivenRegistry

INT8, INT32, INT64, STRING = (Schema(type) for type in (Type.INT8, Type.INT32, Type.INT64, Type.STRING))
NULL = {"type": "null"}
ONE = Schema(
    Type.STRUCT,
    name=ONE_OF,
    fields=(
        Field(f"{ONE_OF}.field.0", Schema(Type.STRING, True)),
        Field(f"{ONE_OF}.field.1", Schema(Type.INT64, True)),
    ),
)


def converter(registry: GivenRegistry, **options: str) -> Any:
    given: dict[str, str | None] = {"schema.registry.url": "http://registry"}
    given |= {name.replace("_", "."): value for name, value in options.items()}
    return make_converter("io.confluent.connect.json.JsonSchemaConverter", given, registry=lambda _: registry)


WRITTEN: list[tuple[Schema, Any, Any, str]] = [
    (INT8, -3, {"type": "integer", "connect.type": "int8"}, "-3"),
    (Schema(Type.FLOAT32), 1.5, {"type": "number", "connect.type": "float32"}, "1.5"),
    (Schema(Type.BOOLEAN), True, {"type": "boolean"}, "true"),
    (STRING, 'a"', {"type": "string"}, '"a\\""'),
    (Schema(Type.BYTES), b"\0\1", {"type": "string", "connect.type": "bytes"}, '"AAE="'),
    (
        schemas.decimal(2),
        Decimal("1.50"),
        {
            "title": "org.apache.kafka.connect.data.Decimal",
            "type": "number",
            "connect.type": "bytes",
            "connect.version": 1,
            "connect.parameters": {"scale": "2"},
        },
        '"AJY="',
    ),
    (
        Schema(Type.INT32, True, 7, doc="so many"),
        None,
        {
            "oneOf": [
                NULL,
                {"description": "so many", "default": 7, "type": "integer", "connect.type": "int32"},
            ]
        },
        "7",
    ),
    (schemas.array(STRING), ["a"], {"type": "array", "items": {"type": "string"}}, '["a"]'),
    (
        schemas.map_of(STRING, INT32),
        [("a", 1)],
        {
            "type": "object",
            "additionalProperties": {"type": "integer", "connect.type": "int32"},
            "connect.type": "map",
        },
        '{"a":1}',
    ),
    (
        schemas.map_of(INT32, STRING),
        [(1, "a")],
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "integer", "connect.type": "int32", "connect.index": 0},
                    "value": {"type": "string", "connect.index": 1},
                },
            },
            "connect.type": "map",
        },
        '[{"key":1,"value":"a"}]',
    ),
    (
        struct([("a", INT64), ("b", struct([("c", STRING)], optional=True))], name="shop.Order", version=3),
        {"a": 1, "b": None},
        {
            "title": "shop.Order",
            "type": "object",
            "properties": {
                "a": {"type": "integer", "connect.type": "int64", "connect.index": 0},
                "b": {
                    "oneOf": [NULL, {"type": "object", "properties": {"c": {"type": "string", "connect.index": 0}}}],
                    "connect.index": 1,
                },
            },
            "connect.version": 3,
        },
        '{"a":1,"b":null}',
    ),
    (
        Schema(Type.STRING, parameters={ENUM: "", f"{ENUM}.X": "X", f"{ENUM}.Y": "Y"}),
        "Y",
        {"enum": ["X", "Y"]},
        '"Y"',
    ),
    (
        struct([("u", ONE)]),
        {"u": {f"{ONE_OF}.field.1": 5}},
        {
            "type": "object",
            "properties": {
                "u": {
                    "oneOf": [
                        {"type": "string", "connect.index": 0},
                        {"type": "integer", "connect.type": "int64", "connect.index": 1},
                    ],
                    "connect.index": 0,
                }
            },
        },
        '{"u":5}',
    ),
]


@pytest.mark.parametrize(("schema", "value", "tree", "text"), WRITTEN)
def test_schemas_and_values_are_written_as_confluent_documents(
    schema: Schema, value: Any, tree: Any, text: str
) -> None:
    registry = GivenRegistry()
    made = converter(registry).to_bytes("t", column_of(schema, [value]))
    assert json.loads(registry.schemas[0].text) == tree
    assert registry.schemas[0].kind == "JSON"
    assert made.to_pylist() == [b"\0\0\0\0\1" + text.encode()]
    (part,) = converter(registry).from_bytes("t", made)
    version = 1 if schema.version is None else schema.version
    assert part.column.schema == schema.but(version=version)
    expected = column_of(schema, [schema.default if value is None else value])
    assert rows_of(part.column) == rows_of(expected)


READ: list[tuple[Any, str, Schema, Any]] = [
    ({"type": "integer"}, "5", INT64, 5),
    ({"type": "number"}, "5", Schema(Type.FLOAT64), 5.0),
    ({"type": ["null", "string"]}, "null", Schema(Type.STRING, True), None),
    ({"enum": ["a"], "type": "string"}, '"a"', Schema(Type.STRING, parameters={ENUM: "", f"{ENUM}.a": "a"}), "a"),
    ({"allOf": [{"type": "string"}, {"const": "x"}]}, '"x"', STRING, "x"),
    (
        {"type": "object", "properties": {"b": {"type": "string"}, "a": {"$ref": "#/definitions/A"}},
         "definitions": {"A": {"title": "A", "type": "object", "properties": {"x": {"type": "boolean"}}}}},
        '{"b":"s","a":{"x":true},"other":1}',
        struct([("b", STRING), ("a", struct([("x", Schema(Type.BOOLEAN))], name="A"))]),
        {"b": "s", "a": {"x": True}},
    ),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5", ONE,
     {f"{ONE_OF}.field.0": None, f"{ONE_OF}.field.1": 5}),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "text", "schema", "value"), READ)
def test_schemas_of_others_are_read(tree: Any, text: str, schema: Schema, value: Any) -> None:
    registry = GivenRegistry()
    registry.register("t-value", SchemaToRegister("JSON", json.dumps(tree)))
    (part,) = converter(registry).from_bytes("t", pa.array([b"\0\0\0\0\1" + text.encode()], pa.binary()))
    assert part.column.schema == schema.but(version=1)
    assert rows_of(part.column) == [value]


def bare(schema: Schema) -> Schema:
    """Without defaults, which stand for null when they are written."""
    fields = tuple(Field(field.name, bare(field.schema)) for field in schema.fields)
    keys, items = (None if one is None else bare(one) for one in (schema.keys, schema.items))
    return schema.but(default=None, fields=fields, keys=keys, items=items)


@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
@pytest.mark.parametrize("seed", range(40))
def test_what_is_written_is_read_again(seed: int, decimals: str) -> None:
    data = RandomData(seed)
    schema = bare(data.schema(3))
    column = column_of(schema, [data.value(schema) for _ in range(4)])
    registry = GivenRegistry()
    made = converter(registry, decimal_format=decimals)
    (part,) = made.from_bytes("t", made.to_bytes("t", column))
    version = 1 if schema.version is None else schema.version
    assert part.column.schema == schema.but(version=version)
    assert rows_of(part.column) == rows_of(column)


def test_options_shape_the_schema() -> None:
    registry = GivenRegistry()
    options = {"object_additional_properties": "false", "use_optional_for_nonrequired": "true"}
    schema = struct([("a", INT64), ("b", Schema(Type.STRING, True))])
    converter(registry, **options).to_bytes("t", column_of(schema, [{"a": 1, "b": None}]))
    tree = json.loads(registry.schemas[0].text)
    assert (tree["required"], tree["additionalProperties"]) == (["a"], False)
    other = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}, "required": ["x"]}
    registry.register("t-value", SchemaToRegister("JSON", json.dumps(other)))
    (part,) = converter(registry, **options).from_bytes("t", pa.array([b'\0\0\0\0\2{"x":"s"}'], pa.binary()))
    assert isinstance(part.column, Column)
    assert rows_of(part.column) == [{"x": "s", "y": None}]


def test_tombstones_are_null_both_ways() -> None:
    made = converter(GivenRegistry())
    assert made.to_bytes("t", nothing(2)).to_pylist() == [None, None]
    (part,) = made.from_bytes("t", pa.array([None], pa.binary()))
    assert part.column.schema is None


@pytest.mark.parametrize(
    ("tree", "content", "said"),
    [
        ({"type": "integer"}, b"\0\0\0\0\1x", "to JSON"),
        ({"type": "integer"}, b"x", "no id of a schema"),
        ({"type": "string"}, b"\0\0\0\0\x015", "NUMBER is no STRING"),
        ({"$ref": "#"}, b"\0\0\0\0\x015", "within itself"),
        ({"$ref": "#/definitions/A"}, b"\0\0\0\0\x015", "not there"),
        ({"type": "array"}, b"\0\0\0\0\1[]", "items type"),
        ({}, b"\0\0\0\0\1[]", "no type in Connect"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_row(tree: Any, content: bytes, said: str) -> None:
    registry = GivenRegistry()
    registry.register("t-value", SchemaToRegister("JSON", json.dumps(tree)))
    with pytest.raises(DataError, match=said) as caught:
        converter(registry).from_bytes("t", pa.array([None, content], pa.binary()))
    assert caught.value.row == 1


def test_an_option_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidOption, match="generalized"):
        converter(GivenRegistry(), generalized_sum_type_support="true")
