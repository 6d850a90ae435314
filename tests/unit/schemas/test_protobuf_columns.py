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


def test_an_edition_has_no_columns_and_that_is_said() -> None:
    parsed = parse("PROTOBUF", 'edition = "2023"; message A { int32 a = 1; }')
    assert isinstance(parsed, ProtobufSchema)
    with pytest.raises(CannotDecode, match="edition"):
        ArrowDecoder(parsed)
