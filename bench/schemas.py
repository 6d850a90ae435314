"""Serializers beside confluent-kafka's, and Avro to Arrow beside fastavro, in one process: `python bench/schemas.py`.

Both have a registry in memory and the same values; what each writes, the other reads. Ratios are ours over theirs:
lower is better. Rows are decoded 2,000 at a time.
"""

import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from compare import Comparison, compare, print_table, seconds
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

sys.path.append(str(Path(__file__).resolve().parent.parent))

from tests.unit.schemas.registry_in_memory import RegistryInMemory

from ottla.schemas import Avro, Json, Protobuf
from ottla.schemas.avro.arrow import ArrowDecoder
from ottla.schemas.avro.codec import IS_COMPILED
from ottla.schemas.schema import parse

SERIALIZER_TARGET, ARROW_TARGET = 1 / 2, 1 / 20
ROWS = 2_000

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"]}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string", "maxLength": 40},
        "amount": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "customer"],
}
PROTO = """syntax = "proto3"; package bench;
message Order {
  int64 id = 1; string customer = 2; double amount = 3; repeated string tags = 4; optional string note = 5;
}"""
CONTEXT = SerializationContext("orders", MessageField.VALUE)


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": f"customer-{number % 1000}",
        "amount": number * 1.5,
        "status": ("NEW", "PAID", "SENT")[number % 3],
        "note": None if number % 3 else "some note",
        "tags": ["a", "bb"],
        "at": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
    }


def contenders() -> list[tuple[str, Callable[[], object], Callable[[], object], float]]:
    rows: list[tuple[str, Callable[[], object], Callable[[], object], float]] = []
    theirs = SchemaRegistryClient.new_client({"url": "mock://"})
    text = json.dumps(AVRO)
    avro = Avro(RegistryInMemory(), text)
    their_avro, their_reader = AvroSerializer(theirs, text), AvroDeserializer(theirs)
    value = order(5)
    content, their_content = avro.serialize("orders", value), their_avro(value, CONTEXT)
    assert content is not None
    assert content[5:] == their_content[5:]
    assert avro.deserialize("orders", content) == their_reader(their_content, CONTEXT)
    rows.append(
        ("Avro, write", lambda: avro.serialize("orders", value), lambda: their_avro(value, CONTEXT), SERIALIZER_TARGET)
    )
    rows.append(
        (
            "Avro, read",
            lambda: avro.deserialize("orders", content),
            lambda: their_reader(their_content, CONTEXT),
            SERIALIZER_TARGET,
        )
    )

    json_text = json.dumps(JSON)
    as_json = Json(RegistryInMemory(), json_text)
    their_json, their_json_reader = JSONSerializer(json_text, theirs), JSONDeserializer(json_text)
    json_context = SerializationContext("json-orders", MessageField.VALUE)
    plain = {name: value[name] for name in ("id", "customer", "amount", "tags")}
    json_content, their_json_content = as_json.serialize("orders", plain), their_json(plain, json_context)
    rows.append(
        (
            "JSON, write",
            lambda: as_json.serialize("orders", plain),
            lambda: their_json(plain, json_context),
            SERIALIZER_TARGET,
        )
    )
    rows.append(
        (
            "JSON, read",
            lambda: as_json.deserialize("orders", json_content),
            lambda: their_json_reader(their_json_content, json_context),
            SERIALIZER_TARGET,
        )
    )

    message_class = parse("PROTOBUF", PROTO).message_class()  # type: ignore[attr-defined]
    message = message_class(id=5, customer="customer-5", amount=7.5, tags=["a", "bb"], note="x")
    protobuf = Protobuf(RegistryInMemory(), value_type=message_class)
    no_old_format = {"use.deprecated.format": False}
    their_protobuf = ProtobufSerializer(message_class, theirs, no_old_format)
    their_protobuf_reader = ProtobufDeserializer(message_class, no_old_format)
    proto_context = SerializationContext("proto-orders", MessageField.VALUE)
    proto_content, their_proto_content = protobuf.serialize("orders", message), their_protobuf(message, proto_context)
    assert proto_content is not None
    assert proto_content[5:] == their_proto_content[5:]
    rows.append(
        (
            "Protobuf, write",
            lambda: protobuf.serialize("orders", message),
            lambda: their_protobuf(message, proto_context),
            SERIALIZER_TARGET,
        )
    )
    rows.append(
        (
            "Protobuf, read",
            lambda: protobuf.deserialize("orders", proto_content),
            lambda: their_protobuf_reader(their_proto_content, proto_context),
            SERIALIZER_TARGET,
        )
    )
    rows.append(to_arrow(avro, text))
    return rows


def to_arrow(avro: Avro, text: str) -> tuple[str, Callable[[], object], Callable[[], object], float]:
    contents = [avro.serialize("orders", order(number)) for number in range(ROWS)]
    values = pa.array(contents, pa.binary())
    type = parse("AVRO", text).type  # type: ignore[attr-defined]
    decoder = ArrowDecoder(type)
    decoder.know(1, type)
    parsed = fastavro.parse_schema(json.loads(text))

    def ours() -> Any:
        assert decoder.append_framed(values) == ROWS
        return decoder.finish()

    schema = ours().schema

    def theirs() -> Any:
        decoded = [fastavro.schemaless_reader(io.BytesIO(content[5:]), parsed, None) for content in values.to_pylist()]
        return pa.RecordBatch.from_pylist(decoded, schema=schema)

    assert ours().to_pylist() == theirs().to_pylist()
    return f"Avro to Arrow, {ROWS} rows", ours, theirs, ARROW_TARGET


def main() -> int:
    print(f"Avro's codec is {'compiled' if IS_COMPILED else 'in Python'}")
    rows, missed = [], []
    for name, ours, theirs, target in contenders():
        found: Comparison = compare(ours, theirs, round_seconds=0.02)
        rows.append(
            (name, seconds(found.ours), seconds(found.theirs), f"{found.ratio:.3f}", found.spread, f"{target:.3f}")
        )
        if found.ratio > target:
            missed.append(name)
    print_table(("work", "ours", "theirs", "ratio", "quartiles", "target"), rows)
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
