"""Tables from compacted topics, against the newest change of each key in plain Python."""

from itertools import groupby
from random import Random
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.spark.pipelines import aggregate_stream, aggregate_table, latest, present
from tests.spark.pipelines_streams import Ran, Streamed

CHANGES = "key string, value string, offset long"


def changes(seed: int, keys: int = 12, rows: int = 120) -> list[tuple[Any, ...]]:
    random = Random(seed)
    return [
        (f"k{random.randrange(keys)}", None if random.random() < 0.25 else f"v{offset}", offset)
        for offset in range(rows)
    ]


def divided(rows: list[Any], parts: int) -> list[list[Any]]:
    """In micro-batches, each out of order, as a shuffle or several partitions leave it."""
    size = -(-len(rows) // parts)
    return [sorted(rows[start : start + size], key=str, reverse=True) for start in range(0, len(rows), size)]


def newest(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {key: value for key, value, *_ in rows}


def test_latest_holds_the_newest_value_of_each_key_and_tells_deletes(streamed: Streamed, ran: Ran) -> None:
    rows = changes(1)
    told = ran(latest(streamed(CHANGES, divided(rows, 3))), "update")
    assert {row.key: row.value for batch in told for row in batch} == newest(rows)
    assert all(len({row.key for row in batch}) == len(batch) for batch in told), "a key is told once a micro-batch"


def test_latest_of_a_batch_is_the_same_table(spark: SparkSession) -> None:
    rows = changes(2)
    table = present(latest(spark.createDataFrame(rows, CHANGES)))
    assert {row.key: row.value for row in table.collect()} == {k: v for k, v in newest(rows).items() if v is not None}


def test_an_aggregated_table_follows_rows_that_change_their_group_and_go(streamed: Streamed, ran: Ran) -> None:
    random = Random(3)
    rows = [
        (f"k{random.randrange(8)}", None if random.random() < 0.3 else (f"city-{random.randrange(4)}", n), n)
        for n in range(90)
    ]
    stream = streamed(
        "key string, offset long, city string, amount long",
        divided([(key, n, *(value or (None, None))) for key, value, n in rows], 3),
    ).select("key", "offset", F.when(F.col("city").isNotNull(), F.struct("city", "amount")).alias("value"))
    told = ran(aggregate_table(stream, F.col("value.city"), {"amount": F.col("value.amount")}))
    table = {row.key: row.value for batch in told for row in batch}
    alive = sorted(value for value in newest(rows).values() if value is not None)
    wanted = {city: [amount for _, amount in own] for city, own in groupby(alive, key=lambda value: value[0])}
    assert {city: (value["count"], value.amount) for city, value in table.items() if value is not None} == {
        city: (len(amounts), sum(amounts)) for city, amounts in wanted.items()
    }


def test_a_group_whose_last_row_goes_is_deleted_and_forgotten(streamed: Streamed, ran: Ran) -> None:
    stream = streamed("key string, value string, offset long", [[("a", "x", 0)], [("a", "y", 1)], [("a", None, 2)]])
    told = ran(aggregate_table(stream, F.col("value")))
    assert [sorted((row.key, row.value and row.value["count"]) for row in batch) for batch in told] == [
        [("x", 1)],
        [("x", None), ("y", 1)],
        [("y", None)],
    ]


def test_an_aggregated_stream_tells_running_totals(streamed: Streamed, ran: Ran) -> None:
    stream = streamed("user string, amount int", [[("a", 1), ("b", 2), ("a", 2)], [("a", 3)]])
    told = ran(aggregate_stream(stream, F.col("user"), {"amount": F.col("amount")}))
    assert [sorted((row.key, *row.value) for row in batch) for batch in told] == [
        [("a", 2, 3), ("b", 1, 2)],
        [("a", 3, 6)],
    ]
