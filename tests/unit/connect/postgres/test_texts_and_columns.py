"""PostgreSQL's texts of values, one by one and in columns."""

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.connectors.postgres import columns, texts
from ottla.connect.data.rows import decimal_of, stored_bytes
from ottla.connect.errors import DataError


def strings(*values: str | None) -> Any:
    return pa.array(values, pa.string())


@pytest.mark.parametrize(
    ("text", "days"),
    [("1970-01-01", 0), ("1969-12-31", -1), ("2024-02-29", 19782), ("12345-06-07", 3789548), ("0001-01-01 BC", -719528),
     ("infinity", 2147483647), ("-infinity", -2147483648)],
)  # fmt: skip
def test_dates_of_all_times_are_days_since_1970(text: str, days: int) -> None:
    assert texts.days(text) == days
    assert columns.dates(strings(text, None, "1970-01-02")).to_pylist() == [days, None, 1]


def test_dates_are_written_back_as_they_were() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        day = date(1, 1, 1) + timedelta(chance.randrange(3_652_058))
        assert texts.days(day.isoformat()) == (day - date(1970, 1, 1)).days
        assert texts.iso_date((day - date(1970, 1, 1)).days) == day.isoformat()
    assert texts.iso_date(3789548) == "+12345-06-07"
    assert texts.iso_date(texts.days("0002-03-04 BC")) == "-0001-03-04"


def test_timestamps_in_columns_are_those_read_one_by_one() -> None:
    chance = random.Random(2)
    written: list[str | None] = [None, "infinity", "-infinity", "12345-06-07 01:02:03.5", "0044-03-15 12:00:00 BC"]
    for _ in range(500):
        moment = datetime(1, 1, 1) + timedelta(microseconds=chance.randrange(3_000_000 * 86_400 * 1_000_000))
        written.append(moment.isoformat(" ").rstrip("0") if moment.microsecond else moment.isoformat(" "))
    wanted = [None if text is None else texts.epoch_micros(text) for text in written]
    assert columns.timestamps_us(strings(*written)).to_pylist() == wanted
    assert wanted[1:3] == [9223372036825200000, -9223372036832400000]


def test_milliseconds_of_a_time_before_1970_are_the_ones_below() -> None:
    read = columns.scaled(columns.timestamps_us, 1000, pa.int64())
    assert read(strings("1969-12-31 23:59:59.9995", None)).to_pylist() == [-1, None]


def test_nanoseconds_that_are_too_many_are_the_most() -> None:
    read = columns.multiplied(columns.timestamps_us, 1000)
    assert read(strings("infinity", "-infinity", "1970-01-01 00:00:01")).to_pylist() == [2**63 - 1, -(2**63), 10**9]


@pytest.mark.parametrize(
    ("text", "iso"),
    [("13:14:15.123456+02", "11:14:15.123456Z"), ("00:00:00-08:30", "08:30:00Z"), ("00:30:00+01", "23:30:00Z"),
     ("12:00:00.5+00", "12:00:00.5Z"), ("12:00:00+05:30:15", "06:29:45Z")],
)  # fmt: skip
def test_times_with_a_zone_go_to_utc(text: str, iso: str) -> None:
    assert texts.iso_time(text) == iso


def test_timestamps_with_a_zone_keep_the_digits_of_their_column() -> None:
    given = strings("2024-02-29 13:14:15.1+00", "2024-02-29 13:14:15+00", "infinity", None, "12345-06-07 01:02:03+00")
    assert columns.zoned_timestamps(6)(given).to_pylist() == [
        "2024-02-29T13:14:15.100000Z", "2024-02-29T13:14:15.000000Z", "infinity", None, "+12345-06-07T01:02:03.000000Z",
    ]  # fmt: skip
    assert columns.zoned_timestamps(0)(given)[0].as_py() == "2024-02-29T13:14:15Z"


@pytest.mark.parametrize(
    ("text", "micros", "iso"),
    [
        ("1 year 2 mons 3 days 04:05:06.789", 37091106789000, "P1Y2M3DT4H5M6.789S"),
        ("-1 days", -86400000000, "P0Y0M-1DT0H0M0S"),
        ("00:00:00", 0, "P0Y0M0DT0H0M0S"),
        ("-00:00:00.000001", -1, "P0Y0M0DT0H0M-0.000001S"),
        ("1 mon -1 days +00:00:01", 2543401000000, "P0Y1M-1DT0H0M1S"),
        ("-1 years -2 mons +3 days -04:05:06", -36572706000000, "P-1Y-2M3DT-4H-5M-6S"),
    ],
)
def test_intervals_are_microseconds_or_iso(text: str, micros: int, iso: str) -> None:
    assert texts.span_micros(text) == micros
    assert texts.iso_span(text) == iso


def test_an_infinite_interval_is_refused() -> None:
    with pytest.raises(DataError, match="infinity"):
        texts.span_micros("infinity")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("{}", []),
        ("{1,NULL,-2}", ["1", None, "-2"]),
        (r'{a,"b,\"c\\",NULL,"NULL",""," x "}', ["a", 'b,"c\\', None, "NULL", "", " x "]),
        ("{{1,2},{3,4}}", ["1", "2", "3", "4"]),
        ("[0:1]={5,6}", ["5", "6"]),
        ('{"{",b}', ["{", "b"]),
    ],
)
def test_arrays_are_taken_apart(text: str, items: list[str | None]) -> None:
    assert texts.array_items(text) == items


def test_hstore_is_pairs() -> None:
    text = r'"a"=>"1", "b\"\\"=>NULL, "c"=>"x, y=>z"'
    assert texts.hstore_pairs(text) == [("a", "1"), ('b"\\', None), ("c", "x, y=>z")]
    assert columns.hstore_json('"a"=>NULL') == '{"a":null}'


@pytest.mark.parametrize(
    ("text", "content"), [("101", b"\x05"), ("000", b""), ("100000000001", b"\x01\x08"), ("", b"")]
)
def test_bits_are_little_endian_and_trimmed(text: str, content: bytes) -> None:
    assert texts.bits(text) == content


def test_decimals_are_as_few_bytes_as_java_needs() -> None:
    chance = random.Random(3)
    numbers = [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63 - 1, -(2**63), 10**30, -(10**30)]
    numbers += [chance.randrange(-(10 ** chance.randrange(1, 36)), 10 ** chance.randrange(1, 36)) for _ in range(2000)]
    shown = [format(decimal_of(number, 3), "f") for number in numbers]
    read = columns.decimals(3)(strings(*shown, None))
    assert read.to_pylist() == [*map(stored_bytes, numbers), None]


def test_decimals_longer_than_arrow_has_are_read_too() -> None:
    number = 12345678901234567890**3
    assert columns.decimals(0)(strings(str(number), "1")).to_pylist() == [stored_bytes(number), b"\x01"]
    long = "9" * 5000
    (read,) = columns.variable_decimals(strings(long)).to_pylist()
    assert int.from_bytes(read["value"], "big", signed=True) == int(Decimal(long))


def test_decimals_with_a_negative_scale() -> None:
    assert columns.decimals(-2)(strings("12300", "-100")).to_pylist() == [b"\x7b", b"\xff"]


@pytest.mark.parametrize(
    ("text", "scale", "unscaled"),
    [
        ("1.50", 1, 15),
        ("100", 0, 100),
        ("-0.001", 3, -1),
        ("0.000", 0, 0),
        ("0", 0, 0),
        ("10.0", 0, 10),
        ("1.05", 2, 105),
    ],
)
def test_decimals_of_any_scale_lose_their_zeros(text: str, scale: int, unscaled: int) -> None:
    assert columns.variable_decimals(strings(text, None)).to_pylist() == [
        {"scale": scale, "value": stored_bytes(unscaled)}, None,
    ]  # fmt: skip


def test_hexadecimal_becomes_bytes() -> None:
    chance = random.Random(4)
    contents = [chance.randbytes(chance.randrange(20)) for _ in range(300)]
    given = strings(*("\\x" + content.hex() for content in contents), None)
    assert columns.hex_bytes(given).to_pylist() == [*contents, None]
    assert columns.hex_bytes(given.slice(7, 5)).to_pylist() == contents[7:12]
    assert columns.hex_bytes(strings()).to_pylist() == []


def test_money_is_a_decimal() -> None:
    read = columns.money(columns.decimals(2))
    assert read(strings("$1,234.56", "-$0.05", None)).to_pylist() == [stored_bytes(123456), stored_bytes(-5), None]


def test_vectors_and_points() -> None:
    assert columns.vectors(pa.float64())(strings("[1,2.5,-3]", None)).to_pylist() == [[1.0, 2.5, -3.0], None]
    (point,) = columns.points(strings("(1.5,-2)")).to_pylist()
    assert (point["x"], point["y"], len(point["wkb"])) == (1.5, -2.0, 21)
    assert columns.sparse_vectors(strings("{1:1.5,3:-2}/5", "{}/3")).to_pylist() == [
        {"dimensions": 5, "vector": [(1, 1.5), (3, -2.0)]}, {"dimensions": 3, "vector": []},
    ]  # fmt: skip


def test_geometries_have_their_srid() -> None:
    with_srid = "0101000020E6100000000000000000F03F0000000000000040"
    without = "0101000000000000000000F03F0000000000000040"
    assert [one["srid"] for one in columns.geometries(strings(with_srid, without)).to_pylist()] == [4326, None]
