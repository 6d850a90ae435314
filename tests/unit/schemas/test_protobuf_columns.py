"""Protobuf to Arrow."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ottla.schemas.faults import CannotDecode
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.schema import parse

pytest.importorskip("ptars")
from ottla.schemas.protobuf.arrow import ArrowDecoder

AT = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; Kind kind = 2; optional string note = 3; repeated string tags = 4;
google.protobuf.Timestamp at = 5; oneof o { int32 a = 6; string b = 7; } }
enum Kind { NEW = 0; PAID = 1; }
message Tree { repeated Tree branches = 1; }"""


@pytest.fixture
def schema() -> ProtobufSchema:
    parsed = parse("PROTOBUF", PROTO)
    assert isinstance(parsed, ProtobufSchema)
    return parsed


def test_rows_become_columns(schema: ProtobufSchema) -> None:
    decoder = ArrowDecoder(schema)
    order = schema.message_class()(id=5, kind=1, tags=["x"], b="y")
    order.at.seconds = 1
    decoder.append(b"frame" + order.SerializeToString(), 5)
    decoder.append(b"")
    batch = decoder.finish()
    assert batch.schema.field("kind").type == pa.string()
    assert batch.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert batch.to_pylist() == [
        {"id": 5, "kind": "PAID", "note": None, "tags": ["x"], "at": AT, "a": None, "b": "y"},
        {"id": 0, "kind": "NEW", "note": None, "tags": [], "at": None, "a": None, "b": None},
    ]  # fmt: skip
    assert len(decoder) == 0


def test_a_row_that_is_wrong_raises_or_is_null(schema: ProtobufSchema) -> None:
    decoder = ArrowDecoder(schema, "shop.Order")

    def fill() -> None:
        decoder.append(b"\x08\x01")
        decoder.append(b"\x1a\x02\xff\xfe")
        decoder.append_null()
        decoder.append(b"\x08\x02")

    fill()
    with pytest.raises(CannotDecode, match=r"row 1 is no shop\.Order"):
        decoder.finish()
    fill()
    assert decoder.finish("null").column("id").to_pylist() == [1, None, None, 2]


def test_a_recursive_message_has_no_columns(schema: ProtobufSchema) -> None:
    with pytest.raises(CannotDecode, match=r"shop\.Tree is recursive"):
        ArrowDecoder(schema, "shop.Tree")


def test_null_rows_beside_messages_within_messages() -> None:
    text = 'syntax = "proto3"; message A { int32 a = 1; B b = 2; repeated B bs = 3; } message B { string s = 1; }'
    parsed = parse("PROTOBUF", text)
    assert isinstance(parsed, ProtobufSchema)
    decoder = ArrowDecoder(parsed)
    decoder.append(b"\x08\x01\x12\x03\x0a\x01x")
    decoder.append_null()
    batch = decoder.finish()
    batch.validate(full=True)
    assert batch.to_pylist() == [{"a": 1, "b": {"s": "x"}, "bs": []}, {"a": None, "b": None, "bs": None}]


@pytest.mark.parametrize("deep", [5_000, 200_000, 2_000_000])
def test_groups_that_nobody_knows_are_not_followed_to_the_end_of_the_stack(schema: ProtobufSchema, deep: int) -> None:
    """It ended the process."""
    decoder = ArrowDecoder(schema)
    for _ in range(2):
        decoder.append(b"\x7b" * deep + b"\x7c" * deep)
        decoder.append(b"\x08\x01")
    assert decoder.finish("null").column("id").to_pylist() == [None, 1, None, 1]
    decoder.append(b"\x7b" * deep + b"\x7c" * deep)
    with pytest.raises(CannotDecode, match="row 0"):
        decoder.finish()


EDITION = """edition = "2023"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; Kind kind = 2; string note = 3 [features.field_presence = IMPLICIT]; repeated int32 n = 4;
google.protobuf.Timestamp at = 5; oneof o { int32 a = 6; string b = 7; } map<string, Part> parts = 8;
repeated int32 apart = 9 [features.repeated_field_encoding = EXPANDED]; message Part { int32 size = 1 [default = 7]; } }
enum Kind { NEW = 0; PAID = 1; }"""


@pytest.mark.parametrize("text", [EDITION, EDITION.replace(" [features.field_presence = IMPLICIT]", "")])
def test_an_edition_has_columns(text: str) -> None:
    parsed = parse("PROTOBUF", text)
    assert isinstance(parsed, ProtobufSchema)
    order = parsed.message_class()(id=0, kind=1, note="x", n=[1, 2], b="y", apart=[3, 4])
    order.at.seconds = 1
    order.parts["k"].size = 2
    decoder = ArrowDecoder(parsed)
    decoder.append(order.SerializeToString())
    decoder.append(b"")
    rows = decoder.finish().to_pylist()
    expected = {"id": 0, "kind": "PAID", "note": "x", "n": [1, 2], "at": AT, "a": None, "b": "y", "apart": [3, 4]}
    assert rows[0] == {**expected, "parts": [("k", {"size": 2})]}
    assert (rows[1]["id"], rows[1]["note"]) == (None, "" if "IMPLICIT" in text else None), "presence is seen"


def test_what_can_be_said_in_no_other_syntax_is_refused() -> None:
    text = 'edition = "2023"; message A { int32 a = 1 [features.field_presence = IMPLICIT]; E e = 2; } enum E '
    parsed = parse("PROTOBUF", text + "{ option features.enum_type = CLOSED; ONE = 1; }")
    assert isinstance(parsed, ProtobufSchema)
    with pytest.raises(CannotDecode, match="proto2 or proto3"):
        ArrowDecoder(parsed)


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto2"; message A { optional group G = 1 { optional int32 g = 1; } }',
        'edition = "2023"; message A { B b = 1 [features.message_encoding = DELIMITED]; } message B { int32 g = 1; }',
    ],
)
def test_a_group_has_no_columns(text: str) -> None:
    """ptars passes over its content: what was there would be null."""
    parsed = parse("PROTOBUF", text)
    assert isinstance(parsed, ProtobufSchema)
    with pytest.raises(CannotDecode, match="group"):
        ArrowDecoder(parsed)
