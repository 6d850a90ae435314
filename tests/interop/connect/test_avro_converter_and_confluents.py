"""Our AvroConverter beside Confluent's, whose classes Snowflake's connector has with it: the same Avro schemas, text
for text, the same bytes, and the same schemas and values from them."""

import base64
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.converters.by_name import make_converter
from ottla.connect.data.columns import Column, Schemaless
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Field, Schema, Type
from ottla.connect.errors import DataError
from ottla.schemas.registry_port import SchemaToRegister
from tests.interop.apache_kafka import QUICK_START, libraries
from tests.interop.connect.connect_oracle import RandomData, carried, plain_fractions, unpacked
from tests.interop.connect.kafka_connect import connect_libraries
from tests.interop.connect.test_converters_and_kafkas import tried
from tests.unit.connect.given_registry import GivenRegistry

pytestmark = pytest.mark.interop

SEED = 20261120
CASES = 400
VERSION = "2.4.1"
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>com.snowflake</groupId><artifactId>snowflake-kafka-connector</artifactId><version>{version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
  </dependencies>
</project>
"""
OPTIONS: list[dict[str, str]] = [
    {},
    {"connect.meta.data": "false"},
    {"enhanced.avro.schema.support": "true"},
    {"scrub.invalid.names": "true", "allow.optional.map.keys": "true"},
    {"discard.type.doc.default": "true", "ignore.default.for.nullables": "true"},
]


def asked(questions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    source = Path(__file__).with_name("AvroConverterOracle.java")
    jars = f"{connect_libraries()}/*:{libraries(VERSION, POM, 'confluent-avro-converter')}/*"
    command = ["java", *QUICK_START, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", jars, str(source)]
    lines = "\n".join(json.dumps(question) for question in questions)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.split("\n") if line]


class AvroData(RandomData):
    """Structs of one name are equal, as they must be in Avro, and names are such as Avro can have, or scrubbed ones."""

    def __init__(self, seed: int, names: str = "abcdef") -> None:
        super().__init__(seed)
        self._names = names
        self._structs = 0

    def struct(self, depth: int = 2, names: str = "") -> Schema:
        made = super().struct(depth, names or self._names)
        self._structs += 1
        name = self.random.choice([None, f"shop.Order{self._structs}", f"Order{self._structs}"])
        doc = self.random.choice([None, {"io.confluent.connect.avro.record.doc": "of a record"}])
        return made.but(name=name, parameters=doc)


def random_columns(seed: int, number: int, options: dict[str, str]) -> list[Column]:
    data = AvroData(seed, "abc d-é1" if "scrub.invalid.names" in options else "abcdef")
    made: list[Column] = []
    while len(made) < number:
        schema = data.struct() if data.random.random() < 0.6 else data.schema()
        if schema.type is Type.STRUCT and data.random.random() < 0.3:
            symbols = {"io.confluent.connect.avro.Enum": "shop.Kind"}
            symbols |= {f"io.confluent.connect.avro.Enum.{symbol}": symbol for symbol in ("A", "B")}
            kind = Schema(Type.STRING, data.random.random() < 0.5, name="shop.Kind", parameters=symbols)
            schema = schema.but(fields=(*schema.fields, Field("kind", kind)), default=None)
            value = data.value(schema)
            if value is not None:
                value["kind"] = data.random.choice("AB")
            made.append(column_of(schema, [value]))
            continue
        made.append(column_of(schema, [data.value(schema)]))
    return made


def converter(options: dict[str, str], registry: GivenRegistry) -> Any:
    given: dict[str, str | None] = {"schema.registry.url": "http://registry", **options}
    return make_converter("io.confluent.connect.avro.AvroConverter", given, registry=lambda _: registry)


@pytest.mark.parametrize("options", OPTIONS, ids=json.dumps)
def test_schemas_and_bytes_are_confluents(options: dict[str, str]) -> None:
    columns = random_columns(SEED, CASES, options)
    questions = [{"do": "write", "options": options, "value": carried(column)[0]} for column in columns]
    written = 0
    for number, (column, answer) in enumerate(zip(columns, asked(questions), strict=True)):
        registry = GivenRegistry()
        where = f"case {number}: {column.schema} {answer}"
        ours, refusal = tried(
            lambda registry=registry, column=column: converter(options, registry).to_bytes("topic", column)[0].as_py()
        )
        if "Illegal" in (refusal or ""):
            continue  # Java takes any letter of Unicode for a name, which no other library does
        assert (refusal is None) == ("error" not in answer), f"{refusal} {where}"
        if refusal is not None:
            continue
        if ours is None:
            assert answer["out"] is None, where
            continue
        assert unfloated(registry.schemas[0].text) == unfloated(answer["schema"]), where
        assert ours[5:] == base64.b64decode(answer["out"]), where
        written += 1
    assert written > CASES // 2


def unfloated(text: str) -> str:
    """Java's floating point numbers have more digits than they need before version 19."""
    return plain_fractions(text.encode()).decode()


@pytest.mark.parametrize("options", OPTIONS, ids=json.dumps)
def test_what_was_written_is_read_as_confluents_reads_it(options: dict[str, str]) -> None:
    columns = random_columns(SEED + 1, CASES, options)
    cases: list[tuple[str, bytes]] = []
    for column in columns:
        registry = GivenRegistry()
        try:
            (content,) = converter(options, registry).to_bytes("topic", column).to_pylist()
        except DataError:
            continue
        if content is not None:
            cases.append((registry.schemas[0].text, content[5:]))
    assert len(cases) > CASES // 2
    compare(options, cases)


OTHERS: list[tuple[Any, bytes]] = [
    (["null", "int", "string", {"type": "fixed", "name": "a.F", "size": 2}], b"\x06ab"),
    (["int", "string"], b"\x02\x04hi"),
    (["string"], b"\x00\x04hi"),
    ({"type": "enum", "name": "a.E", "symbols": ["A", "B"], "default": "A", "doc": "of an enum"}, b"\x02"),
    ({"type": "int", "logicalType": "date"}, b"\x02"),
    ({"type": "long", "logicalType": "timestamp-micros"}, b"\x02"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\x04\x01\x00"),
    ({"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 2}, b"\x01\x00"),
    ({"type": "map", "values": ["null", "long"]}, b"\x02\x02k\x02\x08\x00"),
    ({"type": "array", "items": {"type": "int", "avro.java": "x"}}, b"\x02\x02\x00"),
    ("null", b""),
    ({"type": "string", "connect.version": 3, "connect.doc": "d", "connect.name": "n"}, b"\x02a"),
    ({"type": "int", "connect.type": "int9"}, b"\x02"),
    (
        {
            "type": "record",
            "name": "shop.Order",
            "doc": "an order",
            "fields": [
                {"name": "id", "type": "int", "doc": "the id", "default": 7},
                {"name": "note", "type": ["null", "string"], "default": None},
                {"name": "kind", "type": ["string", "null"], "default": "x"},
                {
                    "name": "either",
                    "type": ["int", {"type": "record", "name": "In", "fields": [{"name": "a", "type": "int"}]}],
                },
                {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
                {"name": "data", "type": "bytes", "default": "\u00ff"},
            ],
        },
        b"\x02\x02\x02a\x02\x02\x02\x08\x02\x02b\x00\x02c",
    ),
]


@pytest.mark.parametrize("options", OPTIONS, ids=json.dumps)
def test_schemas_of_others_are_read_as_confluents_reads_them(options: dict[str, str]) -> None:
    compare(options, [(json.dumps(schema), content) for schema, content in OTHERS])


def compare(options: dict[str, str], cases: list[tuple[str, bytes]]) -> None:
    questions = [
        {"do": "read", "options": options, "schema": schema, "bytes": base64.b64encode(content).decode()}
        for schema, content in cases
    ]
    for number, ((schema, content), answer) in enumerate(zip(cases, asked(questions), strict=True)):
        registry = GivenRegistry()
        id = registry.register("topic-value", SchemaToRegister("AVRO", schema)).id
        assert id == 1
        where = f"case {number}: {schema}, {answer}"
        held = pa.array([b"\0\0\0\0\1" + content], pa.binary())
        parts, refusal = tried(
            lambda held=held, registry=registry: converter(options, registry).from_bytes("topic", held)
        )
        assert (refusal is None) == ("error" not in answer), f"{refusal} {where}"
        if refusal is not None:
            continue
        (part,) = parts
        (ours,) = carried(part.column)
        assert unordered(unpacked(ours)) == unordered(unpacked(answer["out"])), where


def unordered(content: bytes | None) -> Any:
    """Parameters are a hash table there. Defaults of arrays, maps and structs lose entries that may be null."""
    said = None if content is None else json.loads(content)
    waiting = [said]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            if one.get("type") in ("array", "map", "struct"):
                one.pop("default", None)
                (one.get("parameters") or {}).pop("io.confluent.connect.avro.field.default", None)
            waiting += one.values()
    return said


def test_values_without_a_schema_are_anything() -> None:
    values = (None, 5, 2.5, True, "x", [1, None], {"a": {"b": "c"}})
    questions = [
        {"do": "write", "options": {}, "value": carried(Schemaless((value,)))[0]}
        for value in values
        if value is not None
    ]
    for value, answer in zip(values[1:], asked(questions), strict=True):
        registry = GivenRegistry()
        ours = converter({}, registry).to_bytes("topic", Schemaless((value,)))[0].as_py()
        assert registry.schemas[0].text == answer["schema"]
        assert ours[5:] == base64.b64decode(answer["out"])
        (part,) = converter({}, registry).from_bytes("topic", pa.array([ours], pa.binary()))
        assert part.column.values == (value,)
