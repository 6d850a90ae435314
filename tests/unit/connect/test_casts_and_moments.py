"""Cast, TimestampConverter, TimestampRouter, InsertHeader; Java's dates, numbers and literals."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import AnyColumn, Column, Schemaless, nothing
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import Float32, Int8, Moment, column_of, rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.java_dates import DateFormat
from ottla.connect.java_numbers import as_float32, parse_double, parse_float, parse_integer
from ottla.connect.literals import parse_literal
from ottla.connect.options import InvalidOption
from ottla.connect.transforms.by_name import make_transform


def of(column: AnyColumn, timestamps: list[int | None] | None = None) -> Records:
    return records_of("orders", nothing(len(column)), column, timestamps=timestamps)


def rows(column: AnyColumn) -> list[Any]:
    return rows_of(column) if isinstance(column, Column) else list(column.values)


def cast(schema: Schema, values: list[Any], spec: str) -> tuple[Schema | None, list[Any]]:
    (made,) = make_transform("Cast$Value", {"spec": spec}).apply(of(column_of(schema, values)))
    return made.value.schema, rows(made.value)


def test_numbers_are_cast_as_java_casts_them() -> None:
    assert cast(Schema(Type.INT64), [300, -129], "int8")[1] == [44, 127]
    assert cast(Schema(Type.FLOAT64), [1e20, -1.9, float("nan")], "int64")[1] == [(1 << 63) - 1, -1, 0]
    assert cast(Schema(Type.FLOAT64), [1e20, 300.7], "int8")[1] == [-1, 44]
    assert cast(schemas.decimal(2), [Decimal("300.99")], "int8")[1] == [44]
    assert cast(Schema(Type.BOOLEAN), [True, False], "float32")[1] == [1.0, 0.0]
    assert cast(Schema(Type.INT32), [0, 5], "boolean")[1] == [False, True]
    assert cast(Schema(Type.STRING), ["+7", "-12"], "int16")[1] == [7, -12]
    assert cast(Schema(Type.STRING), ["True", "yes"], "boolean")[1] == [True, False]


def test_texts_of_dates_say_as_much_as_the_moment_does() -> None:
    assert cast(schemas.date(), [20_775, 0], "string")[1] == ["2026-11-18", "00:00:00.000Z"]
    assert cast(schemas.time(), [1], "string")[1] == ["00:00:00.001Z"]
    assert cast(schemas.timestamp(), [1_795_000_000_001], "string")[1] == ["2026-11-18T11:06:40.001Z"]
    assert cast(Schema(Type.BYTES), [b"\x00\xff"], "string")[1] == ["AP8="]


def test_fields_that_are_cast_lose_their_names_and_keep_defaults() -> None:
    schema = struct(
        [("id", Schema(Type.STRING, default="7", doc="d")), ("day", schemas.date(optional=True))], name="Order"
    )
    made, found = cast(schema, [{"id": "12", "day": 3}, {"id": None, "day": None}], "id:int64,day:int32")
    assert found == [{"id": 12, "day": 3}, {"id": 7, "day": None}]
    assert made == struct([("id", Schema(Type.INT64, default=7)), ("day", Schema(Type.INT32, True))], name="Order")


def test_a_cast_that_fails_names_its_row() -> None:
    with pytest.raises(DataError, match=r"Value \(x\) was out of range") as refused:
        cast(Schema(Type.STRING), ["1", "2", "x"], "int8")
    assert refused.value.row == 2
    with pytest.raises(DataError, match="casting from ARRAY") as refused:
        make_transform("Cast$Value", {"spec": "a:int8"}).apply(of(Schemaless(({"a": 1}, {"a": [1]}))))
    assert refused.value.row == 1
    (made,) = make_transform("Cast$Value", {"spec": "a:int8,b:float32"}).apply(
        of(Schemaless(({"a": 300}, {"b": "1.5"})))
    )
    assert rows(made.value) == [{"a": 44, "b": None}, {"b": 1.5, "a": None}]
    assert type(rows(made.value)[0]["a"]) is Int8
    assert type(rows(made.value)[1]["b"]) is Float32


@pytest.mark.parametrize("spec", ["a:int8:b", "a:text", "text", "int8,int16", "bytes", ","])
def test_a_spec_that_cannot_be_used_is_refused(spec: str) -> None:
    with pytest.raises(InvalidOption):
        make_transform("Cast$Value", {"spec": spec})


def converted(column: AnyColumn, **options: str) -> tuple[Schema | None, list[Any]]:
    given = {name.replace("_", "."): value for name, value in options.items()}
    (made,) = make_transform("TimestampConverter$Value", given).apply(of(column))
    return made.value.schema, rows(made.value)


def test_times_become_texts_numbers_and_logical_types() -> None:
    moments = column_of(schemas.timestamp(optional=True), [1_795_000_000_001, None, -1])
    assert converted(moments, target_type="unix", unix_precision="seconds")[1] == [1_795_000_000, None, 0]
    assert converted(moments, target_type="unix", unix_precision="nanoseconds")[1] == [
        1_795_000_000_001_000_000,
        None,
        -1_000_000,
    ]
    assert converted(moments, target_type="Date") == (schemas.date(optional=True), [20_775, None, -1])
    assert converted(moments, target_type="Time")[1] == [40_000_001, None, 86_399_999]
    assert converted(moments, target_type="string", format="yyyy-MM-dd'T'HH:mm:ss.SSS")[1] == [
        "2026-11-18T11:06:40.001", None, "1969-12-31T23:59:59.999",
    ]  # fmt: skip
    texts = column_of(Schema(Type.STRING), ["2026-11-18 01:02", "1500-02-29 00:00"])
    assert converted(texts, target_type="Timestamp", format="yyyy-MM-dd HH:mm")[1] == [
        1_794_963_720_000,
        -14_825_894_400_000,
    ]
    seconds = column_of(Schema(Type.INT64), [1 << 62])
    assert converted(seconds, target_type="Timestamp", unix_precision="seconds")[1] == [(1 << 63) - 1]


def test_one_field_is_converted_and_the_others_stay() -> None:
    schema = struct([("at", Schema(Type.INT64)), ("n", Schema(Type.INT8))], optional=True)
    made, found = converted(column_of(schema, [{"at": 1, "n": 2}, None]), target_type="Timestamp", field="at")
    assert made == struct([("at", schemas.timestamp()), ("n", Schema(Type.INT8))], optional=True)
    assert found == [{"at": 1, "n": 2}, None]
    plain = converted(Schemaless(({"at": 5, "n": 1}, None)), target_type="Date", field="at")[1]
    assert plain == [{"at": 0, "n": 1}, None]
    assert type(plain[0]["at"]) is Moment


def test_a_text_that_is_no_time_is_refused_with_its_pattern() -> None:
    texts = column_of(Schema(Type.STRING), ["2026-11-18", "yesterday"])
    with pytest.raises(DataError, match=r"value \(yesterday\) does not match pattern \(yyyy-MM-dd\)") as refused:
        converted(texts, target_type="unix", format="yyyy-MM-dd")
    assert refused.value.row == 1
    with pytest.raises(DataError, match="set the option format"):
        converted(texts, target_type="unix")
    with pytest.raises(InvalidOption, match="Illegal pattern character 'q'"):
        converted(texts, target_type="unix", format="q")


def test_topics_have_the_day_of_their_records() -> None:
    records = of(Schemaless((1, 2, 3)), [0, 86_400_000, 5])
    made = make_transform("TimestampRouter", {}).apply(records)
    assert [(batch.topic, rows(batch.value)) for batch in made] == [
        ("orders-19700101", [1, 3]),
        ("orders-19700102", [2]),
    ]
    with pytest.raises(DataError, match="Timestamp missing") as refused:
        make_transform("TimestampRouter", {}).apply(of(Schemaless((1, 2)), [0, None]))
    assert refused.value.row == 1
    with pytest.raises(InvalidOption, match=r"timestamp\.format"):
        make_transform("TimestampRouter", {"timestamp.format": "'"})


def test_a_header_has_the_type_that_its_literal_looks_like() -> None:
    (made,) = make_transform("InsertHeader", {"header": "h", "value.literal": "300"}).apply(of(Schemaless((1, 2))))
    assert made.headers_of(1) == [("h", Schema(Type.INT16), 300)]
    (made,) = make_transform("InsertHeader", {"header": "h", "value.literal": "null"}).apply(of(Schemaless((1,))))
    assert made.headers_of(0) == [("h", None, None)]


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("", Schema(Type.STRING), ""),
        ("-128", Schema(Type.INT8), -128),
        ("9223372036854775807", Schema(Type.INT64), (1 << 63) - 1),
        ("9223372036854775808", schemas.decimal(0), Decimal("9223372036854775808")),
        ("1.0", Schema(Type.INT8), 1),
        ("1e39", Schema(Type.FLOAT64), 1e39),
        ("[1, 2.5]", schemas.array(Schema(Type.FLOAT32)), [1.0, 2.5]),
        ("[1, x]", Schema(Type.STRING), "[1, x]"),
        ("[null, 1]", Schema(Type.STRING), "[null, 1]"),
        ('{"a": 1}', schemas.map_of(Schema(Type.STRING), Schema(Type.INT8)), [("a", 1)]),
        ("2026-11-18T12:34:56.789Z", schemas.timestamp(), 1_795_005_296_789),
        ("[" * 200, Schema(Type.STRING), "[" * 200),
    ],
)
def test_literals(text: str, schema: Schema, value: Any) -> None:
    assert parse_literal(text) == (schema, value)


def test_numbers_of_texts_are_what_java_reads() -> None:
    assert parse_double(" -1.5e3d ") == -1500.0
    assert parse_double("0x1.8p1") == 3.0
    assert parse_float("1e39") == float("inf")
    # Just above the middle of two floats: by way of a double it would be rounded to the even one.
    assert as_float32("1.00000005960464477540") == 1.0000001192092896
    for text in ("1_0", "", "0x", "1e", "inf", "nan"):
        with pytest.raises(ValueError, match=r".*"):
            parse_double(text)
    with pytest.raises(ValueError, match="128"):
        parse_integer("128", 8)


@pytest.mark.parametrize(
    ("pattern", "ms", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", 0, "1970-01-01T00:00:00.000Z"),
        ("G y MMMM d EEEE", -12_219_292_800_001, "AD 1582 October 4 Thursday"),
        ("G yyyy", -62_167_219_200_001 - 86_400_000 * 400, "BC 0003"),
        ("YYYY w", 1_609_372_800_000, "2021 1"),
        ("h 'o''clock' a z Z", 46_800_000, "1 o'clock PM UTC +0000"),
        ("kk K D u yy", 0, "24 0 1 4 70"),
    ],
)
def test_dates_are_written_as_java_writes_them(pattern: str, ms: int, text: str) -> None:
    assert DateFormat(pattern).text(ms) == text


@pytest.mark.parametrize(
    ("pattern", "text", "ms"),
    [
        ("yyyyMMdd", "19700102xyz", 86_400_000),
        ("yyyy-MM-dd", "1970-13-40", 34_905_600_000),
        ("dd/MM/yy hh:mm a", "1/1/70 12:30 pm", 45_000_000),
        ("d MMM yyyy HH:mm Z", "1 jan 1970 01:00 +0100", 0),
        ("yyyy-MM-dd'T'HH:mmXXX", "1970-01-01T00:00-01:30", 5_400_000),
        ("yyyy-DDD HH zzz", "1970-032 00 GMT+1:00", 31 * 86_400_000 - 3_600_000),
        ("G yyyy", "BC 1", -62_167_392_000_000),
    ],
)
def test_dates_are_read_as_java_reads_them(pattern: str, text: str, ms: int) -> None:
    assert DateFormat(pattern).moment(text) == ms


@pytest.mark.parametrize(
    ("pattern", "text"), [("yyyy", "x"), ("HH:mm", "10"), ("MMM", "Foo"), ("z", "PST"), ("YYYY", "2026")]
)
def test_texts_that_are_no_dates_are_refused(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        DateFormat(pattern).moment(text)


def test_records_stay_together_where_columns_convert() -> None:
    numbers = Column(Schema(Type.INT64), pa.array(range(1_000), pa.int64()))
    assert converted(numbers, target_type="unix", unix_precision="microseconds")[1] == [
        one // 1_000 * 1_000 for one in range(1_000)
    ]
