"""Rows without a key, a time or an order: dropped before the operators that need them, counted, and to be had."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.spark.pipelines import (
    KeyState,
    Processor,
    aggregate_stream,
    aggregate_table,
    foreign_key,
    late,
    on_time,
    per_key,
    sliding,
    stream_stream,
    stream_table,
    table_table,
    to_records,
    until_closed,
    until_time_limit,
    unusable,
    usable,
)
from ottla.spark.pipelines.opaque import packed, reader
from tests.spark.pipelines_streams import Ran, Streamed, at

SCHEMA = "key string, value string, offset long, timestamp timestamp, closes timestamp"
WHOLE = ("a", "v", 1, at(1), at(5))
MALFORMED = [
    (None, "v", 2, at(1), at(5)),
    ("a", "v", None, at(1), at(5)),
    ("a", "v", 4, None, at(5)),
    ("a", "v", 5, at(1), None),
]


def counting() -> Processor:
    class Counting(Processor):
        def on_rows(self, key: tuple[Any, ...], rows: list[dict[str, Any]], state: KeyState) -> Iterable[Any]:
            yield key[0], str(len(rows))

    return Counting()


OPERATORS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "per_key": lambda rows: per_key(
        rows, ["key"], counting(), "key string, value string",
        order="offset", time="timestamp", time_mode="EventTime", buckets=1,
    ),
    "sliding": lambda rows: sliding(rows, 1000, buckets=1).select("key", F.concat_ws(",", "values")),
    "until_closed": lambda rows: until_closed(rows, "closes", buckets=1),
    "until_time_limit": lambda rows: until_time_limit(rows, 0, buckets=1),
    "stream_table": lambda rows: stream_table(rows, rows, on="key", how="left", buckets=1).select("key", "value"),
    "table_table": lambda rows: table_table(rows, rows, buckets=1).select("key", "value.left"),
    "foreign_key": lambda rows: foreign_key(rows, rows, F.col("key"), buckets=1).select("key", "value.left"),
    "aggregate_table": lambda rows: aggregate_table(rows, F.col("key"), buckets=1).select("key", F.lit("")),
    "aggregate_stream": lambda rows: aggregate_stream(rows, F.col("key"), buckets=1).select("key", F.lit("")),
}  # fmt: skip
DROPPED = {
    "per_key": 2,  # an order, a time
    "sliding": 2,  # a key, a time
    "until_closed": 4,
    "until_time_limit": 2,  # a key, an order
    "stream_table": 4,  # the table's key, order and time; the stream's time
    "table_table": 4,  # a key and an order on each side
    "foreign_key": 4,
    "aggregate_table": 2,
    "aggregate_stream": 0,
}
KEEP_NULL_KEYS = {"per_key", "stream_table", "aggregate_stream"}
QUICK = {"per_key", "stream_table"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in OPERATORS]
)
def test_no_malformed_row_ends_a_query_and_all_are_counted(name: str, streamed: Streamed, tmp_path: Path) -> None:
    rows = streamed(SCHEMA, [[WHOLE, *MALFORMED], [("c", "w", 7, at(120), at(125))]])
    out: set[str | None] = set()
    query = (
        OPERATORS[name](rows)
        .toDF("key", "value")
        .writeStream.foreachBatch(lambda told, _: out.update(row.key for row in told.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    assert query.exception() is None
    assert "a" in out, "the operator went on"
    assert (None in out) == (name in KEEP_NULL_KEYS)
    metrics = [row for progress in query.recentProgress for row in progress["observedMetrics"].values()]
    assert sum(row["dropped"] for row in metrics) == DROPPED[name]


def test_usable_and_unusable_rows_are_all_rows(spark: SparkSession) -> None:
    rows = spark.createDataFrame([WHOLE, *MALFORMED], SCHEMA)
    needed = "key", "offset", "timestamp"
    assert [row.offset for row in usable(rows, *needed).collect()] == [1, 5]
    assert [row.offset for row in unusable(rows, *needed).collect()] == [2, None, 4]


def test_late_and_on_time_are_all_rows(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("in time", at(0), at(10)), ("late", at(0), at(100)), ("no time", None, at(0)), ("no arrival", at(0), None)],
        "name string, at timestamp, timestamp timestamp",
    )
    assert [row.name for row in on_time(rows, "at", "30 seconds").collect()] == ["in time"]
    assert [row.name for row in late(rows, "at", "30 seconds").collect()] == ["late", "no time", "no arrival"]


@pytest.mark.parametrize("how", [pytest.param("left", marks=pytest.mark.long), "outer"])
def test_an_outer_join_of_streams_does_not_pair_nulls(how: Any, streamed: Streamed, ran: Ran) -> None:
    ends = [[("z", -1, at(1000))], [("z", -2, at(2000))]]
    left = streamed("u string, l int, la timestamp", [[(None, 1, at(0)), ("u", 2, at(0))], *ends])
    right = streamed("u string, r int, ra timestamp", [[(None, 7, at(1)), ("u", 8, at(1))], *ends])
    joined = stream_stream(left, right, ["u"], left_time="la", right_time="ra", after="10 seconds", how=how)
    told = {(row.u, row.l, row.r) for batch in ran(joined) for row in batch if row.u != "z"}
    assert told == {("u", 2, 8), (None, 1, None)} | ({(None, None, 7)} if how == "outer" else set())


def test_keys_are_the_same_bytes_in_every_time_zone_to_the_microsecond(spark: SparkSession) -> None:
    frame = spark.sql(
        "select timestamp_micros(1772366400000001) at, struct(timestamp_micros(-2208988800000001) b) s, 1.50d n"
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    found = []
    try:
        for zone in ("UTC", "Asia/Tokyo", "America/St_Johns"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            (row,) = to_records(frame, ["at", "s"]).collect()
            (other,) = frame.select(packed(F.struct("at", "s"), frame.drop("n").schema).alias("packed")).collect()
            found.append((bytes(row.key), other.packed))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    key = b'{"at":"2026-03-01T12:00:00.000001Z","s":{"b":"1899-12-31T23:59:59.999999Z"}}'
    assert found == [(key, key.decode())] * 3


def test_sums_keep_their_kind_and_a_sum_that_does_not_fit_is_null(streamed: Streamed, ran: Ran) -> None:
    stream = streamed("s smallint, n long, d decimal(20,3)", [[(1, 1 << 62, 0.5), (2, 1 << 62, 0.25)], [(3, -1, 1)]])
    sums = {name: F.col(name) for name in ("s", "n", "d")}
    result = aggregate_stream(stream, F.lit("all"), sums)
    kinds = result.schema["value"].dataType.simpleString()
    assert kinds == "struct<count:bigint,s:bigint,n:bigint,d:decimal(38,3)>"
    assert [tuple(row.value) for batch in ran(result) for row in batch] == [
        (2, 3, None, Decimal("0.750")),
        (3, 6, (1 << 63) - 1, Decimal("1.750")),
    ]


def test_decimals_and_numbers_that_are_none_reach_python_as_they_are(spark: SparkSession) -> None:
    digits = "12345678901234567890.123456789012345678"
    frame = spark.sql(f"select cast('{digits}' as decimal(38,18)) d, double('NaN') f, array(1.5d) a")
    row = frame.select(packed(F.struct(*frame.columns), frame.schema).alias("row")).collect()[0].row
    read = reader(frame.schema)(row)
    assert read["d"] == Decimal(digits)
    assert read["f"] != read["f"]
    assert read["a"] == [1.5]


def test_the_last_change_of_a_snapshot_counts(spark: SparkSession, streamed: Streamed, ran: Ran) -> None:
    """By offset, whatever the times are; in another partition a key has begun anew."""
    table = spark.createDataFrame(
        [
            ("a", "old", 10, 0, at(200)), ("a", "new", 11, 0, at(100)),
            ("b", "old", 12, 0, at(0)), ("b", None, 13, 0, at(1)),
            ("c", "old", 500, 0, at(0)), ("c", "moved", 3, 1, at(50)),
            (None, "null", 7, 0, at(0)),
        ],
        "key string, value string, offset long, partition int, timestamp timestamp",
    )  # fmt: skip
    stream = streamed("key string, timestamp timestamp", [[(key, at(0)) for key in ("a", "b", "c", None)]])
    told = ran(stream_table(stream, table, how="left"))
    assert {row.key: row.table for batch in told for row in batch} == {"a": "new", "b": None, "c": "moved", None: None}
