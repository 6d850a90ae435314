"""The operators that are made of Spark's own, against the same computed in Python, on random rows from a seed.

With nulls where they can be, ties, rows that are late, a restart in the middle, and another time zone in each run. A
query says with its progress which micro-batches there were, those without rows among them; the model follows it with
Spark's two watermarks: a row is late by that of the micro-batch before, state goes by that of now.
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.spark.pipelines import deduplicate, hopping, latest, session, stream_stream, tumbling

CASES = 1
MANY = 12
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Europe/Dublin"]
START_US = 1_711_843_200_000_000  # 2024-03-31: clocks go forward in Dublin
SECOND_US = 1_000_000
KEYS = ["a", "b", "", None]
Row = tuple[Any, ...]
Batch = Sequence[Row]


def model(run: Callable[[Random, "Streams"], None]) -> Any:
    """A test for some seeds, and for more in the long run."""
    seeds = [*range(CASES), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(CASES, MANY))]

    @pytest.mark.parametrize("seed", seeds)
    def test(seed: int, spark: SparkSession, tmp_path: Path) -> None:
        zone = spark.conf.get("spark.sql.session.timeZone")
        random = Random(f"{run.__name__} {seed}")
        try:
            run(random, Streams(spark, tmp_path, random))
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)

    test.__name__, test.__doc__ = run.__name__, run.__doc__
    return test


class Told(NamedTuple):
    """A micro-batch: what came in by stream, what went out, and Spark's watermarks in it, in microseconds."""

    rows: list[Batch]
    out: list[Row]
    late_us: int
    evicted_us: int


class Streams:
    """Streams of files, and a query over them that is stopped in the middle and started again."""

    def __init__(self, spark: SparkSession, folder: Path, random: Random) -> None:
        self._spark = spark
        self._folder = folder
        self._random = random

    def run(
        self,
        build: Callable[..., DataFrame],
        streams: Sequence[tuple[str, Sequence[Batch]]],
        columns: Sequence[str],
        mode: str = "append",
    ) -> Iterator[Told]:
        """`build` is given a DataFrame for each stream (a schema and its micro-batches, as many in each)."""
        count, schemas = len(streams[0][1]), [schema for schema, _ in streams]
        stops = self._random.randrange(1, count)
        taken, before_us = 0, 0
        for begin, end in ((0, stops), (stops, count)):
            for number, (schema, batches) in enumerate(streams):
                self._write(number, schema, begin, batches[begin:end])
            for progress, out in self._query(build, schemas, columns, mode):
                rows: list[Batch] = [[] for _ in streams]
                if progress["numInputRows"]:
                    rows = [batches[taken] for _, batches in streams]
                    taken += 1
                    told = sum(metrics["dropped"] for metrics in progress["observedMetrics"].values())
                    assert told == sum(_without_time(schema, rows) for schema, rows in zip(schemas, rows, strict=True))
                watermark = progress["eventTime"].get("watermark") if "eventTime" in progress else None
                now_us = _micros(watermark) if watermark else 0
                yield Told(rows, out, before_us, now_us)
                before_us = now_us
        assert taken == count, "all micro-batches had rows"

    def _write(self, number: int, schema: str, first: int, batches: Sequence[Batch]) -> None:
        folder = self._folder / f"stream-{number}"
        folder.mkdir(exist_ok=True)
        names = [field.split()[0] for field in schema.split(", ")]
        for index, batch in enumerate(batches, first):
            lines = [json.dumps(dict(zip(names, map(_text, row), strict=True))) for row in batch]
            file = folder / f"{index:04}.json"
            file.write_text("\n".join(lines))
            os.utime(file, (1_700_000_000 + index, 1_700_000_000 + index))  # Spark takes the oldest first

    def _query(
        self, build: Callable[..., DataFrame], schemas: Sequence[str], columns: Sequence[str], mode: str
    ) -> list[tuple[dict[str, Any], list[Row]]]:
        self._spark.conf.set("spark.sql.session.timeZone", self._random.choice(ZONES))
        frames = [
            self._spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .option("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
            .json(str(self._folder / f"stream-{number}"))
            for number, schema in enumerate(schemas)
        ]
        out: dict[int, list[Row]] = defaultdict(list)

        def hear(rows: DataFrame, batch_id: int) -> None:
            out[batch_id] = [tuple(row) for row in rows.collect()]

        query = (
            build(*frames)
            .selectExpr(*columns)
            .writeStream.outputMode(mode)
            .foreachBatch(hear)
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(300)
        assert not query.isActive, "the query did not come to the end of its input"
        return [(progress, out[progress["batchId"]]) for progress in query.recentProgress if progress["batchId"] in out]


def _without_time(schema: str, rows: Batch) -> int:
    """How many rows an operator cannot use."""
    places = [place for place, field in enumerate(schema.split(", ")) if field.endswith(" timestamp")]
    return sum(any(row[place] is None for place in places) for row in rows)


class _Time(int):
    """Microseconds, which are written as an instant."""


def _text(value: Any) -> Any:
    if not isinstance(value, _Time):
        return value
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).isoformat(timespec="microseconds")


def _micros(instant: str) -> int:
    return int(datetime.fromisoformat(instant).timestamp()) * SECOND_US + int(instant[20:23]) * 1000


def _count() -> Column:
    return F.count("*").alias("n")


def a_time(random: Random, number: int) -> _Time | None:
    """Times grow with the micro-batches, fall back, are equal, are missing, and are a microsecond off a window."""
    if random.random() < 0.06:
        return None
    at_us = START_US + number * 12 * SECOND_US + random.randrange(-30, 30) * SECOND_US
    return _Time(at_us + random.choice([0, 0, -1, 1, 500_000]))


def batches_of(random: Random, make: Callable[[int, int], Row], ends: Callable[[int], Row]) -> list[Batch]:
    """Micro-batches of any size, and two that close all windows."""
    numbers = iter(range(10_000))
    drawn = [[make(number, next(numbers)) for _ in range(random.randrange(1, 18))] for number in range(5)]
    return [*drawn, [ends(1)], [ends(2)]]


def an_end(number: int) -> _Time:
    return _Time(START_US + number * 1_000_000 * SECOND_US)


def a_grace(random: Random) -> int:
    return random.choice([0, 5, 20, 3600])


# --- windows ---


def windows(random: Random) -> list[Batch]:
    return batches_of(
        random,
        lambda number, _: (random.choice(KEYS), a_time(random, number)),
        lambda number: ("end", an_end(number)),
    )


WINDOW = ["key", "unix_micros(window.start)", "unix_micros(window.end)", "n"]


def check_windows(told: Iterator[Told], size_us: int, advance_us: int) -> None:
    """A window is told once, when the watermark has passed its end, with the rows that were not late for it."""
    open_: dict[tuple[Any, int], int] = defaultdict(int)
    for moment in told:
        for key, at_us in moment.rows[0]:
            if at_us is None:
                continue
            start = at_us // advance_us * advance_us
            while start > at_us - size_us:
                if start + size_us > moment.late_us:
                    open_[key, start] += 1
                start -= advance_us
        closed = {place for place in open_ if place[1] + size_us <= moment.evicted_us}
        wanted = [(key, start, start + size_us, open_.pop((key, start))) for key, start in closed]
        assert sorted(moment.out, key=str) == sorted(wanted, key=str)


@model
def test_tumbling_windows(random: Random, streams: Streams) -> None:
    grace = a_grace(random)
    told = streams.run(
        lambda rows: tumbling(rows, "10 seconds", _count(), by=["key"], time="at", grace=f"{grace} seconds"),
        [("key string, at timestamp", windows(random))],
        WINDOW,
    )
    check_windows(told, 10 * SECOND_US, 10 * SECOND_US)


@model
def test_hopping_windows(random: Random, streams: Streams) -> None:
    grace, advance = a_grace(random), random.choice([3, 5])
    told = streams.run(
        lambda rows: hopping(
            rows, "10 seconds", f"{advance} seconds", _count(), by=["key"], time="at", grace=f"{grace} seconds"
        ),
        [("key string, at timestamp", windows(random))],
        WINDOW,
    )
    check_windows(told, 10 * SECOND_US, advance * SECOND_US)


@model
def test_sessions(random: Random, streams: Streams) -> None:
    """Rows that are just as far apart as the gap are in one session."""
    grace, gap_us = a_grace(random), 6 * SECOND_US
    told = streams.run(
        lambda rows: session(rows, "6 seconds", _count(), by=["key"], time="at", grace=f"{grace} seconds"),
        [("key string, at timestamp", windows(random))],
        WINDOW,
    )
    open_: dict[Any, list[tuple[int, int, int]]] = defaultdict(list)
    for moment in told:
        for key, at_us in moment.rows[0]:
            if at_us is not None and at_us + gap_us > moment.late_us:
                open_[key].append((at_us, at_us + gap_us, 1))
        wanted = []
        for key, spans in open_.items():
            merged: list[tuple[int, int, int]] = []
            for start, end, n in sorted(spans):
                if merged and start <= merged[-1][1]:
                    first, last, count = merged.pop()
                    start, end, n = first, max(last, end), count + n
                merged.append((start, end, n))
            wanted += [(key, *span) for span in merged if span[1] <= moment.evicted_us]
            open_[key] = [span for span in merged if span[1] > moment.evicted_us]
        assert sorted(moment.out, key=str) == sorted(wanted, key=str)


# --- joins ---


@model
def test_two_streams(random: Random, streams: Streams) -> None:
    """Each pair once; without a partner a row is told once, when none can come. A row without a time has none, and no
    place in the state: it is dropped.
    """
    how = random.choice(["inner", "left", "right", "outer"])
    grace, before, after = a_grace(random), random.choice([0, 7]), random.choice([0, 10])
    sides = [
        batches_of(
            random,
            lambda number, index: (random.choice(["u", "v", None]), index, a_time(random, number)),
            lambda number: ("end", -number, an_end(number)),
        )
        for _ in range(2)
    ]
    told = list(
        streams.run(
            lambda left, right: stream_stream(
                left, right, ["u"], left_time="la", right_time="ra", before=f"{before} seconds",
                after=f"{after} seconds", grace=f"{grace} seconds", how=how,
            ),
            [("u string, l int, la timestamp", sides[0]), ("u string, r int, ra timestamp", sides[1])],
            ["u", "l", "r"],
        )
    )  # fmt: skip
    taken = [
        [row for moment in told for row in moment.rows[side] if row[2] is not None and row[2] > moment.late_us]
        for side in range(2)
    ]
    out = [row for moment in told for row in moment.out if row[0] != "end"]
    pairs = [
        (a[0], a[1], b[1])
        for a in taken[0]
        for b in taken[1]
        if a[0] is not None and a[0] == b[0] and a[0] != "end"
        and a[2] - before * SECOND_US <= b[2] <= a[2] + after * SECOND_US
    ]  # fmt: skip
    alone = []
    if how in ("left", "outer"):
        alone += [(a[0], a[1], None) for a in taken[0] if all((a[0], a[1]) != pair[:2] for pair in pairs)]
    if how in ("right", "outer"):
        alone += [(b[0], None, b[1]) for b in taken[1] if all((b[0], b[1]) != (pair[0], pair[2]) for pair in pairs)]
    wanted = [*pairs, *(row for row in alone if row[0] != "end")]
    assert sorted(out, key=str) == sorted(wanted, key=str)


# --- tables and duplicates ---


@model
def test_duplicates(random: Random, streams: Streams) -> None:
    """Of the rows of a key that come together any one may leave; the key is forgotten `within` after that one."""
    within = random.choice([0, 5, 40])
    batches = batches_of(
        random,
        lambda number, index: (random.choice(["a", "b", "c", "", None]), index, a_time(random, number)),
        lambda number: ("end", -number, an_end(number)),
    )
    told = streams.run(
        lambda rows: deduplicate(rows, ["id"], time="at", within=f"{within} seconds"),
        [("id string, n int, at timestamp", batches)],
        ["id", "n"],
    )
    known: dict[Any, int] = {}
    for moment in told:
        candidates: dict[Any, dict[int, int]] = defaultdict(dict)
        for id_, n, at_us in moment.rows[0]:
            if at_us is not None and at_us > moment.late_us and id_ not in known:
                candidates[id_][n] = at_us
        assert sorted(map(str, candidates)) == sorted(str(id_) for id_, _ in moment.out), "one of each"
        for id_, n in moment.out:
            assert n in candidates[id_]
            known[id_] = candidates[id_][n] + within * SECOND_US
        known = {id_: until_us for id_, until_us in known.items() if until_us > moment.evicted_us}


@model
def test_duplicates_without_a_time(random: Random, streams: Streams) -> None:
    batches = batches_of(
        random, lambda _, index: (random.choice(["a", "b", "c", "", None]), index), lambda number: ("end", -number)
    )
    told = streams.run(lambda rows: deduplicate(rows, ["id"]), [("id string, n int", batches)], ["id", "n"])
    known: set[Any] = set()
    for moment in told:
        fresh = {id_ for id_, _ in moment.rows[0]} - known
        assert sorted(str(id_) for id_, _ in moment.out) == sorted(map(str, fresh))
        assert all((id_, n) in moment.rows[0] for id_, n in moment.out)
        known |= fresh


@model
def test_the_latest_value_of_each_key(random: Random, streams: Streams) -> None:
    """Of keys that were told of in a micro-batch: the value of the highest order, whenever it came."""
    batches = batches_of(
        random,
        lambda number, index: (
            random.choice(KEYS),
            random.choice([None, "", f"v{index}"]),
            None if random.random() < 0.1 else number * 20 + index + 1000 * random.choice([0, 0, -1]),
        ),
        lambda number: ("end", "v", number),
    )
    told = streams.run(
        latest, [("key string, value string, offset long", batches)], ["key", "value", "offset"], "update"
    )
    newest: dict[Any, tuple[int, Any]] = {}
    for moment in told:
        for key, value, offset in moment.rows[0]:
            if offset is not None and offset > newest.get(key, (-(10**9), None))[0]:
                newest[key] = offset, value
        touched = {key for key, _, _ in moment.rows[0]}
        wanted = [(key, newest[key][1], newest[key][0]) if key in newest else (key, None, None) for key in touched]
        assert sorted(moment.out, key=str) == sorted(wanted, key=str)
