"""Our ProtobufConverter beside Confluent's 7.0, which Debezium's server has with its connector for DSE: the same bytes,
and the same schemas and values from each other's. Texts of schemas differ from version to version there, and are not
compared.
"""

import base64
import json
import os
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.converters.by_name import make_converter
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Field, Schema, Type
from ottla.schemas.registry_port import SchemaToRegister
from tests.interop.apache_kafka import QUICK_START, libraries
from tests.interop.connect.connect_oracle import RandomData, carried, unpacked
from tests.interop.connect.kafka_connect import connect_libraries
from tests.interop.connect.test_converters_and_kafkas import tried
from tests.unit.connect.given_registry import GivenRegistry

pytestmark = pytest.mark.interop

SEED = 20261121
CASES = 250
VERSION = "3.6.0.Final"
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.debezium</groupId><artifactId>debezium-server-dist</artifactId><version>{version}</version>
      <type>tar.gz</type><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
    <dependency><groupId>com.google.api.grpc</groupId><artifactId>proto-google-common-protos</artifactId><version>2.9.6</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
  </dependencies>
</project>
"""
PLAIN = [one for one in Type if one not in (Type.ARRAY, Type.MAP, Type.STRUCT)]
"""For values that are no structs. Of a Date or a Decimal alone Confluent writes bytes that it cannot read."""
OPTIONS: list[dict[str, str]] = [
    {},
    {"optional.for.nullables": "true"},
    {"wrapper.for.nullables": "true"},
    {"enhanced.protobuf.schema.support": "true", "scrub.invalid.names": "true"},
]


def jars() -> str:
    """Of 700 MB these are a few: taken out of the archive once."""
    home = libraries(VERSION, POM, "confluent-protobuf-converter")
    taken = home.parent / "taken"
    if not taken.exists():
        taken.mkdir()
        with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
            for member in archive:
                if "/debezium-connector-dse/" in member.name and member.name.endswith(".jar"):
                    member.name = os.path.basename(member.name)
                    archive.extract(member, taken, filter="data")
    return f"{connect_libraries()}/*:{taken}/*:{home}/*"


def asked(questions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    source = Path(__file__).with_name("ProtobufConverterOracle.java")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    lines = "\n".join(json.dumps(question) for question in questions)
    command = ["java", *QUICK_START, quiet, "-cp", jars(), str(source)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.split("\n") if line]


class ProtobufData(RandomData):
    """Structs of different names; arrays of no arrays, maps or nulls, which Protobuf has not."""

    def __init__(self, seed: int, names: str) -> None:
        super().__init__(seed)
        self._names = names
        self._structs = 0

    def struct(self, depth: int = 2, names: str = "") -> Schema:
        made = super().struct(depth, names or self._names)
        self._structs += 1
        return made.but(name=self.random.choice([None, f"shop.Order{self._structs}", f"Order{self._structs}"]))

    def schema(self, depth: int = 2) -> Schema:
        made = super().schema(depth)
        if made.type is Type.MAP:
            keys, items = made.keys, made.items
            assert keys is not None
            assert items is not None
            if items.type in (Type.ARRAY, Type.MAP):
                items = Schema(Type.STRING)
            return schemas.map_of(keys.but(optional=False), items.but(optional=False), optional=made.optional)
        if made.type is Type.ARRAY:
            items = made.items
            assert items is not None
            items = (
                Schema(Type.INT64) if items.type in (Type.ARRAY, Type.MAP) else items.but(optional=False, default=None)
            )
            return schemas.array(items, optional=made.optional)
        return made if made.logical is not None or made.type is Type.STRUCT else made.but(name=None, parameters=None)


def random_columns(seed: int, number: int, options: dict[str, str]) -> list[Column]:
    data = ProtobufData(seed, "abcd e1" if "scrub.invalid.names" in options else "abcdef")
    made: list[Column] = []
    while len(made) < number:
        schema = data.struct().but(optional=True) if data.random.random() < 0.8 else Schema(data.random.choice(PLAIN))
        if data.random.random() < 0.2 and schema.type is Type.STRUCT:
            parameters = {"io.confluent.connect.protobuf.Enum": "Kind"}
            parameters |= {f"io.confluent.connect.protobuf.Enum.{one}": str(tag) for tag, one in enumerate("XYZ")}
            kind = Schema(Type.STRING, True, name="Kind", parameters=parameters)
            schema = schema.but(fields=(*schema.fields, Field("kind", kind)))
            value = data.value(schema)
            if value is not None:
                value["kind"] = data.random.choice(["X", "Y", None])
            made.append(column_of(schema, [value]))
            continue
        made.append(column_of(schema, [data.value(schema)]))
    return made


def converter(options: dict[str, str], registry: GivenRegistry) -> Any:
    given: dict[str, str | None] = {"schema.registry.url": "http://registry", **options}
    return make_converter("io.confluent.connect.protobuf.ProtobufConverter", given, registry=lambda _: registry)


@pytest.mark.parametrize("options", OPTIONS, ids=json.dumps)
def test_bytes_are_confluents_and_each_reads_the_others(options: dict[str, str]) -> None:
    columns = random_columns(SEED, CASES, options)
    questions = [{"do": "write", "options": options, "value": carried(column)[0]} for column in columns]
    theirs: list[tuple[str, bytes]] = []
    ours: list[tuple[str, bytes]] = []
    for number, (column, answer) in enumerate(zip(columns, asked(questions), strict=True)):
        registry = GivenRegistry()
        where = f"case {number}: {column.schema} {answer}"
        made, refusal = tried(
            lambda registry=registry, column=column: converter(options, registry).to_bytes("topic", column)[0].as_py()
        )
        if "is already defined" in answer.get("message", ""):
            continue  # a field and a message of one name, which Java's library refuses, and Python's does not
        assert (refusal is None) == ("error" not in answer), f"{refusal} {where}"
        if refusal is not None or made is None:
            assert answer.get("out") is None, where
            continue
        assert made[5:] == base64.b64decode(answer["out"]), where
        theirs.append((answer["schema"], made[5:]))
        ours.append((registry.schemas[0].text, made[5:]))
    assert len(ours) > CASES // 2
    compare(options, ours)
    compare(options, theirs)


P3 = 'syntax = "proto3"; '
OTHERS = [
    (
        P3 + "message A { oneof one { int32 a = 1; string b = 2; } uint64 c = 3; sint32 d = 4; }",
        b"\0\x12\x01x\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ),
    (
        P3
        + "message A { map<string, B> m = 1; repeated C b = 2; message B { float f = 1; } message C { bool t = 1; } }",
        b"\0\x0a\x05\x0a\x01k\x12\x00\x12\x00",
    ),
    (
        'syntax = "proto2"; message A { optional int32 a = 1; required string b = 2; optional bool c = 3; }',
        b"\0\x12\x01x",
    ),
    (
        P3 + "package p; enum E { ZERO = 0; ONE = 1; } message A { E e = 1; optional fixed32 f = 2; }",
        b"\0\x08\x01",
    ),
    (
        P3 + "package p; message A { message B { int64 x = 7; } } message C { bytes y = 1; }",
        b"\x04\x00\x00\x38\x05",
    ),
    (
        P3 + 'import "google/protobuf/wrappers.proto"; message A { google.protobuf.Int32Value a = 1; }',
        b"\0\x0a\x02\x08\x05",
    ),
]


@pytest.mark.parametrize("options", OPTIONS, ids=json.dumps)
def test_schemas_of_others_are_read_as_confluents_reads_them(options: dict[str, str]) -> None:
    compare(options, OTHERS)


def compare(options: dict[str, str], cases: list[tuple[str, bytes]]) -> None:
    questions = [
        {"do": "read", "options": options, "schema": schema, "bytes": base64.b64encode(content).decode()}
        for schema, content in cases
    ]
    for number, ((schema, content), answer) in enumerate(zip(cases, asked(questions), strict=True)):
        registry = GivenRegistry()
        registry.register("topic-value", SchemaToRegister("PROTOBUF", schema))
        where = f"case {number}: {schema}, {answer}"
        held = pa.array([b"\0\0\0\0\1" + content], pa.binary())
        parts, refusal = tried(
            lambda held=held, registry=registry: converter(options, registry).from_bytes("topic", held)
        )
        if "mismatching scale" in answer.get("message", ""):
            continue  # Confluent forgets the scale of decimals in maps, and then refuses them
        if any(
            words in answer.get("message", "") for words in ("null used for required", "null value for field that is")
        ):
            continue  # fields of a oneof that are not set, or with the word `optional` where wrappers are expected
        assert (refusal is None) == ("error" not in answer), f"{refusal} {where}"
        if refusal is None:
            (part,) = parts
            said, expected = unpacked(carried(part.column)[0]), unpacked(answer["out"])
            assert said is not None
            assert expected is not None
            assert json.loads(said) == json.loads(expected), where
