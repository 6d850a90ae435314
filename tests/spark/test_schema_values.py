"""`value.format` avro, protobuf and json with a registry: columns of a schema, in the source and in the sink."""

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import ottla
from ottla import Producer
from ottla.schemas import Avro, Json, Protobuf
from ottla.schemas.registry_port import SchemaToRegister
from ottla.spark.schemas.decoding import SchemaValues
from ottla.spark.schemas.schema_options import LATEST, RegistrySettings, WantedSchemas, find_schemas
from ottla.testing import SchemaRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Read = Callable[..., Any]

ORDER = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
  {"name": "id", "type": "long"},
  {"name": "note", "type": ["null", "string"], "default": null},
  {"name": "price", "default": "\\u0000",
   "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
  {"name": "counts", "type": {"type": "map", "values": "int"}, "default": {}},
  {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []}]}"""
OLDER = '{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "int"}]}'
PAYMENT = '{"type": "record", "name": "Payment", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}'
PROTO = """syntax = "proto3"; package shop;
message Order { int64 id = 1; optional string note = 2; repeated string tags = 3; map<string, int32> counts = 4; }
message Payment { int64 cents = 1; }
"""
PERSON = """{"title": "Person", "type": "object", "required": ["name"], "properties": {
  "name": {"type": "string"}, "age": {"type": ["null", "integer"]},
  "tags": {"type": "array", "items": {"type": "string"}}}}"""
AT = datetime.datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=datetime.UTC)


@pytest.fixture
def registry(ottla_registry: SchemaRegistry) -> Iterator[ottla.SchemaRegistryClient]:
    with ottla.SchemaRegistryClient(ottla_registry.url) as client:
        yield client


@pytest.fixture
def read_as(read: Read, ottla_registry: SchemaRegistry) -> Read:
    def read_as(value_format: str, **options: object) -> Any:
        named = {name.replace("_", "."): value for name, value in options.items()}
        return read(**{"value.format": value_format, "schema.registry.url": ottla_registry.url, **named}).load()

    return read_as


@pytest.fixture
def write_as(write: Callable[..., None], ottla_registry: SchemaRegistry) -> Callable[..., None]:
    def write_as(frame: Any, value_format: str, **options: object) -> None:
        named = {name.replace("_", "."): value for name, value in options.items()}
        write(frame, **{"value.format": value_format, "schema.registry.url": ottla_registry.url, **named})

    return write_as


def rows(frame: Any) -> list[Any]:
    return [
        None if row.value is None else row.value.asDict(recursive=True) for row in frame.orderBy("offset").collect()
    ]


def test_avro_of_several_schemas_is_read_as_the_latest(
    read_as: Read, producer: Producer, registry: ottla.SchemaRegistryClient, ottla_topic: str
) -> None:
    older, newer = Avro(registry, OLDER), Avro(registry, ORDER)
    full = {"id": 2, "note": "n", "price": Decimal("12.50"), "at": AT, "counts": {"a": 1}, "tags": ["x", "y"]}
    values = [older.serialize(ottla_topic, {"id": 1}), None, newer.serialize(ottla_topic, full)]
    for value in values:
        producer.send(ottla_topic, value)
    producer.flush()
    frame = read_as("avro")
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:bigint,note:string,price:decimal(9,2),at:timestamp,counts:map<string,int>,tags:array<string>>"
    )
    first, nothing, last = rows(frame.selectExpr("offset", "value"))
    assert nothing is None
    assert (first["id"], first["note"], first["price"], first["tags"]) == (1, None, Decimal("0.00"), [])
    assert {**last, "at": None} == {**full, "at": None}
    assert frame.selectExpr("string(max(value.at)) t").first().t == "2026-03-01 12:00:00.123"
    # What was written as a long cannot be read as an int: Avro's resolution has no such step.
    by_version = read_as("avro", value_subject=f"{ottla_topic}-value", value_version=1, value_onError="drop")
    assert rows(by_version) == [{"id": 1}, None]
    assert by_version.schema["value"].dataType.simpleString() == "struct<id:int>"
    by_id = read_as("avro", value_schemaId=registry.version(f"{ottla_topic}-value", 1).id, value_onError="drop")
    assert rows(by_id) == rows(by_version)


def test_several_records_in_one_topic_are_a_struct_with_a_field_for_each(
    read_as: Read, producer: Producer, registry: ottla.SchemaRegistryClient, ottla_topic: str
) -> None:
    orders, payments = (Avro(registry, text, subject_name_strategy="record") for text in (OLDER, PAYMENT))
    producer.send(ottla_topic, orders.serialize(ottla_topic, {"id": 5}))
    producer.send(ottla_topic, payments.serialize(ottla_topic, {"cents": 99}))
    producer.send(ottla_topic, None)
    producer.flush()
    frame = read_as("avro", value_subject="shop.Order,shop.Payment")
    assert frame.schema["value"].dataType.simpleString() == "struct<Order:struct<id:int>,Payment:struct<cents:bigint>>"
    assert rows(frame) == [{"Order": {"id": 5}, "Payment": None}, {"Order": None, "Payment": {"cents": 99}}, None]


def test_records_of_one_name_in_two_namespaces_are_told_apart(
    registry: ottla.SchemaRegistryClient, ottla_registry: SchemaRegistry
) -> None:
    texts = [OLDER.replace('"shop"', f'"{space}"') for space in ("one", "two", "three")]
    one, two, three = (Avro(registry, text, subject_name_strategy="record") for text in texts)
    values = [two.serialize("t", {"id": 2}), one.serialize("t", {"id": 1})]
    strange = three.serialize("t", {"id": 3})
    settings = RegistrySettings(url=ottla_registry.url)
    wanted = WantedSchemas("AVRO", settings, ("one.Order", "two.Order"), LATEST, None, ())
    order = pa.struct([pa.field("id", pa.int32())])
    decoder = SchemaValues(
        wanted, find_schemas(wanted), pa.struct([pa.field("one_Order", order), pa.field("two_Order", order)])
    )
    assert decoder.ddl() == "STRUCT<`one_Order`: STRUCT<`id`: INT>, `two_Order`: STRUCT<`id`: INT>>"
    assert decoder.decode(pa.array(values, pa.binary())).to_pylist() == [
        {"one_Order": None, "two_Order": {"id": 2}},
        {"one_Order": {"id": 1}, "two_Order": None},
    ]
    with pytest.raises(ValueError, match=r"it is a three.Order, and none of one.Order, two.Order"):
        decoder.decode(pa.array([strange], pa.binary()))


def test_protobuf_messages(
    read_as: Read, producer: Producer, registry: ottla.SchemaRegistryClient, ottla_topic: str
) -> None:
    orders = Protobuf(registry, PROTO, message="shop.Order")
    payments = Protobuf(registry, PROTO, message="shop.Payment")
    producer.send(ottla_topic, orders.serialize(ottla_topic, {"id": 5, "note": "n", "tags": ["a"], "counts": {"c": 7}}))
    producer.send(ottla_topic, orders.serialize(ottla_topic, {"id": 6}))
    producer.flush()
    assert rows(read_as("protobuf")) == [
        {"id": 5, "note": "n", "tags": ["a"], "counts": {"c": 7}},
        {"id": 6, "note": None, "tags": [], "counts": {}},
    ]
    producer.send(ottla_topic, payments.serialize(ottla_topic, {"cents": 3}))
    producer.flush()
    assert [
        sorted(k for k, v in row.items() if v)
        for row in rows(read_as("protobuf", value_message="shop.Order,shop.Payment"))
    ] == [["Order"], ["Order"], ["Payment"]]
    with pytest.raises(Exception, match=r"it is a shop.Payment, and not a shop.Order"):
        rows(read_as("protobuf"))


def test_json_of_a_schema(
    read_as: Read, producer: Producer, registry: ottla.SchemaRegistryClient, ottla_topic: str
) -> None:
    people = Json(registry, PERSON)
    producer.send(ottla_topic, people.serialize(ottla_topic, {"name": "Ada", "age": 36, "tags": ["x"]}))
    producer.send(ottla_topic, people.serialize(ottla_topic, {"name": "Bob"}))
    producer.send(ottla_topic, None)
    producer.flush()
    frame = read_as("json")
    assert frame.schema["value"].dataType.simpleString() == "struct<name:string,age:bigint,tags:array<string>>"
    assert rows(frame) == [
        {"name": "Ada", "age": 36, "tags": ["x"]},
        {"name": "Bob", "age": None, "tags": None},
        None,
    ]
    assert rows(read_as("json", value_schema="age INT")) == [{"age": 36}, {"age": None}, None]


@pytest.mark.parametrize(
    "bad", [b"", b"plain text", b"\0\0\0", b"\0\x7f\xff\xff\xffx", "cut"], ids=["empty", "text", "short", "id", "cut"]
)
def test_what_cannot_be_decoded_is_named_or_dropped(
    bad: bytes | str, read_as: Read, producer: Producer, registry: ottla.SchemaRegistryClient, ottla_topic: str
) -> None:
    orders = Avro(registry, ORDER)
    good = orders.serialize(ottla_topic, {"id": 1, "note": "long enough"})
    assert good is not None
    for value in (good, good[:-9] if isinstance(bad, str) else bad, good):
        producer.send(ottla_topic, value)
    producer.flush()
    assert [row["id"] for row in rows(read_as("avro", value_onError="drop"))] == [1, 1]
    with pytest.raises(
        Exception, match=rf"{ottla_topic}-0 at offset 1 cannot be decoded with option value.format=avro"
    ):
        rows(read_as("avro"))


@pytest.mark.parametrize("value_format", ["avro", "protobuf", "json"])
def test_rows_are_written_with_a_schema_and_read_again(
    value_format: str,
    spark: "SparkSession",
    read_as: Read,
    write_as: Callable[..., None],
    registry: ottla.SchemaRegistryClient,
    ottla_topic: str,
) -> None:
    schema = {
        "avro": ORDER.replace(
            '"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0',
            '"name": "x", "type": "int", "default": 3',
        ),
        "protobuf": PROTO,
        "json": '{"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}',
    }[value_format]
    frame = spark.sql(
        "select named_struct('id', id, 'note', if(id = 1, null, 'n')) value from range(3)"
        if value_format == "json"
        else "select named_struct('id', id, 'note', if(id = 1, null, 'n'), 'counts', map('a', 4), 'tags', array('t'))"
        " value from range(3)"
    )
    write_as(frame, value_format, value_schema=schema)
    found = rows(read_as(value_format))
    assert sorted((row["id"], row["note"]) for row in found) == [(0, "n"), (1, None), (2, "n")]
    if value_format != "json":
        assert all(row["counts"] == {"a": 4} and row["tags"] == ["t"] for row in found)
    write_as(frame, value_format)  # with the latest of the subject, which is this one
    assert len(rows(read_as(value_format))) == 6
    assert registry.versions(f"{ottla_topic}-value") == [1]


def test_a_row_that_its_schema_refuses_is_named(
    spark: "SparkSession", write_as: Callable[..., None], ottla_topic: str
) -> None:
    frame = spark.sql("select named_struct('id', 'no number') value")
    with pytest.raises(Exception, match=rf"cannot be written with the schema {ottla_topic}-value"):
        write_as(frame, "avro", value_schema=OLDER)


def test_schemas_and_options_that_are_not_there(
    read: Read, read_as: Read, registry: ottla.SchemaRegistryClient, ottla_registry: SchemaRegistry, ottla_topic: str
) -> None:
    with pytest.raises(Exception, match=rf"option value.subject={ottla_topic}-value: .*40401"):
        read_as("avro")
    registry.register(f"{ottla_topic}-value", SchemaToRegister("JSON", "{}"))
    with pytest.raises(Exception, match=r"option value.format asks for AVRO, and the schema .* is JSON"):
        read_as("avro")
    with pytest.raises(Exception, match="the JSON Schema does not tell the columns"):
        read_as("json")
    with pytest.raises(Exception, match=r"option schema.registry.url is missing: value.format=avro needs a registry"):
        read(**{"value.format": "avro"}).load()
    with pytest.raises(
        Exception, match=r"option schema.registry.urll=x: it must be a setting of a schema registry's client"
    ):
        read_as("avro", schema_registry_urll="x")
    with pytest.raises(Exception, match=r"options value.schemaId and value.subject both name a schema"):
        read_as("avro", value_schemaId=1, value_subject="s")
    with pytest.raises(Exception, match=r"option value.subject is missing"):
        read_as("avro", subscribe="a,b")
    assert "columns" not in read_as("avro", columns="key,offset").schema.names, "no schema is asked for then"
