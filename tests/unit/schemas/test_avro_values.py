"""Avro values to bytes and back, by both twins: the compiled one and the one in Python."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any
from uuid import UUID

import pytest

from ottla.schemas.avro import _slow
from ottla.schemas.avro.parsing import Parser
from ottla.schemas.avro.plan import MOST_NESTED, decoding_plan, encoding_plan
from ottla.schemas.avro.types import AvroType
from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.schema import DEFAULT_LIMITS

try:
    from ottla.schemas.avro import _fast
except ImportError:
    _fast = None  # type: ignore[assignment]

TWINS = [pytest.param(_slow, id="slow")] + ([pytest.param(_fast, id="fast")] if _fast is not None else [])


def avro(schema: object) -> AvroType:
    return Parser(DEFAULT_LIMITS, as_new=False).parse(json.dumps(schema))


def record(*fields: tuple[Any, ...], name: str = "R", **more: object) -> dict[str, object]:
    made = [{"name": one[0], "type": one[1], **(one[2] if len(one) > 2 else {})} for one in fields]
    return {"type": "record", "name": name, "fields": made, **more}


@pytest.fixture(params=TWINS)
def twin(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def encoded(twin: Any) -> Callable[[object, Any], bytes]:
    return lambda schema, value: twin.Encoder(encoding_plan(avro(schema))).encode(value)


@pytest.fixture
def decoded(twin: Any) -> Callable[..., Any]:
    def decode(schema: object, content: bytes, reader: object = None) -> Any:
        plan = decoding_plan(avro(schema), avro(reader) if reader is not None else None)
        return twin.Decoder(plan).decode(content)

    return decode


@pytest.mark.parametrize(
    ("schema", "value", "content"),
    [
        ("null", None, b""),
        ("boolean", True, b"\1"),
        ("int", -1, b"\1"),
        ("int", 64, b"\x80\1"),
        ("long", 2**63 - 1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("long", -(2**63), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("float", 1.5, b"\0\0\xc0\x3f"),
        ("double", -2.25, b"\0\0\0\0\0\0\x02\xc0"),
        ("bytes", b"ab", b"\4ab"),
        ("string", "é", b"\4\xc3\xa9"),
        ({"type": "fixed", "name": "F", "size": 2}, b"xy", b"xy"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", b"\2"),
        ({"type": "array", "items": "int"}, [1, 2], b"\4\2\4\0"),
        ({"type": "array", "items": "int"}, [], b"\0"),
        ({"type": "map", "values": "int"}, {"a": 1}, b"\2\2a\2\0"),
        (["null", "int"], None, b"\0"),
        (["null", "int"], 1, b"\2\2"),
        (["int", "null"], 1, b"\0\2"),
        (record(("a", "int"), ("b", "string")), {"a": 1, "b": "x"}, b"\2\2x"),
        ({"type": "int", "logicalType": "date"}, date(1970, 1, 2), b"\2"),
        ({"type": "int", "logicalType": "date"}, date(1, 1, 1), b"\xf3\xe4\x57"),
        ({"type": "int", "logicalType": "time-millis"}, time(0, 0, 0, 1000), b"\2"),
        ({"type": "long", "logicalType": "time-micros"}, time(0, 0, 0, 1), b"\2"),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime(1970, 1, 1, 0, 0, 0, 1000, UTC), b"\2"),
        ({"type": "long", "logicalType": "timestamp-micros"}, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), b"\1"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, datetime(1970, 1, 1, 0, 0, 0, 1), b"\2"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 7, b"\x0e"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("-1.28"), b"\2\x80"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("1.28"), b"\4\0\x80"),
        (
            {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 4},
            Decimal(-1),
            b"\xff\xff\xff",
        ),
        ({"type": "bytes", "logicalType": "big-decimal"}, Decimal("1.5"), b"\6\2\x0f\2"),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=0), b"\x48" + str(UUID(int=0)).encode()),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, UUID(int=1), bytes(15) + b"\1"),
        (
            {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
            _slow.Duration(1, 2, 3),
            b"\1\0\0\0\2\0\0\0\3\0\0\0",
        ),
    ],
)
def test_a_value_is_its_bytes_and_back(
    schema: object, value: Any, content: bytes, encoded: Callable[..., bytes], decoded: Callable[..., Any]
) -> None:
    assert encoded(schema, value) == content
    assert decoded(schema, content) == value


@dataclass
class Line:
    sku: str
    count: int = 1


class Colour(Enum):
    RED = "r"


class Word(StrEnum):
    RED = "RED"


def test_objects_are_written_by_their_attributes(encoded: Callable[..., bytes]) -> None:
    line = record(("sku", "string"), ("count", "int"), name="Line")
    assert encoded(line, Line("a", 2)) == encoded(line, {"sku": "a", "count": 2})
    assert encoded(["null", line, "string"], Line("a", 2))[:1] == b"\2"
    colours = {"type": "enum", "name": "C", "symbols": ["RED"]}
    assert encoded(colours, Colour.RED) == encoded(colours, Word.RED) == b"\0"


def test_what_a_value_lacks_is_its_default(encoded: Callable[..., bytes]) -> None:
    schema = record(("a", "int", {"default": 5}), ("b", ["null", "string"], {"default": None}))
    assert encoded(schema, {}) == b"\x0a\0"
    assert encoded(schema, {"a": 1, "unknown": 2}) == b"\2\0"


@pytest.mark.parametrize(
    ("branches", "value", "index"),
    [
        (["long", "int"], 5, 1),
        (["int", "long"], 2**40, 1),
        (["float", "double"], 1.0, 1),
        (["double", "int"], 1, 1),
        (["double", "string"], 1, 0),
        (["boolean", "int"], True, 0),
        (["int", "boolean"], True, 1),
        ([{"type": "enum", "name": "E", "symbols": ["A"]}, "string"], "A", 1),
        (["bytes", {"type": "fixed", "name": "F", "size": 1}], b"x", 0),
        ([record(("a", "int"), name="A"), record(("b", "int"), name="B")], {"b": 1}, 1),
        ([record(("a", "int"), name="A"), record(("a", "int"), name="n.B")], ("n.B", {"a": 1}), 1),
        ([record(("a", "int"), name="A"), record(("a", "int"), name="n.B")], ("B", {"a": 1}), 1),
        ([{"type": "map", "values": "int"}, record(("a", "int"))], {"a": 1}, 1),
        ([{"type": "map", "values": "int"}, record(("a", "int"))], {"b": 1}, 0),
        (["string", {"type": "int", "logicalType": "date"}], date(2020, 1, 1), 1),
        (
            [{"type": "long", "logicalType": "local-timestamp-micros"}, {"type": "int", "logicalType": "date"}],
            date(1970, 1, 1),
            1,
        ),
    ],
)
def test_a_value_goes_to_the_branch_that_fits_best(
    branches: list[object], value: Any, index: int, encoded: Callable[..., bytes]
) -> None:
    assert encoded(branches, value)[0] == index * 2


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ("int", "x", "'x' (str) is no int"),
        ("int", True, "True (bool) is no int"),
        ("int", 2**31, "2147483648 is no int of 32 bits"),
        ("long", 2**63, "9223372036854775808 is no long of 64 bits"),
        ("string", b"x", "b'x' (bytes) is no string"),
        ("string", "\ud800", "surrogate"),
        ("float", 1e300, "1e+300 is too large for a float of 32 bits"),
        ("double", 10**400, "an integer of 1329 bits is too large for a double"),
        ("null", 0, "0 (int) is no null"),
        ("boolean", 1, "1 (int) is no boolean"),
        ({"type": "fixed", "name": "F", "size": 2}, b"x", "F has 2 bytes, and 1 were given"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "'B' is no symbol of E"),
        (["null", "int"], "x", "'x' (str) is none of [null, int]"),
        (record(("a", {"type": "array", "items": "int"})), {"a": [1, "x"]}, "'x' (str) is no int (at a.[1])"),
        (record(("a", {"type": "map", "values": "int"})), {"a": {"k": "x"}}, "'x' (str) is no int (at a.['k'])"),
        (record(("a", "int")), {}, "R needs a value, which is missing and has no default (at a)"),
        (record(("a", "int")), [1], "[1] (list) is no R"),
        ({"type": "array", "items": "int"}, "x", "'x' (str) is no array"),
        ({"type": "map", "values": "int"}, {1: 1}, "1 is no key of a map: they are strings"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1},
            Decimal("1.25"),
            "1.25 has more than 1 decimals",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1},
            Decimal("100"),
            "100 has more than 3 digits",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3},
            Decimal("NaN"),
            "NaN is no number that a decimal can be",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3},
            Decimal("1E+999999"),
            "1E+999999 has more than 3 digits",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_named(
    schema: object, value: Any, message: str, encoded: Callable[..., bytes]
) -> None:
    with pytest.raises(CannotEncode) as raised:
        encoded(schema, value)
    assert message in str(raised.value)


def test_zero_has_any_exponent(encoded: Callable[..., bytes]) -> None:
    assert encoded({"type": "bytes", "logicalType": "decimal", "precision": 3}, Decimal("0E+999999999")) == b"\2\0"


def test_a_moment_of_another_zone_is_the_same_moment(encoded: Callable[..., bytes]) -> None:
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    east = timezone(timedelta(hours=2))
    assert encoded(schema, datetime(2024, 5, 6, 14, tzinfo=east)) == encoded(
        schema, datetime(2024, 5, 6, 12, tzinfo=UTC)
    )
    assert encoded(schema, datetime(2024, 5, 6, 12)) == encoded(schema, datetime(2024, 5, 6, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("writer", "reader", "value", "read"),
    [
        ("int", "long", 5, 5),
        ("int", "double", 5, 5.0),
        ("long", "float", 5, 5.0),
        ("float", "double", 1.5, 1.5),
        ("string", "bytes", "é", b"\xc3\xa9"),
        ("bytes", "string", b"a", "a"),
        ("int", ["null", "long"], 5, 5),
        (["null", "int"], "int", 5, 5),
        (["null", "int"], ["string", "double", "null"], 5, 5.0),
        (record(("a", "int"), ("b", "string")), record(("b", "string")), {"a": 1, "b": "x"}, {"b": "x"}),
        (record(("b", "int")), record(("a", "int", {"default": 7}), ("b", "int")), {"b": 1}, {"a": 7, "b": 1}),
        (record(("old", "int")), record(("new", "int", {"aliases": ["old"]})), {"old": 1}, {"new": 1}),
        (record(("a", "int"), ("b", "int")), record(("b", "int"), ("a", "int")), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
            "B",
            "A",
        ),
        (
            record(("a", {"type": "array", "items": "int"})),
            record(("a", {"type": "array", "items": ["null", "double"]})),
            {"a": [1]},
            {"a": [1.0]},
        ),
        ("long", {"type": "long", "logicalType": "timestamp-millis"}, 1, datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
    ],
)
def test_bytes_of_one_schema_are_read_as_another(
    writer: object, reader: object, value: Any, read: Any, encoded: Callable[..., bytes], decoded: Callable[..., Any]
) -> None:
    made = decoded(writer, encoded(writer, value), reader)
    assert made == read
    assert type(made) is type(read)
    if isinstance(read, dict):
        assert list(made) == list(read)


def test_what_cannot_be_resolved_fails_when_it_is_met(
    encoded: Callable[..., bytes], decoded: Callable[..., Any]
) -> None:
    assert decoded(["int", "string"], encoded(["int", "string"], 5), "long") == 5
    with pytest.raises(CannotDecode, match="string cannot be read as long"):
        decoded(["int", "string"], encoded(["int", "string"], "x"), "long")
    with pytest.raises(CannotDecode, match="int cannot be read as string"):
        decoded("int", b"\2", "string")
    with pytest.raises(CannotDecode, match="the writer has no field a of R, and it has no default"):
        decoded(record(), b"", record(("a", "int")))


@pytest.mark.parametrize(
    ("schema", "content", "message"),
    [
        ("int", b"", "the value ends in the middle of a number"),
        ("int", b"\x80" * 10 + b"\1", "a number has more than 64 bits"),
        ("int", b"\xfe\xff\xff\xff\xff\1", "is no int of 32 bits"),
        ("string", b"\x08ab", "4 bytes are wanted, and 2 left"),
        ("string", b"\1", "a length is negative: -1"),
        ("string", b"\2\xff", "a string is not UTF-8"),
        ("boolean", b"\2", "2 is no boolean"),
        ("double", b"\0", "8 bytes are wanted"),
        (["null"], b"\4", "there is no branch 2 in a union of 1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\2", "there is no symbol 1 in an enum of 1"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f", "elements are announced"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\x0f\0", "elements of no bytes"),
        ({"type": "map", "values": "int"}, b"\2\2\xff\2\0", "a key of a map is not UTF-8"),
        ({"type": "string", "logicalType": "uuid"}, b"\2x", "'x' is no UUID"),
        ({"type": "int", "logicalType": "time-millis"}, b"\1", "-1 is no time that Python has"),
        ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f", "is no time that Python has"),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no time"),
    ],
)
def test_bytes_that_are_no_value_are_refused(
    schema: object, content: bytes, message: str, decoded: Callable[..., Any]
) -> None:
    with pytest.raises(CannotDecode) as raised:
        decoded(schema, content)
    assert message in str(raised.value)


def test_a_value_may_not_be_nested_without_end(encoded: Callable[..., bytes], decoded: Callable[..., Any]) -> None:
    schema = record(("next", ["null", "R"]))
    value: Any = {"next": None}
    for _ in range(MOST_NESTED):
        value = {"next": value}
    with pytest.raises(CannotEncode, match="nested deeper"):
        encoded(schema, value)
    with pytest.raises(CannotDecode, match="nested deeper"):
        decoded(schema, b"\2" * 10_000)


def test_blocks_of_other_writers_are_read(decoded: Callable[..., Any]) -> None:
    # Java may write several blocks, and a negative count with the size in bytes behind it.
    assert decoded({"type": "array", "items": "int"}, b"\2\2\3\4\4\6\0") == [1, 2, 3]


def test_a_record_may_become_an_object(twin: Any) -> None:
    plan = decoding_plan(avro(record(("sku", "string"), ("count", "int"), name="Line")))
    decoder = twin.Decoder(plan, {"Line": lambda values: Line(**values)})
    assert decoder.decode(b"\2a\4") == Line("a", 2)
    assert decoder.decode(memoryview(b"__\2a\4"), 2) == Line("a", 2)


def test_a_prefix_stands_before_the_bytes(twin: Any) -> None:
    assert twin.Encoder(encoding_plan(avro("int"))).encode(1, b"\0\0\0\0\5") == b"\0\0\0\0\5\2"
    large = "x" * 5_000
    assert twin.Encoder(encoding_plan(avro("string"))).encode(large, b"p") == b"p\x90\x4e" + large.encode()
