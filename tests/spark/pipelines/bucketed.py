"""Runs an operator of buckets as Spark does, without Spark: frames of pandas in, and out by the output's types.

Every micro-batch is run twice on the same state, as after a crash, and must say the same. The operator is made anew
between micro-batches, as by another executor, and its state goes through its stored form.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa

from ottla.spark.pipelines.buckets import Operator, TimeMode, _InBuckets

Row = tuple[Any, ...]
TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "decimal(38,2)": pa.decimal128(38, 2),
    "array<string>": pa.list_(pa.string()),
}


class Bucketed:
    """One query's operator. `columns` are those of its rows, the key first."""

    def __init__(
        self,
        make: Callable[[], Operator],
        columns: str,
        output: str,
        *,
        random: Random,
        order: tuple[int, ...] = (),
        time_mode: TimeMode = "None",
        buckets: int = 3,
    ) -> None:
        self._make, self._columns, self._random = make, columns.split(), random
        self._output = {name: TYPES[kind] for name, kind in (column.split() for column in output.split(", "))}
        self._order, self._time_mode, self._buckets = order, time_mode, buckets
        self._stored: dict[int, bytes] = {}
        self._timers: dict[int, set[int]] = {}
        self.processing_ms = 1_000_000
        self.watermark_ms = 0

    def batch(self, rows: Iterable[Row]) -> list[Row]:
        by_bucket: dict[int, list[Row]] = {}
        for row in rows:
            by_bucket.setdefault(hash(row[0]) % self._buckets, []).append(row)
        before = dict(self._stored), {number: set(timers) for number, timers in self._timers.items()}
        told = self._once(by_bucket)
        self._stored, self._timers = before
        assert self._once(by_bucket) == told, "a repeated micro-batch says something else"
        return told

    def _once(self, by_bucket: dict[int, list[Row]]) -> list[Row]:
        told: list[Row] = []
        now_ms = self.watermark_ms if self._time_mode == "EventTime" else self.processing_ms
        for number, rows in sorted(by_bucket.items()):
            frames = [self._frame(part) for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]) if part]
            told += self._told(self._processor(number).handleInputRows((number,), iter(frames), self._now()))
        for number in sorted(self._timers):
            for due_ms in sorted(one for one in self._timers[number] if one <= now_ms):
                fired = SimpleNamespace(getExpiryTimeInMs=lambda due_ms=due_ms: due_ms)
                told += self._told(self._processor(number).handleExpiredTimer((number,), self._now(), fired))
                self._timers[number].discard(due_ms)
        return told

    def _processor(self, number: int) -> Any:
        def update(value: tuple[bytes]) -> None:
            (self._stored[number],) = value

        state = SimpleNamespace(
            get=lambda: (self._stored[number],) if number in self._stored else None,
            update=update,
            clear=lambda: self._stored.pop(number, None),
        )
        handle = SimpleNamespace(
            getValueState=lambda *_: state, registerTimer=self._timers.setdefault(number, set()).add
        )
        made: Any = _InBuckets(self._make(), self._columns, list(self._output), self._time_mode, self._order)
        made.init(handle)
        return made

    def _frame(self, rows: Sequence[Row]) -> pd.DataFrame:
        columns = zip(*rows, strict=True)
        return pd.DataFrame({name: list(values) for name, values in zip(self._columns, columns, strict=True)})

    def _told(self, frames: Iterable[pd.DataFrame]) -> list[Row]:
        """As Spark takes them: a value that the column's type cannot hold is an error."""
        rows: list[Row] = []
        for frame in frames:
            columns = [pa.array(frame[name], kind, from_pandas=True).to_pylist() for name, kind in self._output.items()]
            rows += zip(*columns, strict=True)
        return rows

    def _now(self) -> Any:
        return SimpleNamespace(
            getCurrentProcessingTimeInMs=lambda: self.processing_ms, getCurrentWatermarkInMs=lambda: self.watermark_ms
        )


def shuffled(random: Random, rows: Sequence[Row], batches: int) -> list[list[Row]]:
    """Micro-batches of rows that are in order among each other, and out of order within."""
    cuts = sorted(random.randrange(len(rows) + 1) for _ in range(batches - 1))
    parts = [list(rows[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    for part in parts:
        random.shuffle(part)
    return parts
