"""Holding changes back: until their window has closed, or for some time.

Windows that Spark itself computes are emitted once when they close, in output mode append; that needs nothing of this.
Here is for changes that come from elsewhere, a topic of updates for instance, of which only the last of each key is
wanted.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ottla.spark.pipelines.buckets import BUCKETS, Bucket, Now, Operator, Rows, in_buckets
from ottla.spark.pipelines.dropped_rows import counted
from ottla.spark.pipelines.opaque import packed, packed_type, unpacked
from ottla.spark.pipelines.tables import ordinal


def until_closed(
    changes: DataFrame,
    closes: str,
    *,
    key: str = "key",
    value: str = "value",
    order: str | None = "offset",
    time: str = "timestamp",
    grace: str = "0 seconds",
    buckets: int = BUCKETS,
) -> DataFrame:
    """The last change of each key, when the watermark of `time` has passed the key's `closes` (a timestamp).

    A change that comes after that is dropped. A null value takes the key back: nothing is emitted. Keys should
    contain their window: a key closes once. A change without a key, an order, a time or `closes` is dropped
    (`dropped_rows.py`).
    """
    watched = counted(changes, "until_closed", key, order, time, closes).withWatermark(time, grace)
    return _held(changes, watched, F.unix_millis(closes), _UntilClosed(), key, value, order, "EventTime", buckets)


def until_time_limit(
    changes: DataFrame,
    limit_ms: int,
    *,
    key: str = "key",
    value: str = "value",
    order: str | None = "offset",
    buckets: int = BUCKETS,
) -> DataFrame:
    """At most one change of each key in `limit_ms`: the last one, emitted that long after the first that was held back.

    Deletes are changes like others; a change without a key or an order is dropped (`dropped_rows.py`).
    Time is the machine's; the trigger decides how exactly it is kept.
    """
    limit = F.lit(limit_ms).cast("long")
    whole = counted(changes, "until_time_limit", key, order)
    return _held(changes, whole, limit, _UntilTimeLimit(), key, value, order, "ProcessingTime", buckets)


def _held(
    changes: DataFrame,
    watched: DataFrame,
    until: Any,
    operator: Operator,
    key: str,
    value: str,
    order: str | None,
    time_mode: Any,
    buckets: int,
) -> DataFrame:
    key_type, kind = changes.schema[key].dataType, changes.schema[value].dataType
    shaped = watched.select(
        packed(F.col(key), key_type).alias("key"),
        ordinal(changes, order).alias("order"),
        until.alias("until_ms"),
        packed(F.col(value), kind).alias("value"),
    )
    output = StructType([StructField("key", packed_type(key_type)), StructField("value", packed_type(kind))])
    emitted = in_buckets(shaped, F.col("key"), operator, output, buckets=buckets, time_mode=time_mode, order=(1,))
    return emitted.select(unpacked(F.col("key"), key_type).alias(key), unpacked(F.col("value"), kind).alias(value))


class _UntilClosed(Operator):
    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        for key, _, closes_ms, value in rows:
            if closes_ms > now.watermark_ms:
                bucket.entries[key] = value
                bucket.due_ms[key] = closes_ms
        return ()

    def on_due(self, bucket: Bucket, keys: list[Any], now: Now) -> Rows:
        last = [(key, bucket.entries.pop(key)) for key in keys]
        return [(key, value) for key, value in last if value is not None]


class _UntilTimeLimit(Operator):
    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        for key, _, limit_ms, value in rows:
            bucket.entries[key] = value
            bucket.due_ms.setdefault(key, now.processing_ms + limit_ms)
        return ()

    def on_due(self, bucket: Bucket, keys: list[Any], now: Now) -> Rows:
        return [(key, bucket.entries.pop(key)) for key in keys]
