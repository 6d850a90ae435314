"""Confluent's Java client and serializers against our registry and a broker of ours, and ours against theirs.

Avro is 7.9.5, Protobuf 5.5.3: the newest that Maven Central has, shaded in other projects' jars.
"""

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.schemas import Avro, Protobuf
from ottla.testing import Broker, SchemaRegistry
from tests.interop.apache_kafka import QUICK_START
from tests.interop.schemas.schema_oracles import shaded

pytestmark = pytest.mark.interop

COUNT = 50
ORDER = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"}, {"name": "customer", "type": ["null", "string"], "default": null}]}"""
PROTO = """
syntax = "proto3";
package shop;
message First { bool b = 1; }
message Order { int64 id = 1; string note = 2; }
"""
SAID = """\
same id: true
id of: true
compatible: true
incompatible: true
refused: error 409 409
versions: [1, 2]
version of: 2
latest: true
by id: true
subjects of id: [java]
level: FULL FULL
mode: READONLY READONLY
read only: error 422 42205
mode again: READWRITE
referred to: error 422 42206
with metadata: 1
contexts: [., .other]
in context: true
missing: error 404 40401
missing version: error 404 40402
deleted: [1]
deleted for good: [1]
all: [java, java-meta]
api: done"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(broker.bootstrap) as registry:
        yield registry


def java(program: str, artifact: str, *arguments: str, input: str = "") -> list[str]:
    source = Path(__file__).with_name(f"{program}.java")
    command = ["java", *QUICK_START, "-cp", f"{shaded(artifact)}/*", str(source), *arguments]
    done = subprocess.run(command, input=input, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.splitlines()


def test_avro_through_a_broker_and_the_client(broker: Broker, registry: SchemaRegistry) -> None:
    client = ottla.SchemaRegistryClient(registry.url)
    orders, keys = Avro(client, ORDER), Avro(client, '"string"')
    with ottla.Producer(
        bootstrap_servers=broker.bootstrap, value_serializer=orders.serializer, key_serializer=keys.key_serializer
    ) as producer:
        for number in range(COUNT):
            producer.send("ours", {"id": number << 33, "customer": None if number % 3 else "Æsop"}, key=f"k{number}")
    lines = java(
        "ConfluentAvroClient",
        "pinot-confluent-avro:1.5.0",
        broker.bootstrap,
        registry.url,
        "theirs",
        "ours",
        str(COUNT),
    )
    told = [json.loads(line.removeprefix("record ")) for line in lines if line.startswith("record ")]
    assert told == [{"id": number << 33, "customer": None if number % 3 else "Æsop"} for number in range(COUNT)]
    assert [line for line in lines if not line.startswith("record ")] == SAID.splitlines()
    read = []
    with ottla.Consumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        value_deserializer=orders.deserializer,
        key_deserializer=keys.key_deserializer,
    ) as consumer:
        consumer.assign([ottla.TopicPartition("theirs", 0)])
        while len(read) < COUNT:
            read += consumer.poll(10)
    line = {"sku": "sku7", "price": 1.75}
    assert (read[7].key, read[7].value) == (
        "k7",
        {"id": 7 << 33, "customer": "c7", "lines": [line, line], "tags": {"a": 7}, "raw": b"\0\7"},
    )


def test_protobuf_both_ways(registry: SchemaRegistry) -> None:
    """5.5.3 wants no members of replies that it does not know."""
    client = ottla.SchemaRegistryClient(registry.url)
    ours = Protobuf(
        client,
        PROTO,
        message="shop.Order",
        value_type=dict,
    )
    content = ours.serialize("ours-protobuf", {"id": 5 << 40, "note": "Æsop"})
    lines = java(
        "ConfluentProtobufClient",
        "pinot-protobuf:0.12.0",
        registry.url,
        "protobuf",
        input=b64encode(content).decode() + "\n",
    )
    order, line = (b64decode(one.removeprefix("written ")) for one in lines if one.startswith("written "))
    read = Protobuf(client, value_type=dict)
    assert read.deserialize("protobuf", order) == {"id": 5 << 40, "customer": "Æsop", "lines": []}
    assert read.deserialize("protobuf", line) == {"sku": "s", "price": 0.25}
    assert [one for one in lines if one.startswith("read ")] == [f'read {{"id":"{5 << 40}","note":"Æsop"}}']
