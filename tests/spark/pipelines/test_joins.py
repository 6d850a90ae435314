"""Joins, against the same joins of the tables and rows as they are in the end, in plain Python."""

from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.spark.pipelines import foreign_key, present, stream_stream, stream_table, table_table
from tests.spark.pipelines.test_tables import CHANGES, changes, divided, newest
from tests.spark.pipelines_streams import Ran, Streamed, at


def alive(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {key: value for key, value in newest(rows).items() if value is not None}


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_joined_tables_end_as_the_join_of_their_last_values(how: Any, streamed: Streamed, ran: Ran) -> None:
    left, right = changes(11), changes(12)
    told = ran(table_table(streamed(CHANGES, divided(left, 2)), streamed(CHANGES, divided(right, 3)), how=how))
    table = {row.key: row.value for batch in told for row in batch}
    a, b = alive(left), alive(right)
    keys = {"inner": a.keys() & b.keys(), "left": a.keys(), "outer": a.keys() | b.keys()}[how]
    assert {key: tuple(pair) for key, pair in table.items() if pair is not None} == {
        key: (a.get(key), b.get(key)) for key in keys
    }


def test_a_row_of_a_stream_leaves_with_the_table_of_its_time(streamed: Streamed, ran: Ran) -> None:
    table = streamed(
        "key string, value string, timestamp timestamp",
        [[("a", "one", at(0)), ("b", "one", at(0)), ("a", "two", at(2))], [("b", None, at(5))]],
    )
    stream = streamed(
        "customer string, amount int, timestamp timestamp",
        [[("a", 1, at(1)), ("a", 2, at(3)), ("b", 3, at(3)), ("c", 4, at(3))], [("b", 5, at(6)), ("a", 6, at(6))]],
    )
    told = ran(stream_table(stream, table, on="customer", how="left", name="found"))
    assert {row.amount: row.found for batch in told for row in batch} == {
        1: "one", 2: "two", 3: "one", 4: None, 5: None, 6: "two",
    }  # fmt: skip


def test_a_stream_joined_with_a_snapshot_is_sparks_own_join(spark: SparkSession, streamed: Streamed, ran: Ran) -> None:
    snapshot = present(spark.createDataFrame([("a", "one"), ("b", None)], "key string, value string"))
    stream = streamed("key string, timestamp timestamp", [[("a", at(0)), ("b", at(0))]])
    assert [[(row.key, row.table) for row in batch] for batch in ran(stream_table(stream, snapshot))] == [
        [("a", "one")]
    ]


def test_keys_of_different_types_are_refused_by_name(streamed: Streamed) -> None:
    with pytest.raises(ValueError, match="'key' is string and 'key' is bigint: cast one of them"):
        table_table(
            streamed("key string, value string, offset long", []), streamed("key long, value string, offset long", [])
        )


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_foreign_key_join_follows_rows_that_move_and_referents_that_go(
    how: Any, streamed: Streamed, ran: Ran
) -> None:
    random = Random(21)
    orders = [
        (f"o{random.randrange(10)}", None if random.random() < 0.2 else f"c{random.randrange(5)}", offset)
        for offset in range(120)
    ]
    customers = changes(22, keys=5, rows=60)
    customers = [(key.replace("k", "c"), value, offset) for key, value, offset in customers]
    left = streamed(CHANGES, divided(orders, 4)).withColumn(
        "value", F.when(F.col("value").isNotNull(), F.struct(F.col("value").alias("customer"), "offset"))
    )
    joined = foreign_key(left, streamed(CHANGES, divided(customers, 3)), F.col("value.customer"), how=how)
    told = ran(joined)
    table = {row.key: row.value for batch in told for row in batch}
    by_name = alive(customers)
    assert {key: (pair.left.customer, pair.right) for key, pair in table.items() if pair is not None} == {
        key: (customer, by_name.get(customer))
        for key, customer in alive(orders).items()
        if customer in by_name or how == "left"
    }
    assert all(len({row.key for row in batch}) == len(batch) for batch in told), "a key is told once a micro-batch"


def test_rows_of_two_streams_meet_when_they_are_close_in_time(streamed: Streamed, ran: Ran) -> None:
    random = Random(31)
    clicks = [(f"u{random.randrange(4)}", n, at(n)) for n in range(0, 60, 2)]
    buys = [(f"u{random.randrange(4)}", n, at(n)) for n in range(1, 60, 3)]
    closing = [("closing", -1, at(1000))], [("closing", -2, at(1000))]
    joined = stream_stream(
        streamed("user string, click int, clicked timestamp", [clicks[:15], clicks[15:], closing[0]]),
        streamed("user string, buy int, bought timestamp", [buys[:10], buys[10:], closing[1]]),
        ["user"],
        left_time="clicked",
        right_time="bought",
        before="2 seconds",
        after="7 seconds",
        how="left",
    )
    pairs = {(row.click, row.buy) for batch in ran(joined) for row in batch if row.user != "closing"}
    wanted = {(a[1], b[1]) for a in clicks for b in buys if a[0] == b[0] and -2 <= b[1] - a[1] <= 7}
    assert pairs == wanted | {(a[1], None) for a in clicks if all(a[1] != click for click, _ in wanted)}


def test_columns_that_both_streams_have_are_named(streamed: Streamed) -> None:
    rows = streamed("user string, time timestamp", [])
    with pytest.raises(ValueError, match="both sides have the columns time"):
        stream_stream(rows, rows, ["user"], left_time="time", right_time="time")
