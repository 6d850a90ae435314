"""State for a bucket of keys at a time: the foundation of the operators that Spark does not have.

Theory of operation. Spark's `transformWithState` calls Python once per key and micro-batch, and every look at the
state is a round trip to the JVM: 5,000 to 17,000 rows a second. Here keys are hashed into buckets, and Spark's key is
the bucket. A micro-batch then costs one call, one read and one write of state for each bucket that has rows; within
it, keys are entries of a dictionary, and an operator is a loop over rows. That is several times to twenty times as
fast.

What it costs: a bucket's state is one pickled value, read and written as a whole. So there should be enough buckets
that one stays below about a megabyte, and not so many that each has only a handful of rows a batch: 64 do for a few
hundred thousand keys. The number is part of the checkpoint: a query keeps the one it began with.

All rows of a bucket in one micro-batch are in memory together (`maxOffsetsPerTrigger` bounds them), in the order that
the operator asks for: a shuffle has mixed them.

Timers are kept by key in the bucket; Spark knows of the earliest only. After a crash Spark repeats the micro-batch on
the state from before it: an operator must depend on nothing but rows, state and `Now`.
"""

import pickle
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

BUCKETS: Final = 64
BUCKET: Final = "__bucket"
_VERSION: Final = 1
"""Of what is kept of a bucket. Version 0 had no number."""

TimeMode = Literal["None", "ProcessingTime", "EventTime"]
Rows = Iterable[tuple[Any, ...]]


class Now(NamedTuple):
    """The time of a micro-batch: the same for all of its rows, and for its repetition after a crash."""

    processing_ms: int
    watermark_ms: int


class Bucket:
    """The state of the keys of one bucket: what is known of each, and when each wants to be woken."""

    __slots__ = ("armed_ms", "due_ms", "entries")

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}
        self.due_ms: dict[Any, int] = {}
        self.armed_ms: int | None = None  # the timer that Spark holds for this bucket

    def take_due(self, now_ms: int) -> list[Any]:
        """The keys whose time has come, earliest first; they have no timer any more."""
        due = sorted(((at_ms, key) for key, at_ms in self.due_ms.items() if at_ms <= now_ms), key=itemgetter(0))
        for _, key in due:
            del self.due_ms[key]
        return [key for _, key in due]


class Operator:
    """What is done with the rows of a bucket. One object serves all buckets: what it knows of keys is in the bucket."""

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        """Rows as `in_buckets` was given them, without the bucket's number. Returns rows of the output."""
        raise NotImplementedError

    def on_due(self, bucket: Bucket, keys: list[Any], now: Now) -> Rows:
        """The timers of these keys have gone off."""
        raise NotImplementedError


def in_buckets(
    rows: DataFrame,
    key: Column,
    operator: Operator,
    output: StructType,
    *,
    buckets: int = BUCKETS,
    time_mode: TimeMode = "None",
    order: tuple[int, ...] = (),
) -> DataFrame:
    """Runs an operator over streaming rows whose columns are strings, bytes or never null (`dropped_rows.counted`).

    `order` are positions of columns by which the rows of a micro-batch are sorted. The result is for output mode
    append, and may be followed by further stateful operators.
    """
    if buckets < 1:
        raise ValueError(f"buckets must be at least 1, not {buckets}")
    columns = rows.columns
    numbered = rows.withColumn(BUCKET, F.pmod(F.xxhash64(key), F.lit(buckets)).cast("int"))
    return numbered.groupBy(BUCKET).transformWithStateInPandas(
        statefulProcessor=_InBuckets(operator, columns, output.fieldNames(), time_mode, order),
        outputStructType=output,
        outputMode="append",
        timeMode=time_mode,
    )


class _InBuckets(StatefulProcessor):
    def __init__(
        self, operator: Operator, columns: list[str], output: list[str], time_mode: TimeMode, order: tuple[int, ...]
    ) -> None:
        self._operator = operator
        self._columns = columns
        self._output = output
        self._time_mode = time_mode
        self._order = order

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("bucket", "pickled binary")

    def close(self) -> None:
        """Nothing is held open."""

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: "Iterator[pd.DataFrame]",
        timerValues: "TimerValues",  # noqa: N803 - Spark's name
    ) -> "Iterator[pd.DataFrame]":
        gathered: list[tuple[Any, ...]] = []
        for frame in rows:
            gathered.extend(zip(*(_values(frame[name]) for name in self._columns), strict=True))
        if self._order:
            gathered.sort(key=itemgetter(*self._order))
        bucket, now = self._load(), self._now(timerValues)
        made = list(self._operator.on_rows(bucket, gathered, now))
        self._save(bucket)
        if made:
            yield self._frame(made)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: "TimerValues",  # noqa: N803
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: N803 - Spark's names
    ) -> "Iterator[pd.DataFrame]":
        bucket, now = self._load(), self._now(timerValues)
        # Spark itself drops a timer that has gone off, after this call.
        if bucket.armed_ms == expiredTimerInfo.getExpiryTimeInMs():
            bucket.armed_ms = None
        due = bucket.take_due(now.watermark_ms if self._time_mode == "EventTime" else now.processing_ms)
        made = list(self._operator.on_due(bucket, due, now)) if due else []
        self._save(bucket)
        if made:
            yield self._frame(made)

    def _load(self) -> Bucket:
        bucket = Bucket()
        if (stored := self._state.get()) is not None:
            bucket.entries, bucket.due_ms, bucket.armed_ms = load_state(stored[0])
        return bucket

    def _save(self, bucket: Bucket) -> None:
        if bucket.due_ms:
            earliest_ms = min(bucket.due_ms.values())
            if bucket.armed_ms is None or earliest_ms < bucket.armed_ms:
                self._handle.registerTimer(earliest_ms)
                bucket.armed_ms = earliest_ms
        if bucket.entries or bucket.due_ms or bucket.armed_ms is not None:
            self._state.update((dump_state(bucket),))
        else:
            self._state.clear()

    def _frame(self, made: list[tuple[Any, ...]]) -> "pd.DataFrame":
        import pandas as pd

        columns = zip(*made, strict=True)
        # As objects: pandas must not make floats of integers because one of them is missing.
        return pd.DataFrame(
            {name: pd.Series(values, dtype=object) for name, values in zip(self._output, columns, strict=True)}
        )

    @staticmethod
    def _now(values: "TimerValues") -> Now:
        return Now(values.getCurrentProcessingTimeInMs(), values.getCurrentWatermarkInMs())


def dump_state(bucket: Bucket) -> bytes:
    return pickle.dumps((_VERSION, bucket.entries, bucket.due_ms, bucket.armed_ms), pickle.HIGHEST_PROTOCOL)


def load_state(stored: bytes) -> tuple[dict[Any, Any], dict[Any, int], int | None]:
    """Entries, timers, and the timer that Spark holds."""
    kept: tuple[Any, ...] = pickle.loads(stored)
    version, *state = kept if len(kept) == 4 else (0, *kept)
    if version > _VERSION:
        raise ValueError(
            f"the checkpoint has state of version {version}, and this ottla knows versions up to {_VERSION}: "
            "a newer ottla has run this query; continue with that version, or with a checkpoint from before"
        )
    entries, due_ms, armed_ms = state
    return entries, due_ms, armed_ms


def _values(column: "pd.Series[Any]") -> list[Any]:
    """A column as Python's objects, with None for what is missing: pandas has several ideas of it.

    One of them is NaN. A column of floats is never null (`in_buckets`), so what is NaN there is a number.
    """
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        return values
    missing = column.isna()
    if missing.any():
        return [None if is_missing else value for value, is_missing in zip(values, missing, strict=True)]
    return values
