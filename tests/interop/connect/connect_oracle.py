"""Asks Kafka Connect's own converters and transforms, through `ConnectOracle.java` beside this file."""

import base64
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from ottla.connect.converters.by_name import make_converter
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import AnyColumn
from ottla.connect.data.rows import decimal_of
from ottla.connect.data.schema import DECIMAL, TIME, Field, Schema, Type, scale_of
from tests.interop.apache_kafka import QUICK_START
from tests.interop.connect.kafka_connect import connect_libraries

CARRIER = make_converter("JsonConverter", {"replace.null.with.default": "false"})
_FRACTION = re.compile(rb"-?\d+\.\d+(?:E-?\d+)?")


def asked(questions: Iterable[dict[str, Any]], more: Path | None = None) -> list[dict[str, Any]]:
    """What Kafka answers to each. `more` is a directory with others' jars."""
    source = Path(__file__).with_name("ConnectOracle.java")
    command = ["java", *QUICK_START, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    jars = f"{connect_libraries()}/*" + ("" if more is None else f":{more}/*")
    command += ["-cp", jars, str(source)]
    lines = "\n".join(json.dumps(question) for question in questions)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def carried(column: AnyColumn) -> list[str | None]:
    """The rows of a column as they travel."""
    return [in_base64(content) for content in CARRIER.to_bytes("topic", column).to_pylist()]


def in_base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def unpacked(text: str | None) -> bytes | None:
    """The bytes of an answer, with fractions as Python writes them: before version 19, Java's have more digits than
    they need."""
    return None if text is None else plain_fractions(base64.b64decode(text))


def plain_fractions(content: bytes) -> bytes:
    return _FRACTION.sub(lambda found: repr(float(found[0])).encode(), content)


class RandomData:
    """Schemas and values from a seed. No map has two entries: Java's have an order of their own."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def plain_schema(self) -> Schema:
        random = self.random
        kind = random.randrange(8)
        if kind == 0:
            return schemas.decimal(random.randrange(-2, 9))
        if kind == 1:
            return random.choice([schemas.date(), schemas.time(), schemas.timestamp()])
        if kind == 2:
            return Schema(Type.INT64, name="io.debezium.time.MicroTimestamp", version=1)
        return Schema(random.choice([one for one in Type if one not in (Type.ARRAY, Type.MAP, Type.STRUCT)]))

    def schema(self, depth: int = 2) -> Schema:
        random = self.random
        kind = random.randrange(6) if depth else 0
        if kind <= 2:
            made = self.plain_schema()
        elif kind == 3:
            made = schemas.array(self.schema(depth - 1))
        elif kind == 4:
            keys = Schema(random.choice([Type.STRING, Type.INT32]))
            made = schemas.map_of(keys, self.schema(depth - 1))
        else:
            made = self.struct(depth - 1)
        made = made.but(optional=random.random() < 0.5)
        if made.name is None and random.random() < 0.3:
            made = made.but(name=self.text(1), version=random.choice([None, 1, 7]), doc=random.choice([None, "a doc"]))
        if made.logical is None and random.random() < 0.2:
            made = made.but(parameters={self.text(1): self.text(), "one": "more"})
        if made.type is not Type.STRUCT and random.random() < 0.2:  # Kafka cannot read a struct's default from JSON
            made = made.but(default=self.value(made.but(optional=False)))
        return made

    def struct(self, depth: int = 2, names: str = "abcdef") -> Schema:
        chosen = self.random.sample(names, self.random.randrange(1, len(names)))
        fields = tuple(Field(name, self.schema(depth)) for name in chosen)
        return Schema(Type.STRUCT, name=self.random.choice([None, "shop.Order"]), fields=fields)

    def text(self, least: int = 0) -> str:
        return "".join(self.random.choices('abc"\\/\n\t\x01\x7fé€𝄞 ', k=self.random.randrange(least, 6)))

    def value(self, schema: Schema) -> Any:
        random = self.random
        if schema.optional and random.random() < 0.2:
            return None
        if schema.logical == DECIMAL:
            return decimal_of(random.randrange(-(10**25), 10**25) >> random.randrange(80), scale_of(schema))
        if schema.logical == TIME:
            return random.randrange(86_400_000)
        if schema.logical is not None:
            return random.randrange(-20_000, 20_000) * (1 if schema.type is Type.INT32 else 12_345_678)
        match schema.type:
            case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
                bits = int(schema.type.value[3:])
                return random.randrange(-(1 << bits - 1), 1 << bits - 1) >> random.randrange(bits)
            case Type.FLOAT32:
                return random.randrange(-(1 << 20), 1 << 20) / 8
            case Type.FLOAT64:
                return random.choice(
                    [random.uniform(-10, 10), random.uniform(-1, 1) * 10.0 ** random.randrange(-30, 30)]
                )
            case Type.BOOLEAN:
                return random.random() < 0.5
            case Type.STRING:
                return self.text()
            case Type.BYTES:
                return random.randbytes(random.randrange(6))
            case Type.ARRAY:
                assert schema.items is not None
                return [self.value(schema.items) for _ in range(random.randrange(4))]
            case Type.MAP:
                assert schema.keys is not None
                assert schema.items is not None
                return [(self.value(schema.keys), self.value(schema.items)) for _ in range(random.randrange(2))]
        return {field.name: self.value(field.schema) for field in schema.fields}
