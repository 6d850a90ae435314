"""Batches of records: split and together again, and headers in columns."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.connect.data.columns import nothing
from ottla.connect.data.records import in_order, records_of
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema, Type
from tests.unit.connect.random_data import any_schema, values

TEXT = Schema(Type.STRING)
INT = Schema(Type.INT32)


@st.composite
def headers(draw: st.DrawFn) -> list[list[tuple[str, Schema | None, Any]]]:
    kinds = draw(st.lists(any_schema(depth=1), min_size=1, max_size=3))
    one = st.sampled_from(kinds).flatmap(
        lambda schema: st.tuples(st.sampled_from("abc"), st.just(schema), values(schema))
    )
    bare = st.tuples(st.sampled_from("abc"), st.none(), st.integers() | st.text(max_size=3))
    return draw(st.lists(st.lists(one | bare, max_size=4), max_size=5))


@settings(max_examples=60, deadline=None)
@given(headers())
def test_each_record_has_its_headers_in_their_order(given_: list[list[tuple[str, Schema | None, Any]]]) -> None:
    records = records_of("t", nothing(len(given_)), nothing(len(given_)), headers=given_)
    assert repr([records.headers_of(row) for row in range(len(given_))]) == repr(given_)
    backwards = records.take(pa.array(range(len(given_))[::-1], pa.int64()))
    assert repr([backwards.headers_of(row) for row in range(len(given_))]) == repr(given_[::-1])


def test_headers_that_all_records_have_are_one_column_each() -> None:
    same = [("a", TEXT, "x"), ("b", INT, 1)]
    records = records_of("t", nothing(3), nothing(3), headers=[same] * 3)
    assert [(header.key, header.present) for header in records.headers] == [("a", None), ("b", None)]


def test_records_that_were_split_come_together_in_their_order() -> None:
    values = column_of(INT, [10, 11, 12, 13])
    records = records_of("t", nothing(4), values, first=100, headers=[[("h", INT, 1)]] * 4)
    odd, even = records.split(pa.array([False, True, False, True]))
    assert odd is not None
    assert even is not None
    assert rows_of(odd.value) == [11, 13]
    assert odd.position.to_pylist() == [101, 103]
    parts = [odd, even]
    together = in_order([part.value.array for part in parts], [part.position for part in parts])
    assert together.to_pylist() == [10, 11, 12, 13]


def test_all_or_none_are_not_copied() -> None:
    records = records_of("t", nothing(2), nothing(2))
    assert records.split(pa.array([True, True])) == (records, None)
    assert records.split(pa.array([False, False])) == (None, records)


def test_records_are_divided_by_name_in_the_order_of_their_first() -> None:
    records = records_of("t", nothing(4), column_of(INT, [1, 2, 3, 4]))
    found = records.by(pa.array(["b", "a", "b", "a"]))
    assert [(name, rows_of(part.value)) for name, part in found] == [("b", [1, 3]), ("a", [2, 4])]


def test_a_record_is_named_by_where_it_came_from() -> None:
    records = records_of("orders", nothing(1), nothing(1), first=7)
    assert records.where(0) == "record 7 for topic orders"
    sink = records.but(partition=pa.array([3], pa.int32()), offset=pa.array([41], pa.int64()))
    assert sink.where(0) == "the record at offset 41 of orders-3"
    source = records.but(source_offset=pa.array(['{"lsn":5}']))
    assert source.where(0) == 'record 7 for topic orders, source offset {"lsn":5}'
