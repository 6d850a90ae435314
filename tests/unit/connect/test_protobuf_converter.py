"""ProtobufConverter on a registry that is given: messages, logical types, oneofs, what is refused."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("google.protobuf")

from ottla.connect.converters.by_name import make_converter
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Schemaless, nothing
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption
from ottla.schemas.registry_port import SchemaToRegister
from tests.unit.connect.given_registry import GivenRegistry

INNER = struct([("x", Schema(Type.STRING, True))], name="shop.Inner")
ORDER = struct(
    [
        ("id", Schema(Type.INT8)),
        ("price", schemas.decimal(2, optional=True, precision=9)),
        ("day", schemas.date()),
        ("at", schemas.timestamp()),
        ("tags", schemas.map_of(Schema(Type.STRING), schemas.decimal(1))),
        ("many", schemas.array(INNER)),
        ("note", Schema(Type.STRING, True, default="none")),
    ],
    name="shop.Order",
)
ROW = {
    "id": -1, "price": Decimal("-1.50"), "day": -1, "at": -1, "tags": [("a", Decimal("0.5"))],
    "many": [{"x": "y"}, {"x": None}], "note": None,
}  # fmt: skip


def converter(registry: GivenRegistry, **options: str) -> Any:
    given: dict[str, str | None] = {"schema.registry.url": "http://registry"}
    given |= {name.replace("_", "."): value for name, value in options.items()}
    name = "io.confluent.connect.protobuf.ProtobufConverter"
    return make_converter(name, given, registry=lambda _: registry)


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.connect.converters.protobuf.find_spec", lambda name: None)
    with pytest.raises(InvalidOption, match=r"ottla\[protobuf\]"):
        converter(GivenRegistry())


def test_a_struct_is_a_message_and_comes_back() -> None:
    registry = GivenRegistry()
    made = converter(registry)
    content = made.to_bytes("orders", column_of(ORDER, [ROW]))
    assert registry.subjects == {"orders-value": [1]}
    text = registry.schemas[0].text
    for line in ("package shop;", "message Order {", "repeated Inner many = 6;", "confluent.type.Decimal price = 2"):
        assert line in text
    assert content[0].as_py()[:6] == b"\0\0\0\0\1\0"
    (part,) = made.from_bytes("orders", content)
    assert part.column.schema is not None
    assert (part.column.schema.name, part.column.schema.version) == ("Order", 1)
    assert part.column.schema.fields[0].schema.type is Type.INT8
    # Without a wrapper or the word `optional`, no value and an empty one are the same.
    assert rows_of(part.column) == [ROW | {"many": [{"x": "y"}, {"x": ""}], "note": "none"}]


@pytest.mark.parametrize("options", [{"optional_for_nullables": "true"}, {"wrapper_for_nullables": "true"}])
def test_nulls_stay_nulls_where_the_options_say_so(options: dict[str, str]) -> None:
    registry = GivenRegistry()
    made = converter(registry, **options)
    schema = struct([("a", Schema(Type.INT32, True)), ("b", Schema(Type.INT32))], name="A")
    rows = [{"a": None, "b": 0}, {"a": 0, "b": 5}]
    (part,) = made.from_bytes("t", made.to_bytes("t", column_of(schema, rows)))
    assert rows_of(part.column) == rows
    assert [field.schema.optional for field in part.column.schema.fields] == [True, False]


def test_plain_values_are_googles_wrappers_and_null_is_null() -> None:
    registry = GivenRegistry()
    made = converter(registry)
    content = made.to_bytes("t", column_of(Schema(Type.STRING), ["x", ""]))
    assert content.to_pylist() == [b"\0\0\0\0\1\2\x0e\n\1x", b"\0\0\0\0\1\2\x0e"]
    (part,) = made.from_bytes("t", content)
    assert (part.column.schema, rows_of(part.column)) == (Schema(Type.STRING, version=1), ["x", ""])
    assert made.to_bytes("t", nothing(1)).to_pylist() == [None]
    for column in (Schemaless(({"a": 1},)), column_of(schemas.date(), [1]), column_of(schemas.array(INNER), [[]])):
        with pytest.raises(DataError):
            made.to_bytes("t", column)


def test_a_oneof_is_a_struct_with_one_field_set_and_back() -> None:
    registry = GivenRegistry()
    text = 'syntax = "proto3"; message A { oneof one { int32 a = 1; string b = 2; } enum E { X = 0; Y = 1; } E e = 3; }'
    registry.register("t-value", SchemaToRegister("PROTOBUF", text))
    made = converter(registry)
    content = [b"\0\0\0\0\1\0" + one for one in (b"", b"\x12\x01x\x18\x01", b"\x08\x00")]
    (part,) = made.from_bytes("t", pa.array(content, pa.binary()))
    assert rows_of(part.column) == [
        {"one_0": None, "e": "X"},
        {"one_0": {"a": None, "b": "x"}, "e": "Y"},
        {"one_0": {"a": 0, "b": None}, "e": "X"},
    ]
    again = made.to_bytes("u", part.column).to_pylist()
    assert [one[6:] for one in again] == [b"", b"\x12\x01x\x18\x01", b"\x08\x00"]


def test_wrappers_of_others_are_values_that_may_be_null() -> None:
    registry = GivenRegistry()
    text = 'syntax = "proto3"; import "google/protobuf/wrappers.proto"; message A { google.protobuf.Int32Value a = 1; }'
    registry.register("t-value", SchemaToRegister("PROTOBUF", text))
    content = pa.array([b"\0\0\0\0\1\0", b"\0\0\0\0\1\0\n\0", b"\0\0\0\0\1\0\n\2\x08\5"], pa.binary())
    (part,) = converter(registry).from_bytes("t", content)
    assert rows_of(part.column) == [{"a": None}, {"a": 0}, {"a": 5}]
    (part,) = converter(registry, wrapper_for_raw_primitives="false").from_bytes("t", content)
    assert rows_of(part.column)[1:] == [{"a": {"value": 0}}, {"a": {"value": 5}}]


def test_a_decimal_of_another_scale_is_fitted_or_refused() -> None:
    registry = GivenRegistry()
    text = 'syntax = "proto3"; import "confluent/type/decimal.proto"; message A { confluent.type.Decimal d = 1; }'
    registry.register("t-value", SchemaToRegister("PROTOBUF", text))
    made = converter(registry)
    fits = pa.array([b"\0\0\0\0\1\0\n\x05\n\x01\x14\x18\x01"], pa.binary())  # 20 with scale 1, of a field of scale 0
    (part,) = made.from_bytes("t", fits)
    assert rows_of(part.column) == [{"d": Decimal(2)}]
    with pytest.raises(DataError, match="mismatching scale") as refused:
        made.from_bytes("t", pa.array([b"\0\0\0\0\1\0\n\x05\n\x01\x15\x18\x01"], pa.binary()))
    assert refused.value.row == 0


def test_what_is_no_message_is_refused_with_its_row() -> None:
    registry = GivenRegistry()
    registry.register(
        "t-value", SchemaToRegister("PROTOBUF", 'syntax = "proto3"; message A { string a = 1; A next = 2; }')
    )
    registry.register("t-value", SchemaToRegister("PROTOBUF", 'syntax = "proto3"; message B { string a = 1; }'))
    for content, words in (
        (b"\0\0\0\0\1\0", "within itself"),
        (b"\0\0\0\0\2\0\n\x05x", "Failed to deserialize"),
        (b"\0\0\0\0\2\x02\x04", "Invalid message indexes"),
        (b"x", "no id of a schema"),
    ):
        with pytest.raises(DataError, match=words) as refused:
            converter(registry).from_bytes("t", pa.array([None, content], pa.binary()))
        assert refused.value.row == 1
    nested = struct([("a", schemas.array(schemas.array(INNER)))], name="A")
    with pytest.raises(DataError, match="Array cannot be nested"):
        converter(registry).to_bytes("t", column_of(nested, [{"a": []}]))
    nulls = struct([("a", schemas.array(Schema(Type.INT32, True)))], name="A")
    with pytest.raises(DataError, match="no nulls"):
        converter(registry).to_bytes("t", column_of(nulls, [{"a": [1, None]}]))
    with pytest.raises(DataError, match=r"scrub\.invalid\.names"):
        converter(registry).to_bytes("t", column_of(struct([("a b", Schema(Type.INT32))], name="A"), [{"a b": 1}]))
