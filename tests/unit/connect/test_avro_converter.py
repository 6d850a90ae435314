"""AvroConverter on a registry that is given: schemas, ids, unions, what is refused."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.converters.by_name import make_converter, needs_registry
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column, Schemaless, nothing
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption
from ottla.schemas.registry_port import SchemaToRegister
from tests.unit.connect.given_registry import GivenRegistry

CLASS = "io.confluent.connect.avro.AvroConverter"
ORDER = struct(
    [
        ("id", Schema(Type.INT8)),
        ("price", schemas.decimal(2, optional=True)),
        ("day", schemas.date()),
        ("note", Schema(Type.STRING, True, default="none")),
        ("tags", schemas.map_of(Schema(Type.INT32), Schema(Type.STRING))),
    ],
    name="shop.Order",
)
ROW = {"id": -1, "price": Decimal("1.50"), "day": 3, "note": None, "tags": [(1, "a")]}


def converter(registry: GivenRegistry, is_key: bool = False, **options: str) -> Any:
    given: dict[str, str | None] = {"schema.registry.url": "http://registry"}
    given |= {name.replace("_", "."): value for name, value in options.items()}
    return make_converter(CLASS, given, is_key=is_key, registry=lambda _: registry)


def test_a_column_is_registered_once_and_comes_back_with_its_schema() -> None:
    registry = GivenRegistry()
    made = converter(registry)
    content = made.to_bytes("orders", column_of(ORDER, [ROW, ROW]))
    made.to_bytes("orders", column_of(ORDER, [ROW]))
    assert registry.calls == ["register"]
    assert registry.subjects == {"orders-value": [1]}
    tree = json.loads(registry.schemas[0].text)
    assert (tree["namespace"], tree["name"]) == ("shop", "Order")
    assert tree["fields"][0]["type"] == {"type": "int", "connect.type": "int8"}
    (part,) = made.from_bytes("orders", content)
    # The registry's version is the schema's, and null has become the default when it was written.
    assert part.column.schema == ORDER.but(version=1)
    assert rows_of(part.column) == [ROW | {"note": "none"}] * 2


def test_null_is_null_and_what_has_no_schema_is_anything() -> None:
    registry = GivenRegistry()
    made = converter(registry)
    assert made.to_bytes("t", nothing(2)).to_pylist() == [None, None]
    values = (1, None, {"a": [True, "x", 2.5]})
    content = made.to_bytes("t", Schemaless(values))
    assert content[1].as_py() is None
    (part,) = made.from_bytes("t", content)
    assert part.column.values == values
    with pytest.raises(DataError, match="Found null value for non-optional schema") as refused:
        made.to_bytes("t", Column(Schema(Type.INT32), pa.array([1, None], pa.int32())))
    assert refused.value.row == 1


def test_bytes_alone_have_no_length_before_them() -> None:
    registry = GivenRegistry()
    made = converter(registry)
    content = made.to_bytes("t", column_of(Schema(Type.BYTES), [b"ab", b""]))
    assert content.to_pylist() == [b"\0\0\0\0\1ab", b"\0\0\0\0\1"]
    assert rows_of(made.from_bytes("t", content)[0].column) == [b"ab", b""]


def test_a_union_is_a_struct_with_one_field_set_and_back() -> None:
    registry = GivenRegistry()
    text = '["null","int",{"type":"enum","name":"a.E","symbols":["A","B"]}]'
    registry.register("t-value", SchemaToRegister("AVRO", text))
    made = converter(registry, enhanced_avro_schema_support="true")
    content = pa.array([b"\0\0\0\0\1\0", b"\0\0\0\0\1\2\4", b"\0\0\0\0\1\4\2"], pa.binary())
    (part,) = made.from_bytes("t", content)
    assert rows_of(part.column) == [None, {"int": 2, "a.E": None}, {"int": None, "a.E": "B"}]
    again = made.to_bytes("t", part.column).to_pylist()
    assert [None if one is None else one[5:] for one in again] == [None, b"\2\4", b"\4\2"]


def test_records_of_several_schemas_are_several_columns() -> None:
    registry = GivenRegistry()
    made = converter(registry)
    one = made.to_bytes("t", column_of(Schema(Type.INT64), [5]))[0].as_py()
    two = made.to_bytes("t", column_of(Schema(Type.STRING), ["x"]))[0].as_py()
    parts = made.from_bytes("t", pa.array([one, None, two, one], pa.binary()))
    assert [part.rows.to_pylist() for part in parts] == [[0, 3], [1], [2]]


def test_subjects_are_named_as_the_strategy_says() -> None:
    registry = GivenRegistry()
    name = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    converter(registry, value_subject_name_strategy=name).to_bytes("orders", column_of(ORDER, [ROW]))
    converter(registry, is_key=True).to_bytes("orders", column_of(ORDER, [ROW]))
    assert list(registry.subjects) == ["shop.Order", "orders-key"]
    with pytest.raises(InvalidOption, match="strategy"):
        converter(registry, value_subject_name_strategy="com.example.Mine")


def test_without_registration_a_schema_must_be_there() -> None:
    registry = GivenRegistry()
    made = converter(registry, auto_register_schemas="false")
    with pytest.raises(LookupError):
        made.to_bytes("t", column_of(Schema(Type.INT64), [5]))
    converter(registry).to_bytes("t", column_of(Schema(Type.INT64), [5]))
    assert made.to_bytes("t", column_of(Schema(Type.INT64), [5]))[0].as_py() == b"\0\0\0\0\1\n"


def test_the_latest_schema_is_written_with_if_it_can_read_ours() -> None:
    registry = GivenRegistry()
    registry.register("t-value", SchemaToRegister("AVRO", '"long"'))
    options = {"auto_register_schemas": "false", "use_latest_version": "true"}
    assert converter(registry, **options).to_bytes("t", column_of(Schema(Type.INT32), [5]))[0].as_py()[5:] == b"\n"
    with pytest.raises(DataError, match=r"latest\.compatibility\.strict"):
        converter(registry, **options).to_bytes("t", column_of(Schema(Type.STRING), ["x"]))


def test_names_that_avro_cannot_have_are_refused_or_scrubbed() -> None:
    schema = struct([("a b", Schema(Type.INT32)), ("1", Schema(Type.INT32))], name="shop.my-Order")
    registry = GivenRegistry()
    with pytest.raises(DataError, match=r"scrub\.invalid\.names"):
        converter(registry).to_bytes("t", column_of(schema, [{"a b": 1, "1": 2}]))
    converter(registry, scrub_invalid_names="true").to_bytes("t", column_of(schema, [{"a b": 1, "1": 2}]))
    tree = json.loads(registry.schemas[0].text)
    assert [tree["name"], *(field["name"] for field in tree["fields"])] == ["my_Order", "a_b", "x1"]


@pytest.mark.parametrize("content", [b"", b"\1\0\0\0\1", b'{"a":1}', b"\0\0\0"])
def test_bytes_without_an_id_are_refused_with_their_row(content: bytes) -> None:
    with pytest.raises(DataError, match="no id of a schema") as refused:
        converter(GivenRegistry()).from_bytes("t", pa.array([None, content], pa.binary()))
    assert refused.value.row == 1


def test_bytes_that_end_too_early_and_recursive_schemas_are_refused() -> None:
    registry = GivenRegistry()
    registry.register("t-value", SchemaToRegister("AVRO", '"string"'))
    text = '{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]}]}'
    registry.register("t-value", SchemaToRegister("AVRO", text))
    for content, words in ((b"\0\0\0\0\1\x08a", "Failed to deserialize"), (b"\0\0\0\0\2\0", "within itself")):
        with pytest.raises(DataError, match=words):
            converter(registry).from_bytes("t", pa.array([content], pa.binary()))


def test_options_that_are_not_there_are_refused_by_name() -> None:
    assert needs_registry(CLASS)
    assert not needs_registry("JsonConverter")
    with pytest.raises(InvalidOption, match=r"has no option generalized\.sum\.type\.support here"):
        converter(GivenRegistry(), generalized_sum_type_support="true")
    with pytest.raises(InvalidOption, match=r"schema\.registry\.url"):
        make_converter(CLASS, {}, registry=lambda _: GivenRegistry())
    with pytest.raises(InvalidOption, match="needs a schema registry"):
        make_converter(
            CLASS, {"schema.registry.url": "http://r", "schemas.enable": "false", "basic.auth.user.info": "u:p"}
        )
