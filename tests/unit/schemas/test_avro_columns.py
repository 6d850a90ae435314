"""Avro to Arrow, by both twins."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.schemas.avro import arrow
from ottla.schemas.avro.arrow import ArrowDecoder, arrow_schema
from ottla.schemas.avro.codec import Encoder
from ottla.schemas.avro.parsing import Parser
from ottla.schemas.avro.plan import encoding_plan
from ottla.schemas.avro.types import AvroType
from ottla.schemas.faults import CannotDecode
from ottla.schemas.schema import DEFAULT_LIMITS

COMPILED = [False] if arrow._fast is None else [True, False]


def avro(schema: object) -> AvroType:
    return Parser(DEFAULT_LIMITS, as_new=False).parse(json.dumps(schema))


def record(**fields: Any) -> dict[str, object]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": type} for name, type in fields.items()]}


def encoded(type: AvroType, value: Any) -> bytes:
    return bytes(Encoder(encoding_plan(type)).encode(value))


@pytest.fixture(params=COMPILED, ids=lambda compiled: "fast" if compiled else "slow")
def compiled(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


EVERYTHING = record(
    n="null",
    b="boolean",
    i="int",
    l="long",
    f="float",
    d="double",
    y="bytes",
    s="string",
    e={"type": "enum", "name": "E", "symbols": ["A", "B"]},
    x={"type": "fixed", "name": "X", "size": 2},
    a={"type": "array", "items": ["null", "int"]},
    m={"type": "map", "values": "long"},
    r={"type": "record", "name": "I", "fields": [{"name": "v", "type": "int"}]},
    o=["null", "string"],
    u=["null", "int", "string"],
    day={"type": "int", "logicalType": "date"},
    t={"type": "int", "logicalType": "time-millis"},
    at={"type": "long", "logicalType": "timestamp-micros"},
    here={"type": "long", "logicalType": "local-timestamp-millis"},
    price={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    huge={"type": "bytes", "logicalType": "decimal", "precision": 50},
    id={"type": "string", "logicalType": "uuid"},
    span={"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
)
ROW = {
    "n": None,
    "b": True,
    "i": -5,
    "l": 2**40,
    "f": 1.5,
    "d": 0.1,
    "y": b"\xff",
    "s": "é",
    "e": "B",
    "x": b"xy",
    "a": [1, None],
    "m": {"k": 7},
    "r": {"v": 3},
    "o": "there",
    "u": ("string", "text"),
    "day": date(2024, 2, 29),
    "t": time(1, 2, 3, 4000),
    "at": datetime(2024, 2, 29, 1, 2, 3, 4, UTC),
    "here": datetime(1969, 12, 31, 23, 59),
    "price": Decimal("-12.34"),
    "huge": Decimal(10**45),
    "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "span": (1, 2, 3),
}


def test_each_type_has_its_column() -> None:
    types = {field.name: field.type for field in arrow_schema(avro(EVERYTHING))}
    assert types == {
        "n": pa.null(),
        "b": pa.bool_(),
        "i": pa.int32(),
        "l": pa.int64(),
        "f": pa.float32(),
        "d": pa.float64(),
        "y": pa.binary(),
        "s": pa.string(),
        "e": pa.string(),
        "x": pa.binary(2),
        "a": pa.list_(pa.int32()),
        "m": pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
        "r": pa.struct([pa.field("v", pa.int32(), nullable=False)]),
        "o": pa.string(),
        "u": pa.struct([pa.field("int", pa.int32()), pa.field("string", pa.string())]),
        "day": pa.date32(),
        "t": pa.time32("ms"),
        "at": pa.timestamp("us", tz="UTC"),
        "here": pa.timestamp("ms"),
        "price": pa.decimal128(9, 2),
        "huge": pa.decimal256(50, 0),
        "id": pa.string(),
        "span": pa.month_day_nano_interval(),
    }


def test_rows_become_columns(compiled: bool) -> None:
    type = avro(EVERYTHING)
    decoder = ArrowDecoder(type, compiled=compiled)
    for _ in range(100):
        decoder.append(type, encoded(type, ROW))
        decoder.append(type, encoded(type, ROW | {"o": None, "u": None, "a": [], "m": {}}))
    assert len(decoder) == 200
    batch = decoder.finish()
    batch.validate(full=True)
    assert len(decoder) == 0
    first, second = batch.slice(198).to_pylist()
    expected = ROW | {"m": [("k", 7)], "u": {"int": None, "string": "text"}, "span": pa.MonthDayNano([1, 2, 3_000_000])}
    assert first == expected
    assert second == expected | {"o": None, "u": None, "a": [], "m": []}
    assert decoder.finish().num_rows == 0


def test_rows_of_several_schemas_are_read_as_one(compiled: bool) -> None:
    first = avro(record(a="int", gone="string"))
    second = avro(
        {"type": "record", "name": "R", "fields": [{"name": "b", "type": "string"}, {"name": "a", "type": "long"}]}
    )
    reader = avro(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "a", "type": "double"}, {"name": "b", "type": ["null", "string"], "default": None}],
        }
    )
    decoder = ArrowDecoder(reader, compiled=compiled)
    decoder.append(first, encoded(first, {"a": 1, "gone": "x"}))
    decoder.append(second, encoded(second, {"a": 2, "b": "y"}))
    assert decoder.finish().to_pylist() == [{"a": 1.0, "b": None}, {"a": 2.0, "b": "y"}]


def test_a_row_that_is_wrong_leaves_nothing_behind(compiled: bool) -> None:
    type = avro(record(a={"type": "array", "items": "string"}, u=["null", "int", "string"], b="boolean"))
    good = encoded(type, {"a": ["x"], "u": 1, "b": True})
    bad = encoded(type, {"a": ["y", "z"], "u": None, "b": True})[:-1] + b"\x07"
    decoder = ArrowDecoder(type, compiled=compiled)
    decoder.append(type, good)
    with pytest.raises(CannotDecode, match="7 is no boolean"):
        decoder.append(type, bad)
    decoder.append(type, good)
    batch = decoder.finish()
    batch.validate(full=True)
    assert batch.to_pylist() == [{"a": ["x"], "u": {"int": 1, "string": None}, "b": True}] * 2


def test_framed_values_are_read_until_one_is_not_known(compiled: bool) -> None:
    type = avro(record(a="int"))
    rows = [b"\0\0\0\0\1" + encoded(type, {"a": number}) for number in range(3)]
    values = pa.array([*rows, None, b"\0\0\0\0\2\2", b"\1nonsense", b"\0\0\0\0\1", rows[0]], pa.binary())
    decoder = ArrowDecoder(type, nullable=True, compiled=compiled)
    assert decoder.append_framed(values) == 0
    decoder.know(1, type)
    assert decoder.append_framed(values) == 3  # null
    decoder.append_null()
    assert decoder.append_framed(values, 4) == 4  # an id that is not known
    decoder.know(2, type)
    assert decoder.append_framed(values, 4) == 5  # not framed
    assert decoder.append_framed(values, 6) == 6  # no bytes behind the frame
    assert decoder.append_framed(values.slice(7)) == 1
    assert decoder.finish().column("a").to_pylist() == [0, 1, 2, None, 1, 0]


def test_what_is_no_record_is_one_column(compiled: bool) -> None:
    decoder = ArrowDecoder(avro("string"), compiled=compiled)
    decoder.append(decoder.reader, b"\2x")
    assert decoder.finish().to_pylist() == [{"value": "x"}]


def test_a_recursive_record_has_no_columns() -> None:
    with pytest.raises(CannotDecode, match="R is recursive"):
        ArrowDecoder(avro({"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "R"]}]}))


@pytest.mark.parametrize("content", [b"\x04\x03\xe8", b"\x22" + b"\x7f" * 17])
def test_a_decimal_with_too_many_digits_has_no_place(content: bytes, compiled: bool) -> None:
    type = avro({"type": "bytes", "logicalType": "decimal", "precision": 3})
    decoder = ArrowDecoder(type, compiled=compiled)
    decoder.append(type, b"\x04\x03\xe7")
    decoder.append(type, b"\x08\xff\xff\xfc\x19")  # more bytes than it needs
    with pytest.raises(CannotDecode, match="the value has no place in its column"):
        decoder.append(type, content)
    assert decoder.finish().column(0).to_pylist() == [Decimal(999), Decimal(-999)]


def test_text_that_is_not_utf_8_is_refused(compiled: bool) -> None:
    type = avro("string")
    decoder = ArrowDecoder(type, compiled=compiled)
    for text in (b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"abcdefgh\xff", b"\xe2\x82"):
        with pytest.raises(CannotDecode, match="not UTF-8"):
            decoder.append(type, bytes([len(text) * 2]) + text)
    fine = "aé€\U0001f600 and more than eight".encode()
    decoder.append(type, bytes([len(fine) * 2]) + fine)
    assert decoder.finish().column(0).to_pylist() == [fine.decode()]
