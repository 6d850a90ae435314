"""Sliding windows as Kafka Streams has them: windows that are made by the rows, not by the clock.

Every row ends a window, the `size` before it; and begins one just after it, if other rows follow within `size`. So
each different set of rows that lie within `size` of each other is seen in one window (KIP-450). Spark has no such
windows (what it calls sliding is called hopping here), so it is state with timers: a key's rows are kept until the
watermark has passed the last window that they can be in. A window is emitted once, when it has closed; times are
milliseconds.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from ottla.spark.pipelines.buckets import BUCKETS, Bucket, Now, Operator, Rows, in_buckets
from ottla.spark.pipelines.dropped_rows import counted
from ottla.spark.pipelines.opaque import packed, packed_type, unpacked


def sliding(
    rows: DataFrame,
    size_ms: int,
    *,
    by: str = "key",
    value: str = "value",
    time: str = "timestamp",
    grace: str = "0 seconds",
    buckets: int = BUCKETS,
) -> DataFrame:
    """The closed windows of each key: `by`, `window` (`start` and `end`, both inclusive) and `values`, by time.

    Rows without a key or a time are dropped (`dropped_rows.py`). Aggregate the array with Spark's functions:
    `F.size("values")`, `F.aggregate("values", ...)`.
    """
    key_type, kind = rows.schema[by].dataType, rows.schema[value].dataType
    shaped = (
        counted(rows, "sliding", by, time)
        .withWatermark(time, grace)
        .select(
            packed(F.col(by), key_type).alias("key"),
            F.unix_millis(time).alias("at_ms"),
            packed(F.col(value), kind).alias("value"),
        )
    )
    output = StructType(
        [
            StructField("key", packed_type(key_type)),
            StructField("start_ms", LongType()),
            StructField("end_ms", LongType()),
            StructField("values", ArrayType(packed_type(kind))),
        ]
    )
    windows = in_buckets(
        shaped, F.col("key"), _Sliding(size_ms), output, buckets=buckets, time_mode="EventTime", order=(1,)
    )
    return windows.select(
        unpacked(F.col("key"), key_type).alias(by),
        F.struct(F.timestamp_millis("start_ms").alias("start"), F.timestamp_millis("end_ms").alias("end")).alias(
            "window"
        ),
        F.transform("values", lambda one: unpacked(one, kind)).alias("values"),
    )


class _Sliding(Operator):
    """The rows of each key, ordered by time, and up to where its windows have been emitted."""

    def __init__(self, size_ms: int) -> None:
        self._size_ms = size_ms

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        touched = set()
        for key, at_ms, value in rows:
            if at_ms <= now.watermark_ms:
                continue  # late
            times, values, _ = bucket.entries.setdefault(key, ([], [], now.watermark_ms))
            position = bisect_right(times, at_ms)
            times.insert(position, at_ms)
            values.insert(position, value)
            touched.add(key)
        for key in touched:
            self._arm(bucket, key)
        return ()

    def on_due(self, bucket: Bucket, keys: list[Any], now: Now) -> Iterator[tuple[Any, ...]]:
        closed_ms = now.watermark_ms - 1  # a row of the watermark's own millisecond may still come
        for key in keys:
            times, values, emitted_ms = bucket.entries[key]
            for start_ms, end_ms in self._windows(times):
                if emitted_ms < end_ms <= closed_ms:
                    first, last = bisect_left(times, start_ms), bisect_right(times, end_ms)
                    yield key, start_ms, end_ms, values[first:last]
            gone = bisect_left(times, closed_ms - self._size_ms)
            if gone == len(times):
                del bucket.entries[key]
            else:
                bucket.entries[key] = (times[gone:], values[gone:], closed_ms)
                self._arm(bucket, key)

    def _windows(self, times: list[int]) -> list[tuple[int, int]]:
        """All windows of these rows, by their end; those that begin after a row only where a row follows in them."""
        size_ms = self._size_ms
        windows = set()
        for at_ms in times:
            windows.add((at_ms - size_ms, at_ms))
            following = bisect_right(times, at_ms)
            if following < len(times) and times[following] <= at_ms + 1 + size_ms:
                windows.add((at_ms + 1, at_ms + 1 + size_ms))
        return sorted(windows, key=lambda window: window[1])

    def _arm(self, bucket: Bucket, key: Any) -> None:
        """Wakes the key when its next window closes, or when its rows can be forgotten."""
        times, _, emitted_ms = bucket.entries[key]
        ends = [end_ms for _, end_ms in self._windows(times) if end_ms > emitted_ms]
        bucket.due_ms[key] = (min(ends) if ends else times[-1] + self._size_ms + 1) + 1
