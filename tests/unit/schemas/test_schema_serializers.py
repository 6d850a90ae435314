"""Serializers on a registry: what they ask, what they frame, and what they make of it."""

import asyncio
import json
import sys
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

import ottla.schemas
from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.registry_port import Reference
from ottla.schemas.schema import parse
from ottla.schemas.serializing.framing import Frame, index_bytes, prefix, read_frame, read_indexes
from ottla.schemas.serializing.rules import RuleFailed
from ottla.schemas.serializing.serializers import Kept, settings_of
from ottla.schemas.serializing.subjects import strategy
from tests.unit.schemas.registry_in_memory import AsyncRegistryInMemory, NotThere, RegistryInMemory

ORDER = json.dumps(
    {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
    }
)
OLDER = json.dumps({"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "int"}]})
PROTO = """syntax = "proto3"; package shop; message Outer { message Order { int64 id = 1; repeated string tags = 2; } }
message Other { string s = 1; optional bytes b = 2; Kind k = 3; map<string, Outer.Order> m = 4; }
enum Kind { A = 0; B = 1; }"""
PERSON = json.dumps(
    {
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
)


@pytest.fixture
def registry() -> RegistryInMemory:
    return RegistryInMemory()


@dataclass
class Order:
    id: int
    note: str | None = None


def test_a_value_is_framed_with_the_id_of_its_schema(registry: RegistryInMemory) -> None:
    avro = ottla.schemas.Avro(registry, ORDER)
    content = avro.serialize("orders", {"id": 5})
    assert content == b"\0\0\0\0\1\x0a\0"
    assert avro.deserialize("orders", content) == {"id": 5, "note": None}
    assert avro.serialize("orders", None) is None
    assert avro.deserialize("orders", None) is None


def test_the_registry_is_asked_once(registry: RegistryInMemory) -> None:
    avro = ottla.schemas.Avro(registry, ORDER)
    for number in range(10):
        avro.deserialize("orders", avro.serialize("orders", {"id": number}))
    assert registry.calls == [("register", "orders-value", False), ("schema_by_id", 1, "orders-value")]


def test_keys_have_a_subject_of_their_own(registry: RegistryInMemory) -> None:
    avro = ottla.schemas.Avro(registry, '"string"')
    headers: list[tuple[str, bytes | None]] = []
    assert avro.key_serializer("orders", "k", headers) == b"\0\0\0\0\1\2k"
    assert avro.key_deserializer("orders", b"\0\0\0\0\1\2k", headers) == "k"
    assert registry.calls[0] == ("register", "orders-key", False)


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ("topic", "orders-value"),
        ("record", "shop.Order"),
        ("topic_record", "orders-shop.Order"),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", "orders-shop.Order"),
        (lambda topic, is_key, record: f"{record}/{topic}/{is_key}", "shop.Order/orders/False"),
    ],
)
def test_a_subject_is_named_as_the_strategy_says(given: Any, subject: str, registry: RegistryInMemory) -> None:
    ottla.schemas.Avro(registry, ORDER, subject_name_strategy=given).serialize("orders", {"id": 1})
    assert list(registry.subjects) == [subject]


def test_strategies_say_what_they_need() -> None:
    with pytest.raises(CannotEncode, match="named after the topic, and none was given"):
        strategy("topic")(None, False, "r")
    with pytest.raises(CannotEncode, match="named after the record, and the schema is none"):
        strategy("record")("t", False, None)
    with pytest.raises(ValueError, match="one of topic, record, topic_record"):
        strategy("nonsense")


def test_settings_have_confluents_names() -> None:
    assert settings_of({"auto.register.schemas": False, "use.latest.version": True}).use_latest_version
    with pytest.raises(ValueError, match="cannot both be on"):
        settings_of({"auto_register_schemas": True, "use_latest_version": True})
    with pytest.raises(TypeError, match="no such setting: colour"):
        settings_of({"colour": "red"})


def test_what_is_not_to_be_registered_is_looked_up(registry: RegistryInMemory) -> None:
    avro = ottla.schemas.Avro(registry, ORDER, auto_register_schemas=False, normalize_schemas=True)
    with pytest.raises(NotThere):
        avro.serialize("orders", {"id": 1})
    ottla.schemas.Avro(registry, ORDER).serialize("orders", {"id": 1})
    assert avro.serialize("orders", {"id": 1}) == b"\0\0\0\0\1\2\0"
    assert registry.calls[-1] == ("look_up", "orders-value", True)


def test_the_latest_version_or_a_given_id_is_written_with(registry: RegistryInMemory) -> None:
    ottla.schemas.Avro(registry, ORDER).serialize("orders", {"id": 1})
    latest = ottla.schemas.Avro(registry, OLDER, auto_register_schemas=False, use_latest_version=True)
    assert latest.serialize("orders", {"id": 1}) == b"\0\0\0\0\1\2\0"
    without_one = ottla.schemas.Avro(registry)
    assert without_one.serialize("orders", {"id": 1}) == b"\0\0\0\0\1\2\0"
    given = ottla.schemas.Avro(registry, use_schema_id=1, auto_register_schemas=False)
    assert given.serialize("orders", {"id": 1}) == b"\0\0\0\0\1\2\0"
    by_metadata = ottla.schemas.Avro(registry, use_latest_with_metadata={"major": "1"}, auto_register_schemas=False)
    assert by_metadata.serialize("orders", {"id": 1}) == b"\0\0\0\0\1\2\0"
    assert registry.calls[-1] == ("latest_with_metadata", "orders-value", {"major": "1"})


def test_what_was_written_is_read_with_another_schema(registry: RegistryInMemory) -> None:
    old = ottla.schemas.Avro(registry, OLDER).serialize("orders", {"id": 1})
    assert ottla.schemas.Avro(registry, reader_schema=ORDER).deserialize("orders", old) == {"id": 1, "note": None}
    ottla.schemas.Avro(registry, ORDER).serialize("orders", {"id": 1})
    latest = ottla.schemas.Avro(registry, use_latest_version=True, auto_register_schemas=False)
    assert latest.deserialize("orders", old) == {"id": 1, "note": None}


def test_ids_may_stand_in_headers(registry: RegistryInMemory) -> None:
    avro = ottla.schemas.Avro(registry, ORDER, schema_id_in="header")
    headers: list[tuple[str, bytes | None]] = [("other", b"x")]
    content = avro.serialize("orders", {"id": 5}, headers)
    assert content == b"\x0a\0"
    assert headers == [("other", b"x"), ("__value_schema_id", b"\1" + bytes(15) + b"\1")]
    avro.serialize("orders", {"id": 5}, headers)
    assert len(headers) == 2
    assert avro.deserialize("orders", content, headers) == {"id": 5, "note": None}
    with pytest.raises(CannotEncode, match="there are no headers to add it to"):
        avro.serialize("orders", {"id": 5})


def test_dataclasses_and_models_go_in_and_come_out(registry: RegistryInMemory) -> None:
    pydantic = pytest.importorskip("pydantic")
    avro = ottla.schemas.Avro(registry, ORDER, value_type=Order)
    content = avro.serialize("orders", Order(5, "x"))
    assert avro.deserialize("orders", content) == Order(5, "x")

    class Model(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        id: int
        note: str | None = None

    modelled = ottla.schemas.Avro(registry, ORDER, value_type=Model)
    assert modelled.serialize("orders", Model(id=5, note="x")) == content
    assert modelled.deserialize("orders", content) == Model(id=5, note="x")


def test_references_are_sent_along(registry: RegistryInMemory) -> None:
    line = '{"type":"record","name":"Line","fields":[]}'
    ottla.schemas.Avro(registry, line, subject_name_strategy="record").serialize("x", {})
    order = '{"type":"record","name":"O","fields":[{"name":"l","type":"Line"}]}'
    avro = ottla.schemas.Avro(
        registry, order, references={"Line": line}, registered_references=(Reference("Line", "Line", 1),)
    )
    assert avro.deserialize("orders", avro.serialize("orders", {"l": {}})) == {"l": {}}
    assert registry.subjects["orders-value"][0].references == (Reference("Line", "Line", 1),)


def test_bytes_without_a_frame_are_refused_or_null(registry: RegistryInMemory) -> None:
    avro = ottla.schemas.Avro(registry, ORDER)
    for content in (b"", b"\2", b"\0\0\0", b"hello"):
        with pytest.raises(CannotDecode, match="no id of a schema"):
            avro.deserialize("orders", content)
    avro.serialize("orders", {"id": 1})
    with pytest.raises(CannotDecode, match="ends in the middle"):
        avro.deserialize("orders", b"\0\0\0\0\1")
    lenient = ottla.schemas.Avro(registry, on_error="null")
    assert lenient.deserialize("orders", b"hello") is None
    assert lenient.deserialize("orders", b"\0\0\0\0\1") is None
    with pytest.raises(NotThere):  # a registry that does not answer is no fault of the bytes
        lenient.deserialize("orders", b"\0\0\0\0\x63\2")


def test_other_clients_call_it_their_way(registry: RegistryInMemory) -> None:
    avro = ottla.schemas.Avro(registry, ORDER)
    serialize, deserialize = avro.for_confluent_kafka()
    context = SimpleNamespace(topic="orders", field="value", headers={"a": b"x"})
    assert deserialize(serialize({"id": 1}, context), context) == {"id": 1, "note": None}
    to_bytes, from_bytes = avro.for_topic("orders", is_key=True)
    assert from_bytes(to_bytes({"id": 1})) == {"id": 1, "note": None}
    assert list(registry.subjects) == ["orders-value", "orders-key"]


def test_asyncio_has_the_same(registry: RegistryInMemory) -> None:
    async def both_ways() -> Any:
        avro = ottla.schemas.AsyncAvro(AsyncRegistryInMemory(registry), ORDER)
        content = await avro.serialize("orders", {"id": 5})
        assert await avro.serialize("orders", None) is None
        with pytest.raises(NotThere):
            await avro.deserialize("orders", b"\0\0\0\0\x63\2")
        return await avro.deserialize("orders", content)

    assert asyncio.run(both_ways()) == {"id": 5, "note": None}


# Protobuf.


def test_a_message_is_framed_with_its_indexes(registry: RegistryInMemory) -> None:
    protobuf = ottla.schemas.Protobuf(registry, PROTO, message="shop.Outer.Order", value_type=dict)
    content = protobuf.serialize("orders", {"id": 5, "tags": ["a"]})
    assert content == b"\0\0\0\0\1" + b"\4\0\0" + b"\x08\x05\x12\x01a"
    assert protobuf.deserialize("orders", content) == {"id": 5, "tags": ["a"]}
    first = ottla.schemas.Protobuf(registry, PROTO)
    content = first.serialize("orders", {})
    assert content == b"\0\0\0\0\1\0"
    assert first.deserialize("orders", content).DESCRIPTOR.full_name == "shop.Outer"


def test_objects_of_generated_classes_bring_their_schema(registry: RegistryInMemory) -> None:
    line = 'syntax = "proto3"; package s; message Line { int32 n = 1; }'
    order = 'syntax = "proto3"; package s; import "line.proto"; message Before {} message Order { Line l = 1; }'
    generated = parse("PROTOBUF", order, {"line.proto": line}).message_class("s.Order")  # type: ignore[attr-defined]
    value = generated()
    value.l.n = 7
    protobuf = ottla.schemas.Protobuf(registry, value_type=generated)
    content = protobuf.serialize("orders", value)
    assert content[:7] == b"\0\0\0\0\2\2\2"
    assert protobuf.deserialize("orders", content) == value
    assert list(registry.subjects) == ["line.proto", "orders-value"]
    assert registry.subjects["orders-value"][0].references == (Reference("line.proto", "line.proto", 1),)
    plain = ottla.schemas.Protobuf(registry, value_type=dict)
    assert plain.deserialize("orders", content) == {"l": {"n": 7}}


class Kind(Enum):
    A = 0
    B = 1


@dataclass
class Inner:
    id: int
    tags: list[str]


@dataclass
class Other:
    s: str
    k: Kind
    m: dict[str, Inner]
    b: bytes | None = None


def test_messages_become_objects_of_the_application(registry: RegistryInMemory) -> None:
    protobuf = ottla.schemas.Protobuf(registry, PROTO, message="shop.Other", value_type=Other)
    value = Other("x", Kind.B, {"a": Inner(1, ["t"])}, b"\xff")
    assert protobuf.deserialize("orders", protobuf.serialize("orders", value)) == value
    bare = Other("", Kind.A, {})
    assert protobuf.deserialize("orders", protobuf.serialize("orders", bare)) == bare
    with pytest.raises(CannotEncode, match="no field named"):
        protobuf.serialize("orders", {"nonsense": 1})
    with pytest.raises(CannotDecode, match=r"is no shop\.Other"):
        protobuf.deserialize("orders", b"\0\0\0\0\1\2\2\x0a\xff")
    with pytest.raises(CannotDecode, match="Invalid message indexes"):
        protobuf.deserialize("orders", b"\0\0\0\0\1\2\x0e")


# JSON.


def test_json_is_held_against_its_schema_both_ways(registry: RegistryInMemory) -> None:
    as_json = ottla.schemas.Json(registry, PERSON)
    content = as_json.serialize("people", {"name": "é", "age": 3})
    assert content == b'\0\0\0\0\1{"name":"\xc3\xa9","age":3}'
    assert as_json.deserialize("people", content) == {"name": "é", "age": 3}
    with pytest.raises(CannotEncode, match=r'is not of type "integer" \(at age\)'):
        as_json.serialize("people", {"name": "x", "age": "y"})
    with pytest.raises(CannotDecode, match='"name" is a required property'):
        as_json.deserialize("people", b"\0\0\0\0\1{}")
    with pytest.raises(CannotDecode, match="is not JSON"):
        as_json.deserialize("people", b"\0\0\0\0\1{")
    with pytest.raises(CannotDecode, match="is not JSON"):
        as_json.deserialize("people", b"\0\0\0\0\1" + b"[" * 100_000)
    lax = ottla.schemas.Json(registry, PERSON, validate=False)
    assert lax.deserialize("people", b"\0\0\0\0\1{}") == {}
    with pytest.raises(CannotEncode, match="not JSON compliant"):
        lax.serialize("people", {"name": float("nan")})


@dataclass
class Person:
    name: str
    age: int | None = None


def test_json_knows_the_objects_of_an_application(registry: RegistryInMemory) -> None:
    as_json = ottla.schemas.Json(registry, PERSON.replace('"integer"', '["integer", "null"]'), value_type=Person)
    assert as_json.deserialize("people", as_json.serialize("people", Person("a"))) == Person("a")


# Rules.


@pytest.mark.slow
def test_conditions_and_transformations_run(registry: RegistryInMemory) -> None:
    pytest.importorskip("celpy")
    tagged = ORDER.replace('"name": "note"', '"name": "note", "confluent:tags": ["PII"]')
    ottla.schemas.Avro(registry, tagged).serialize("orders", {"id": 1})
    registry.give_rules(
        "orders-value",
        {"name": "positive", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "message.id > 0"},
        {"name": "mask", "kind": "TRANSFORM", "type": "CEL_FIELD", "mode": "WRITE", "tags": ["PII"],
         "expr": "typeName == 'STRING' ; value + '-masked'"},
        {"name": "off", "type": "NONSENSE", "disabled": True},
    )  # fmt: skip
    avro = ottla.schemas.Avro(registry, use_latest_version=True, auto_register_schemas=False)
    content = avro.serialize("orders", {"id": 5, "note": "secret"})
    assert avro.deserialize("orders", content) == {"id": 5, "note": "secret-masked"}
    with pytest.raises(
        RuleFailed, match=r"rule positive of orders-value: the condition message\.id > 0 is false"
    ) as raised:
        avro.serialize("orders", {"id": 0})
    assert raised.value.action == "ERROR"


def test_a_rule_that_cannot_run_is_an_error_that_names_it(registry: RegistryInMemory) -> None:
    ottla.schemas.Json(registry, PERSON).serialize("people", {"name": "x"})
    for type, expr, message in (
        ("ENCRYPT", "", "rule r of people-value: rules of type ENCRYPT cannot run here"),
        ("CEL", "1 +", "rule r of people-value: it cannot run"),
    ):
        registry.give_rules("people-value", {"name": "r", "type": type, "mode": "WRITEREAD", "expr": expr})
        as_json = ottla.schemas.Json(registry, use_latest_version=True, auto_register_schemas=False)
        with pytest.raises(RuleFailed) as raised:
            as_json.serialize("people", {"name": "x"})
        assert message in str(raised.value)


def test_a_rule_may_say_that_its_failure_does_not_matter(registry: RegistryInMemory) -> None:
    pytest.importorskip("celpy")
    ottla.schemas.Json(registry, PERSON).serialize("people", {"name": "x"})
    rule = {"name": "r", "type": "CEL", "mode": "WRITEREAD", "kind": "CONDITION", "expr": "message.name == 'y'"}
    registry.give_rules("people-value", {**rule, "onFailure": "NONE,DLQ"})
    as_json = ottla.schemas.Json(registry, use_latest_version=True, auto_register_schemas=False)
    content = as_json.serialize("people", {"name": "x"})
    with pytest.raises(RuleFailed) as raised:
        as_json.deserialize("people", content)
    assert raised.value.action == "DLQ"


# Framing, caches, start-up.


@pytest.mark.parametrize(
    ("indexes", "content"),
    [((0,), b"\0"), ((1,), b"\2\2"), ((0, 0), b"\4\0\0"), ((2, 1), b"\4\4\2"), ((100,), b"\2\xc8\x01")],
)
def test_message_indexes_are_zigzag_varints(indexes: tuple[int, ...], content: bytes) -> None:
    assert index_bytes(indexes) == content
    assert read_indexes(b"xx" + content + b"rest", 2) == (indexes, 2 + len(content))


@pytest.mark.parametrize("content", [b"", b"\x80", b"\2", b"\1", b"\xff\xff\xff\xff\xff\x0f", b"\xd0\x0f"])
def test_message_indexes_that_are_none_are_refused(content: bytes) -> None:
    with pytest.raises(CannotDecode):
        read_indexes(content, 0)


def test_a_frame_is_read_from_the_last_header_or_from_the_bytes() -> None:
    assert read_frame(prefix(7, (1,)) + b"x", (), False, True) == Frame(7, None, (1,), 7)
    header = b"\1" + bytes(range(16))
    guid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    headers = [("__value_schema_id", b"\1" + bytes(16)), ("__value_schema_id", header), ("__key_schema_id", b"")]
    assert read_frame(b"x", headers, False, False) == Frame(None, guid, (), 0)
    assert read_frame(header + b"x", (), False, False) == Frame(None, guid, (), 17)


def test_what_is_kept_is_bounded() -> None:
    kept: Kept[int] = Kept(3)
    for number in range(10):
        kept.put(number, number)
    assert len(kept) == 3
    assert (kept.get(6), kept.get(7)) == (None, 7)


def test_the_room_loads_nothing_that_is_not_asked_for() -> None:
    import subprocess

    program = (
        "import sys, ottla.schemas;"
        "print(*(name for name in sys.modules if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"__main__", "__mp_main__", "ottla", "ottla.schemas"} | {
        name for name in done.stdout.split() if name.startswith(("_", "sitecustomize", "distutils"))
    }
