"""Deduplication, results as records, and state of one's own."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.spark.pipelines import (
    KeyState,
    Processor,
    aggregated,
    deduplicate,
    per_key,
    table_to_records,
    to_records,
)
from ottla.spark.pipelines.opaque import packed, reader, unpacked
from tests.spark.pipelines_streams import Ran, Streamed, at, seconds


def test_duplicates_leave_once(streamed: Streamed, ran: Ran) -> None:
    schema = "id int, timestamp timestamp"
    stream = streamed(schema, [[(1, at(0)), (1, at(1)), (2, at(1))], [(2, at(3)), (3, at(4))]])
    told = ran(deduplicate(stream, ["id"], time="timestamp", within="10 seconds"))
    assert [sorted(row.id for row in batch) for batch in told] == [[1, 2], [3]]


def test_time_and_within_belong_together(streamed: Streamed) -> None:
    with pytest.raises(ValueError, match="belong together"):
        deduplicate(streamed("id int", []), ["id"], within="1 second")


def test_an_aggregation_is_a_changelog(streamed: Streamed, ran: Ran) -> None:
    stream = streamed("user string, amount int", [[("a", 1), ("b", 2)], [("a", 3)]])
    told = ran(aggregated(stream, ["user"], F.sum("amount").alias("total")), "update")
    assert [{bytes(row.key): json.loads(bytes(row.value)) for row in batch} for batch in told] == [
        {b"a": {"total": 1}, b"b": {"total": 2}},
        {b"a": {"total": 4}},
    ]


def test_records_of_what_is_deleted_have_no_value(spark: SparkSession) -> None:
    results = spark.createDataFrame([("a", 1, 0), ("b", 2, 9)], "user string, shop int, n int")
    rows = to_records(results, ["user", "shop"], deleted=F.col("n") == 0).collect()
    assert [(bytes(row.key), row.value and bytes(row.value)) for row in rows] == [
        (b'{"user":"a","shop":1}', None),
        (b'{"user":"b","shop":2}', b'{"n":9}'),
    ]


def test_a_table_becomes_records_with_its_deletes(spark: SparkSession) -> None:
    table = spark.createDataFrame([("a", (1, "x")), ("b", None)], "key string, value struct<n:int,s:string>")
    rows = table_to_records(table).collect()
    assert [(bytes(row.key), row.value and bytes(row.value)) for row in rows] == [
        (b"a", b'{"n":1,"s":"x"}'),
        (b"b", None),
    ]


def silence() -> Processor:
    """A processor; its class is not found by its module's name in Spark's workers, and so goes with it."""

    class Silence(Processor):
        """Tells a key, and how many rows it had, when it has been silent for ten seconds of event time."""

        def on_rows(
            self, key: tuple[Any, ...], rows: list[dict[str, Any]], state: KeyState
        ) -> Iterable[tuple[Any, ...]]:
            last = max(row["timestamp"] for row in rows)
            state.value = (state.value or 0) + len(rows)
            state.wake_at_ms(int(last.timestamp() * 1000) + 10_000)
            return ()

        def on_timer(self, key: tuple[Any, ...], state: KeyState) -> Iterable[tuple[Any, ...]]:
            yield *key, state.value
            state.forget()

    return Silence()


def test_a_processor_keeps_state_and_is_woken_by_its_timer(streamed: Streamed, ran: Ran) -> None:
    stream = streamed(
        "sensor string, timestamp timestamp",
        [
            [("a", at(0)), ("a", at(5)), ("b", at(6))],
            [("b", at(16))],
            [("b", at(17))],
            [("a", at(18))],
            [("c", at(100))],
        ],
    )
    told = ran(
        per_key(stream, ["sensor"], silence(), "sensor string, n int", time="timestamp", time_mode="EventTime"),
    )
    assert [sorted((row.sensor, row.n) for row in batch) for batch in told] == [[("a", 2)], [("a", 1), ("b", 3)]]


def test_time_is_given_with_event_time_only(streamed: Streamed) -> None:
    with pytest.raises(ValueError, match="give it with EventTime, only"):
        per_key(streamed("id int", []), ["id"], silence(), "id int", time_mode="EventTime")


def test_values_come_through_as_they_were(spark: SparkSession) -> None:
    schema = "a int, b double, c timestamp, d decimal(20,4), e binary, f array<string>, g date, h string"
    instant = datetime(2026, 1, 2, 3, 4, 5, 678901)
    row = (None, 0.1, instant, Decimal("12345678901234.5678"), b"\x00\xff", ["x", None], instant.date(), 'quote " it')
    frame = spark.createDataFrame([row, (7, *([None] * 7))], schema)
    column = packed(F.struct(*frame.columns), frame.schema)
    again = frame.select(unpacked(column, frame.schema).alias("row")).select("row.*")
    assert again.collect() == frame.collect()
    read = reader(frame.schema)(frame.select(column.alias("packed")).collect()[0].packed)
    assert (read["c"], read["e"], read["g"]) == (instant.replace(tzinfo=UTC), b"\x00\xff", instant.date())
    assert seconds(at(3)) == 3
