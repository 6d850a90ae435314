"""Confluent's console tools, `ottla tail` and `ottla consume`, with schemas of a registry."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

import ottla
from ottla.cli.main import main
from ottla.schemas import Avro
from ottla.testing import Broker, SchemaRegistry

ORDER = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": null}]}"""
PROTO = 'syntax = "proto3"; package shop; message Item { int32 n = 1; } message Order { int64 id = 1; Item item = 2; }'
PERSON = '{"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}'
TOOL = "import sys; from ottla.cli.kafka import run; sys.exit(run(sys.argv[1], sys.argv[2:]))"

Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def topic(ottla_broker: Broker) -> str:
    name = f"console-{uuid4().hex}"
    ottla_broker.create_topic(name)
    return name


@pytest.fixture
def tool(ottla_broker: Broker, ottla_registry: SchemaRegistry, topic: str) -> Tool:
    def tool(name: str, *properties: str, lines: str = "", **options: object) -> "subprocess.CompletedProcess[str]":
        words = ["--bootstrap-server", ottla_broker.bootstrap, "--topic", topic]
        for given in (f"schema.registry.url={ottla_registry.url}", *properties):
            words += ["--property", given]
        if name.endswith("consumer"):
            words += ["--from-beginning", "--timeout-ms", "3000"]
        for option, value in options.items():
            words += [f"--{option.replace('_', '-')}", str(value)]
        return subprocess.run(
            [sys.executable, "-c", TOOL, name, *words], input=lines, capture_output=True, text=True, timeout=60
        )

    return tool


def lines_of(done: "subprocess.CompletedProcess[str]") -> list[str]:
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("Option --property")]


def test_avro_is_read_and_printed_as_its_json(
    tool: Tool, topic: str, ottla_broker: Broker, ottla_registry: SchemaRegistry
) -> None:
    lines = '{"id": 1, "note": {"string": "soon"}}\n{"id": 2, "note": null}\n'
    assert tool("avro-console-producer", f"value.schema={ORDER}", lines=lines).returncode == 0
    assert lines_of(tool("avro-console-consumer", max_messages=2)) == [
        '{"id":1,"note":{"string":"soon"}}',
        '{"id":2,"note":null}',
    ]
    id = SchemaRegistryClient({"url": ottla_registry.url}).get_latest_version(f"{topic}-value").schema_id
    with_ids = lines_of(tool("avro-console-consumer", "print.schema.ids=true", max_messages=1))
    assert with_ids == [f'{{"id":1,"note":{{"string":"soon"}}}}\t{id}']
    with ottla.Consumer(bootstrap_servers=ottla_broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([ottla.TopicPartition(topic, 0)])
        record = consumer.poll(30.0)[0]
    decode = AvroDeserializer(SchemaRegistryClient({"url": ottla_registry.url}))
    assert decode(record.value, SerializationContext(topic, MessageField.VALUE)) == {"id": 1, "note": "soon"}


def test_keys_have_schemas_or_are_text(tool: Tool) -> None:
    keys = ("parse.key=true", "key.separator=|")
    made = tool("avro-console-producer", 'key.schema="int"', 'value.schema="string"', *keys, lines='5|"five"\n')
    assert made.returncode == 0, made.stderr
    made = tool("avro-console-producer", "key.serializer=string", 'value.schema="string"', *keys, lines='k|"text"\n')
    assert made.returncode == 0, made.stderr
    shown = tool("avro-console-consumer", "print.key=true", "key.separator=|", max_messages=1)
    assert lines_of(shown) == ['5|"five"']
    shown = tool("avro-console-consumer", "print.key=true", "key.deserializer=string", max_messages=2)
    assert lines_of(shown)[-1] == 'k\t"text"'


def test_protobuf_and_json_schema(tool: Tool, topic: str) -> None:
    made = tool(
        "protobuf-console-producer",
        f"value.schema={PROTO}",
        "message.name=shop.Order",
        lines='{"id": 7, "item": {"n": 3}}\n',
    )
    assert made.returncode == 0, made.stderr
    (shown,) = lines_of(tool("protobuf-console-consumer", max_messages=1))
    assert json.loads(shown) == {"id": "7", "item": {"n": 3}}, "JSON of Protobuf has text for 64 bits"


def test_a_line_that_its_schema_refuses_is_named(tool: Tool) -> None:
    refused = tool("json-schema-console-producer", f"value.schema={PERSON}", lines='{"name": "Ada"}\n{"nam": 1}\n')
    assert refused.returncode == 1
    assert "line number 2" in refused.stderr
    assert lines_of(tool("json-schema-console-consumer", max_messages=1)) == ['{"name":"Ada"}']
    missing = tool("avro-console-producer", lines="1\n")
    assert "Must provide value.schema, value.schema.file or value.schema.id" in missing.stderr


def test_tail_and_consume_decode_by_schema(
    topic: str,
    ottla_broker: Broker,
    ottla_registry: SchemaRegistry,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        ottla.SchemaRegistryClient(ottla_registry.url) as registry,
        ottla.Producer(bootstrap_servers=ottla_broker.bootstrap) as producer,
    ):
        orders = Avro(registry, ORDER)
        producer.send(topic, orders.serialize(topic, {"id": 1, "note": "soon"}))
        producer.send(topic, b"no schema")
    where = ["-b", ottla_broker.bootstrap, "--registry", ottla_registry.url, "--decode", "schema", topic]
    assert main(["tail", "--from-beginning", "--no-follow", *where]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert '{"id": 1, "note": "soon"}' in first
    assert "no schema" in second
    assert "not decoded" in second
    file = tmp_path / "out"
    assert main(["consume", "--json", "-q", "-o", str(file), *where]) == 0
    assert [json.loads(line)["value"] for line in file.read_text().splitlines()] == [
        {"id": 1, "note": "soon"},
        "no schema",
    ]
    assert main(["consume", "-q", "-o", str(file), *where]) == 0
    assert file.read_text().splitlines()[0] == '{"id":1,"note":"soon"}'
