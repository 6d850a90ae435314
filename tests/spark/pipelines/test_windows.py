"""Windows and what is held back, against the same windows in plain Python."""

from collections import Counter
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.pipelines import hopping, late, on_time, session, sliding, tumbling, until_closed, until_time_limit
from tests.spark.pipelines_streams import Ran, Streamed, at, seconds

ROWS = "key string, value int, timestamp timestamp"
CLOSING = [("closing", 0, at(10_000))]


def rows(seed: int, count: int = 60) -> list[tuple[Any, ...]]:
    random = Random(seed)
    return [(f"k{random.randrange(3)}", n, at(n * 2 + random.randrange(3))) for n in range(count)]


def batches(made: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    half = len(made) // 2
    return [made[:half], made[half:], CLOSING]


def windows_of(told: list[list[Any]]) -> dict[tuple[str, float, float], int]:
    found = [((row.key, seconds(row.window.start), seconds(row.window.end)), row.n) for batch in told for row in batch]
    assert len(found) == len(dict(found)), "a window is told once"
    return {window: n for window, n in found if window[0] != "closing"}


def counted(made: list[tuple[Any, ...]], size: int, advance: int) -> dict[tuple[str, float, float], int]:
    counts: Counter[tuple[str, float, float]] = Counter()
    for key, _, time in made:
        start = seconds(time) // advance * advance
        while start > seconds(time) - size:
            counts[key, start, start + size] += 1
            start -= advance
    return counts


def test_tumbling_windows_are_told_once_when_they_close(streamed: Streamed, ran: Ran) -> None:
    made = rows(1)
    told = ran(
        tumbling(streamed(ROWS, batches(made)), "10 seconds", F.count("*").alias("n"), by=["key"], grace="5 seconds")
    )
    assert windows_of(told) == counted(made, 10, 10)


def test_windows_that_never_close_are_told_whenever_they_change(streamed: Streamed, ran: Ran) -> None:
    early, very_late = [("a", 1, at(0)), ("a", 1, at(500))], [("a", 1, at(1))]
    windows = tumbling(
        streamed(ROWS, [early, very_late]), "10 seconds", F.count("*").alias("n"), by=["key"], grace=None
    )
    assert [sorted(row.n for row in batch) for batch in ran(windows, "update")] == [[1, 1], [2]]


def test_a_row_later_than_the_grace_is_dropped(streamed: Streamed, ran: Ran) -> None:
    stream = streamed(
        ROWS, [[("a", 1, at(0)), ("a", 1, at(100))], [("a", 1, at(100))], [("a", 1, at(1)), ("a", 1, at(96))], CLOSING]
    )
    told = ran(tumbling(stream, "10 seconds", F.count("*").alias("n"), by=["key"], grace="5 seconds"))
    assert windows_of(told) == {("a", 0, 10): 1, ("a", 90, 100): 1, ("a", 100, 110): 2}


def test_hopping_windows_overlap(streamed: Streamed, ran: Ran) -> None:
    made = rows(2)
    stream = streamed(ROWS, batches(made))
    told = ran(hopping(stream, "10 seconds", "5 seconds", F.count("*").alias("n"), by=["key"], grace="5 seconds"))
    assert windows_of(told) == counted(made, 10, 5)


def test_sessions_end_where_nothing_follows_within_the_gap(streamed: Streamed, ran: Ran) -> None:
    made = rows(3)
    told = ran(
        session(streamed(ROWS, batches(made)), "6 seconds", F.count("*").alias("n"), by=["key"], grace="5 seconds")
    )
    wanted: dict[tuple[str, float, float], int] = {}
    for key in {row[0] for row in made}:
        times = sorted(seconds(time) for own, _, time in made if own == key)
        while times:
            size = next((n for n in range(1, len(times)) if times[n] > times[n - 1] + 6), len(times))
            wanted[key, times[0], times[size - 1] + 6] = size
            times = times[size:]
    assert windows_of(told) == wanted


def test_sliding_windows_show_every_set_of_rows_within_the_size(streamed: Streamed, ran: Ran) -> None:
    made = rows(4)
    told = ran(sliding(streamed(ROWS, batches(made)), 7000, grace="5 seconds"))
    found = {
        (row.key, round(seconds(row.window.start), 3), round(seconds(row.window.end), 3)): sorted(row["values"])
        for batch in told
        for row in batch
        if row.key != "closing"
    }
    wanted: dict[tuple[str, float, float], list[int]] = {}
    for key in {row[0] for row in made}:
        own = [(seconds(time), value) for one, value, time in made if one == key]
        spans = [(time - 7, time) for time, _ in own] + [(time + 0.001, time + 7.001) for time, _ in own]
        for start, end in spans:
            inside = sorted(value for time, value in own if start <= time <= end)
            if inside:
                wanted[key, round(start, 3), round(end, 3)] = inside
    assert found == wanted


def test_late_rows_can_go_elsewhere(streamed: Streamed, ran: Ran) -> None:
    schema = "id int, time timestamp, timestamp timestamp"
    made = [[(1, at(0), at(1)), (2, at(0), at(5)), (3, at(0), at(6))]]
    assert [[row.id for row in batch] for batch in ran(on_time(streamed(schema, made), "time", "5 seconds"))] == [
        [1, 2]
    ]
    told = ran(late(streamed(schema, made), "time", "5 seconds"), checkpoint="late")
    assert [[row.id for row in batch] for batch in told] == [[3]]


def test_only_the_last_change_of_a_window_is_told_when_it_closes(streamed: Streamed, ran: Ran) -> None:
    schema = "key string, value int, offset long, closes timestamp, timestamp timestamp"
    stream = streamed(
        schema,
        [
            [("w1", 1, 0, at(10), at(1)), ("w1", 2, 1, at(10), at(2)), ("w2", 7, 2, at(20), at(3))],
            [("w1", 3, 3, at(10), at(9)), ("w2", None, 4, at(20), at(9))],
            [("later", 0, 5, at(99), at(30))],
            [("w1", 9, 6, at(10), at(31))],
        ],
    )
    told = ran(until_closed(stream, "closes"))
    assert [[(row.key, row.value) for row in batch] for batch in told] == [[("w1", 3)]]


def test_changes_within_the_time_limit_are_told_as_one(streamed: Streamed, tmp_path: Path) -> None:
    changes = [("a", "1", 0), ("a", "2", 1), ("b", "1", 2), ("b", None, 3)]
    stream = streamed("key string, value string, offset long", [changes])
    told: dict[str, list[Any]] = {}
    all_told = Event()

    def hear(rows: DataFrame, _: int) -> None:
        for row in rows.collect():
            told.setdefault(row.key, []).append(row.value)
        if len(told) == 2:
            all_told.set()

    writer = until_time_limit(stream, 50).writeStream.foreachBatch(hear)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert all_told.wait(60)
    finally:
        query.stop()
    assert told == {"a": ["2"], "b": [None]}
