"""Each operator of buckets against the same computed at once, on random rows from a seed.

With nulls where they can be, ties, rows that are late, micro-batches of any size, restarts between them and each of
them repeated (`bucketed.py`). What happens before an operator, in Spark, is in `test_malformed_rows.py`.
"""

import json
import pickle
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import accumulate
from random import Random
from typing import Any

import pytest
from pyspark.sql.types import DecimalType, DoubleType, IntegerType, LongType, StringType, StructType

from ottla.spark.pipelines.buckets import Bucket, dump_state, load_state
from ottla.spark.pipelines.foreign_keys import RIGHT, _References, _Subscribers
from ottla.spark.pipelines.keyed_state import KeyState, Processor, _PerKey
from ottla.spark.pipelines.sliding_windows import _Sliding
from ottla.spark.pipelines.suppress import _UntilClosed, _UntilTimeLimit
from ottla.spark.pipelines.table_joins import STREAM, TABLE, _StreamTable, _TableTable
from ottla.spark.pipelines.tables import _Parts, _Totals
from tests.spark.pipelines.bucketed import Bucketed, Row, shuffled

CASES = 4
MANY = 400
KINDS = [LongType(), DecimalType(38, 2), DoubleType()]
SUMS = "n bigint, d decimal(38,2), f double"
LONG = range(-(1 << 63), 1 << 63)


def model(run: Callable[[Random], None]) -> Any:
    """A test for some seeds, and for many in the long run."""
    seeds = [*range(CASES), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(CASES, MANY))]

    @pytest.mark.parametrize("seed", seeds)
    def test(seed: int) -> None:
        run(Random(seed))

    test.__name__, test.__doc__ = run.__name__, run.__doc__
    return test


def a_long(random: Random) -> int:
    return random.choice([0, 1, -7, random.randrange(1000), LONG[0], LONG[-1], -(1 << 62)])


def a_decimal(random: Random) -> Decimal:
    return random.choice([Decimal("0.01"), Decimal("-12345678901234567890123456789012345.67"), Decimal("9" * 36)])


def a_measure(random: Random) -> Row:
    return a_long(random), a_decimal(random), random.choice([0.5, -2.0, 1024.0])


def summed(measures: list[Row]) -> Row:
    """As columns can hold it."""
    with localcontext() as exact:
        exact.prec = 100
        n, d, f = (sum(column) for column in zip(*measures, strict=True))
        return len(measures), n if n in LONG else None, d if abs(d) < Decimal(10) ** 36 else None, f


def some(random: Random, count: int = 120) -> range:
    return range(random.randrange(1, count))


@model
def test_totals_of_a_stream(random: Random) -> None:
    rows = [(random.choice(["a", "b", "é", "", None]), 1, *a_measure(random)) for _ in some(random)]
    output = f"group string, count bigint, {SUMS}, is_live boolean"
    totals = Bucketed(lambda: _Totals(list(KINDS)), "group count n d f", output, random=random)
    told = {
        group: tuple(sums) for batch in shuffled(random, rows, 4) for group, *sums, is_live in totals.batch(batch)
        if is_live
    }  # fmt: skip
    groups = defaultdict(list)
    for group, _, *measures in rows:
        groups[group].append(tuple(measures))
    assert told == {group: summed(measures) for group, measures in groups.items()}


@model
def test_totals_of_a_table(random: Random) -> None:
    table: dict[str, Row | None] = {}
    rows: list[Row] = []
    for offset in some(random):
        key = f"k{random.randrange(9)}"
        is_live = random.random() < 0.7
        table[key] = (random.choice(["x", "y", None]), *a_measure(random))
        rows.append((key, offset, table[key][0], is_live, *table[key][1:]))  # type: ignore[index]
        if not is_live:
            table[key] = None
    parts = Bucketed(
        _Parts, "key order group is_live n d f", f"group string, count bigint, {SUMS}", random=random, order=(1,)
    )
    output = f"group string, count bigint, {SUMS}, is_live boolean"
    totals = Bucketed(lambda: _Totals(list(KINDS)), "group count n d f", output, random=random)
    told: dict[Any, Row] = {}
    for batch in shuffled(random, rows, 5):
        for group, *sums, is_live in totals.batch(parts.batch(batch)):
            told[group] = tuple(sums) if is_live else ()
    groups = defaultdict(list)
    for row in table.values():
        if row is not None:
            groups[row[0]].append(row[1:])
    assert {group: sums for group, sums in told.items() if sums} == {
        group: summed(measures) for group, measures in groups.items()
    }


def a_table(random: Random, keys: int = 7) -> list[Row]:
    """Changes by offset: key and value, or null."""
    return [
        (f"k{random.randrange(keys)}", offset, random.choice([None, "", "v", f"v{offset}"])) for offset in some(random)
    ]


def alive(changes: list[Row]) -> dict[str, Any]:
    newest = {key: value for key, _, value in changes}
    return {key: value for key, value in newest.items() if value is not None}


@model
def test_two_tables_by_key(random: Random) -> None:
    how = random.choice(["inner", "left", "outer"])
    left, right = a_table(random), a_table(random)
    output = "key string, is_there boolean, left string, right string"
    joined = Bucketed(lambda: _TableTable(how), "key order side left right", output, random=random, order=(2, 1))
    told: dict[str, Row] = {}
    for a, b in zip(shuffled(random, left, 4), shuffled(random, right, 4), strict=True):
        both = [(key, at, 0, value, None) for key, at, value in a] + [(key, at, 1, None, value) for key, at, value in b]
        random.shuffle(both)
        for key, is_there, *pair in joined.batch(both):
            told[key] = tuple(pair) if is_there else ()
    one, other = alive(left), alive(right)
    keys = {"inner": one.keys() & other.keys(), "left": one.keys(), "outer": one.keys() | other.keys()}[how]
    assert {key: pair for key, pair in told.items() if pair} == {key: (one.get(key), other.get(key)) for key in keys}


@model
def test_a_table_with_the_table_that_it_points_to(random: Random) -> None:
    how = random.choice(["inner", "left"])
    left = [(key, at, value and random.choice(["c0", "c1", "c2", None]), value) for key, at, value in a_table(random)]
    right = [(f"c{random.randrange(3)}", at, value) for _, at, value in a_table(random)]
    steps = "reference string, step int, key string, left string"
    references = Bucketed(_References, "key order reference value", steps, random=random, order=(1,))
    output = "key string, is_there boolean, left string, right string"
    columns = "reference order step key left right"
    subscribers = Bucketed(lambda: _Subscribers(how), columns, output, random=random, order=(1,))
    told: dict[str, Row] = {}
    for a, b in zip(shuffled(random, left, 5), shuffled(random, right, 5), strict=True):
        both = [(reference, 0, step, key, row, None) for reference, step, key, row in references.batch(a)]
        both += [(key, at, RIGHT, None, None, value) for key, at, value in b]
        for key, is_there, *pair in subscribers.batch(both):
            told[key] = tuple(pair) if is_there else ()
    customers = alive(right)
    newest = {key: (value, customers.get(reference)) for key, _, reference, value in left}
    assert {key: pair for key, pair in told.items() if pair} == {
        key: (value, found)
        for key, (value, found) in newest.items()
        if value is not None and (how == "left" or found is not None)
    }


@model
def test_a_stream_with_a_table(random: Random) -> None:
    """The last change by offset, in the partition; clocks differ, and the key moves when partitions are added."""
    how = random.choice(["inner", "left"])
    output = "row string, value string"
    joined = Bucketed(lambda: _StreamTable(how), "key at side partition order value row", output, random=random)
    table: dict[str, str] = {}
    offsets: dict[int, int] = defaultdict(int)
    for number in range(6):
        partition = number // 3  # from the fourth micro-batch on, keys are in another partition, from offset 0
        changes: list[Row] = []
        for _ in range(random.randrange(6)):
            offsets[partition] += 1
            value = random.choice([None, f"v{number}.{offsets[partition]}"])
            at = random.randrange(100)
            changes.append((f"k{random.randrange(3)}", at, TABLE, partition, offsets[partition], value, None))
        # A change counts from its own time on, or from that of the one before it, if that is later.
        history: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
        for key in {change[0] for change in changes}:
            own = [change for change in changes if change[0] == key]
            times = accumulate((change[1] for change in own), max)
            history[key] = [(at, change[5]) for at, change in zip(times, own, strict=True)]
        rows = [
            (random.choice(["k0", "k1", "k2", None]), random.randrange(120), STREAM, 0, 0, None, f"{number}.{index}")
            for index in range(random.randrange(8))
        ]
        wanted = set()
        for key, at, *_, row in rows:
            seen = [value for when, value in history[key] if when <= at]
            found = seen[-1] if seen else table.get(key)
            if found is not None or how == "left":
                wanted.add((row, found))
        both = changes + rows
        random.shuffle(both)
        assert set(joined.batch(both)) == wanted
        table |= {key: own[-1][1] for key, own in history.items() if own}  # type: ignore[misc]


def test_a_table_forgets_a_key_that_has_not_changed_for_as_long_as_it_is_kept() -> None:
    columns = "key at side partition order value row"
    joined = Bucketed(
        lambda: _StreamTable("left", 5_000), columns, "row string, value string", random=Random(0),
        time_mode="ProcessingTime",
    )  # fmt: skip
    joined.batch([("a", 0, TABLE, 0, 0, "old", None), ("b", 0, TABLE, 0, 1, "old", None)])
    joined.processing_ms += 4_000
    joined.batch([("b", 1, TABLE, 0, 2, "new", None)])
    joined.processing_ms += 1_001
    joined.batch([])
    assert sorted(joined.batch([("a", 2, STREAM, 0, 0, None, "r1"), ("b", 2, STREAM, 0, 0, None, "r2")])) == [
        ("r1", None),
        ("r2", "new"),
    ]


def timed(random: Random, keys: list[Any]) -> list[Row]:
    """Rows whose times grow, and now and then fall back."""
    return [(random.choice(keys), number * 300 + random.randrange(-4000, 4000), number) for number in some(random)]


@model
def test_sliding_windows(random: Random) -> None:
    size_ms, grace_ms = 2_000, random.choice([0, 1_000, 100_000])
    output = "key string, start_ms bigint, end_ms bigint, values array<string>"
    sliding = Bucketed(
        lambda: _Sliding(size_ms), "key at_ms value", output, random=random, order=(1,), time_mode="EventTime"
    )
    kept: dict[str, list[tuple[int, str]]] = defaultdict(list)
    told: list[Row] = []
    highest = -(10**9)
    rows = [(key, at, str(number)) for key, at, number in timed(random, ["a", "b", ""])]
    for batch in [*shuffled(random, rows, 6), [("z", 10**9, "end")], [("z", 2 * 10**9, "end")]]:
        for key, at, value in batch:
            if at > sliding.watermark_ms:
                kept[key].append((at, value))
            highest = max(highest, at)
        told += sliding.batch(batch)
        sliding.watermark_ms = max(sliding.watermark_ms, highest - grace_ms)
    assert len({row[:3] for row in told}) == len(told), "a window is told once"
    if grace_ms < 100_000:
        return  # what is late is gone from some windows of it and not from others
    for key in ("a", "b", ""):
        times = sorted({at for at, _ in kept[key]})
        windows = {(at - size_ms, at) for at in times}
        windows |= {(at + 1, at + 1 + size_ms) for at in times if any(at < one <= at + 1 + size_ms for one in times)}
        wanted = [(a, b, sorted(value for at, value in kept[key] if a <= at <= b)) for a, b in windows]
        assert sorted((a, b, sorted(values)) for one, a, b, values in told if one == key) == sorted(wanted)


@model
def test_changes_held_until_their_window_closes(random: Random) -> None:
    columns, output = "key order until_ms value", "key string, value string"
    held = Bucketed(_UntilClosed, columns, output, random=random, order=(1,), time_mode="EventTime")
    newest: dict[str, str | None] = {}
    rows = []
    for key, at, number in timed(random, ["a", "b", "c"]):
        closes = (at // 1000 + 1) * 1000
        rows.append((f"{key}@{closes}", number, closes, random.choice([None, "", f"v{number}"]), at))
    told, highest = [], 0
    for batch in [*shuffled(random, rows, 6), [("z", 10**6, 10**9, "v", 10**9)], [("z", 10**6, 10**9, "v", 2 * 10**9)]]:
        in_order = sorted(batch, key=lambda row: row[1])
        newest |= {key: value for key, _, closes, value, _ in in_order if closes > held.watermark_ms}
        told += held.batch([row[:4] for row in batch])
        highest = max([highest, *(row[4] for row in batch)])
        held.watermark_ms = highest
    told += held.batch([])
    assert sorted(told) == sorted((key, value) for key, value in newest.items() if value is not None)


@model
def test_changes_held_for_some_time(random: Random) -> None:
    limit_ms, columns, output = 1_000, "key order until_ms value", "key string, value string"
    held = Bucketed(_UntilTimeLimit, columns, output, random=random, order=(1,), time_mode="ProcessingTime")
    waiting: dict[str, tuple[int, Any]] = {}
    for batch in [*shuffled(random, a_table(random), 8), [], []]:
        for key, _, value in sorted(batch, key=lambda row: row[1]):
            waiting[key] = waiting.get(key, (held.processing_ms + limit_ms, None))[0], value
        due = {key: value for key, (at, value) in waiting.items() if at <= held.processing_ms}
        for key in due:
            del waiting[key]
        assert dict(held.batch([(key, at, limit_ms, value) for key, at, value in batch])) == due
        held.processing_ms += random.choice([300, 1_000])


class _Counting(Processor):
    def on_rows(self, key: Row, rows: list[dict[str, Any]], state: KeyState) -> Any:
        numbers = [row["n"] for row in rows]
        assert numbers == sorted(numbers), "they are not in order"
        state.value = (state.value or 0) + len(rows)
        state.wake_at_ms(state.watermark_ms + 2_000)
        return ()

    def on_timer(self, key: Row, state: KeyState) -> Any:
        yield *key, state.value
        state.forget()


@model
def test_state_of_ones_own(random: Random) -> None:
    keys, whole = StructType().add("k", StringType()), StructType().add("k", StringType()).add("n", IntegerType())

    def packed(key: str | None, n: int | None = None) -> str:
        return json.dumps({"k": key} if n is None else {"k": key, "n": n})

    counting = Bucketed(
        lambda: _PerKey(_Counting(), keys, whole, True), "key order at_ms row", "k string, n bigint",
        random=random, order=(1,), time_mode="EventTime",
    )  # fmt: skip
    rows = [(packed(key), n, at, packed(key, n)) for key, at, n in timed(random, ["a", "b", None])]
    told, taken, highest = 0, 0, 0
    for batch in [*shuffled(random, rows, 6), [(packed("z"), 10**6, 10**9, packed("z", 1))], []]:
        taken += sum(at > counting.watermark_ms for _, _, at, _ in batch)
        told += sum(n for _, n in counting.batch(batch))
        highest = max([highest, *(at for _, _, at, _ in batch)])
        counting.watermark_ms = highest
    assert told == taken, "every row that is not late is counted once"


def test_a_number_that_is_none_ends_no_sum() -> None:
    output = "group string, count bigint, n bigint, d decimal(38,2), f double, is_live boolean"
    totals = Bucketed(lambda: _Totals(list(KINDS)), "group count n d f", output, random=Random(0))
    [(_, count, n, _, f, _)] = totals.batch([("a", 1, 1, Decimal(0), float("nan")), ("a", 1, 2, Decimal(0), 1.0)])
    assert (count, n) == (2, 3)
    assert f is None or f != f


def test_state_has_a_version() -> None:
    bucket = Bucket()
    bucket.entries, bucket.due_ms, bucket.armed_ms = {"a": 1}, {"a": 5}, 5
    kept = ({"a": 1}, {"a": 5}, 5)
    assert load_state(dump_state(bucket)) == kept
    assert load_state(pickle.dumps(kept)) == kept, "from before states had one"
    with pytest.raises(ValueError, match="state of version 2, and this ottla knows versions up to 1"):
        load_state(pickle.dumps((2, *kept)))
