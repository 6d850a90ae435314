"""Confluent's Python client and serializers against our registry, with all three formats, as they are."""

import json
import time
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from ottla.testing import Broker, SchemaRegistry

INT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WITH_B = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":1}]}'
PERSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
)


@pytest.fixture
def client(ottla_registry: SchemaRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": ottla_registry.url})


@pytest.fixture
def subject() -> str:
    return f"s-{uuid4().hex}"


def test_schemas_and_versions(client: SchemaRegistryClient, subject: str) -> None:
    first = client.register_schema(subject, Schema(INT, "AVRO"))
    full = client.register_schema_full_response(subject, Schema(WITH_B, "AVRO"))
    assert (full.version, full.schema.schema_str) == (2, WITH_B)
    assert client.get_schema(first).schema_str == INT
    assert subject in client.get_subjects()
    assert client.get_versions(subject) == [1, 2]
    assert client.lookup_schema(subject, Schema(INT, "AVRO")).version == 1
    assert client.get_latest_version(subject).schema_id == full.schema_id
    assert client.get_version(subject, 1).schema_id == first
    assert client.get_schema_by_guid(full.guid).schema_str == WITH_B
    assert client.delete_version(subject, 1) == 1
    assert client.get_versions(subject) == [2]
    with pytest.raises(SchemaRegistryError) as missing:
        client.get_version(subject, 9)
    assert (missing.value.http_status_code, missing.value.error_code) == (404, 40402)
    assert client.delete_subject(subject) == [2]
    assert client.delete_subject(subject, permanent=True) == [1, 2]


def test_compatibility_configs_and_modes(client: SchemaRegistryClient, subject: str) -> None:
    client.register_schema(subject, Schema(INT, "AVRO"))
    assert client.test_compatibility(subject, Schema(WITH_B, "AVRO"))
    assert not client.test_compatibility(subject, Schema('"string"', "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject, Schema('"string"', "AVRO"))
    assert refused.value.http_status_code == 409
    client.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config(subject).compatibility_level == ConfigCompatibilityLevel.FULL
    assert client.get_compatibility(subject) == "FULL"
    client.set_compatibility(subject, "NONE")
    client.register_schema(subject, Schema('"string"', "AVRO"))
    assert client.get_versions(subject) == [1, 2]


def test_metadata_and_rules(client: SchemaRegistryClient, subject: str) -> None:
    rule = Rule("r", "", RuleKind.CONDITION, RuleMode.WRITE, "CEL", None, None, "true", None, None, False)
    schema = Schema(
        INT,
        "AVRO",
        metadata=Metadata(tags=None, properties=MetadataProperties({"owner": "me"}), sensitive=None),
        rule_set=RuleSet([], [rule]),
    )
    client.register_schema(subject, schema)
    found = client.get_latest_with_metadata(subject, {"owner": "me"})
    assert found.schema.metadata.properties.properties == {"owner": "me"}
    assert [one.name for one in found.schema.rule_set.domain_rules] == ["r"]


def test_references(client: SchemaRegistryClient, subject: str) -> None:
    base = '{"type":"record","name":"Base","fields":[{"name":"x","type":"int"}]}'
    client.register_schema(f"{subject}-base", Schema(base, "AVRO"))
    reference = SchemaReference("Base", f"{subject}-base", 1)
    user = '{"type":"record","name":"User","fields":[{"name":"base","type":"Base"}]}'
    id = client.register_schema(subject, Schema(user, "AVRO", [reference]))
    assert client.get_schema(id).references == [reference]
    assert client.get_referenced_by(f"{subject}-base", 1) == [id] if hasattr(client, "get_referenced_by") else True


def round_trip(broker: Broker, topic: str, value: bytes) -> bytes:
    """Through a topic, as an application does it."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            consumer.close()
            found: bytes = message.value()
            return found
    raise TimeoutError("nothing came")


def test_avro(client: SchemaRegistryClient, ottla_broker: Broker, ottla_topic: str) -> None:
    context = SerializationContext(ottla_topic, MessageField.VALUE)
    data = AvroSerializer(client, INT)({"a": 7}, context)
    assert data is not None
    assert AvroDeserializer(client)(round_trip(ottla_broker, ottla_topic, data), context) == {"a": 7}


def test_json_schema(client: SchemaRegistryClient, ottla_broker: Broker, ottla_topic: str) -> None:
    context = SerializationContext(ottla_topic, MessageField.VALUE)
    data = JSONSerializer(PERSON, client)({"name": "A", "age": 3}, context)
    assert data is not None
    read: Any = JSONDeserializer(PERSON, schema_registry_client=client)(
        round_trip(ottla_broker, ottla_topic, data), context
    )
    assert read == {"name": "A", "age": 3}


def message_classes() -> tuple[Any, Any]:
    """A message that has another of another file, as protoc would have made them."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    part = descriptor_pb2.FileDescriptorProto(name="shop/part.proto", package="shop", syntax="proto3")
    part.message_type.add(name="Part").field.add(name="number", number=1, type=5, label=1)
    order = descriptor_pb2.FileDescriptorProto(
        name="shop/order.proto",
        package="shop",
        syntax="proto3",
        dependency=["shop/part.proto", "google/protobuf/timestamp.proto"],
    )
    message = order.message_type.add(name="Order")
    message.field.add(name="part", number=1, type=11, label=1, type_name=".shop.Part")
    message.field.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    pool.Add(part)
    pool.Add(order)
    found = [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in ("shop.Order", "shop.Part")]
    return found[0], found[1]


def test_protobuf(client: SchemaRegistryClient, ottla_broker: Broker, ottla_topic: str) -> None:
    """The client sends descriptors in base64, with what they import as references."""
    order_class, part_class = message_classes()
    context = SerializationContext(ottla_topic, MessageField.VALUE)
    order = order_class(part=part_class(number=7), at={"seconds": 5})
    data = ProtobufSerializer(order_class, client, {"use.deprecated.format": False})(order, context)
    assert data is not None
    read = ProtobufDeserializer(order_class, {"use.deprecated.format": False}, client)(
        round_trip(ottla_broker, ottla_topic, data), context
    )
    assert (read.part.number, read.at.seconds) == (7, 5)


def test_protobuf_is_stored_as_text(client: SchemaRegistryClient, ottla_registry: SchemaRegistry, subject: str) -> None:
    order_class, _ = message_classes()
    context = SerializationContext(subject, MessageField.VALUE)
    serialize = ProtobufSerializer(order_class, client, {"use.deprecated.format": False})
    assert serialize(order_class(), context) is not None
    fresh = SchemaRegistryClient({"url": ottla_registry.url})
    stored = fresh.get_latest_version(f"{subject}-value").schema
    assert stored.schema_str.startswith('syntax = "proto3";')
    assert "message Order {" in stored.schema_str
    assert [reference.name for reference in stored.references] == ["shop/part.proto"]
