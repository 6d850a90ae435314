"""Joins with tables: a stream with a table, a table with a table by key, and by a foreign key.

Spark joins a stream with a snapshot and with another stream, but not with a table that changes. These do, with state
for a bucket of keys at a time (`buckets.py`). Tables are as `tables.py` says: `key`, `value` or null, and an order.
What a join of tables yields is a table again: `key` and `value`, a struct of `left` and `right`, or null when the
pair is gone. Within one micro-batch a key is emitted once, as it is in the end. All are for output mode append, and can
follow each other: give the next one `order=None`.
"""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from ottla.spark.pipelines.buckets import BUCKETS, Bucket, Now, Operator, Rows, in_buckets
from ottla.spark.pipelines.dropped_rows import counted
from ottla.spark.pipelines.opaque import packed, packed_type, unpacked
from ottla.spark.pipelines.tables import ordinal

How = Literal["inner", "left", "outer"]

TABLE: Final = 0  # sides, in the order in which they are taken at the same instant
STREAM: Final = 1


def stream_table(
    stream: DataFrame,
    table: DataFrame,
    *,
    on: str = "key",
    key: str = "key",
    value: str = "value",
    time: str = "timestamp",
    table_time: str = "timestamp",
    order: str = "offset",
    partition: str = "partition",
    how: Literal["inner", "left"] = "inner",
    name: str = "table",
    keep_ms: int | None = None,
    buckets: int = BUCKETS,
) -> DataFrame:
    """Each row of a stream with the value that the table has for it then, as the column `name`.

    `on` is the stream's column, `key` the table's. The changes of a key count in the order of `order`, the record's
    offset, whatever their times are: producers' clocks differ, and the last record is what compaction keeps. If the
    table has a column `partition`, offsets are compared within it only: a key moves when a topic gets partitions. A
    table without such columns is ordered by its times.

    Rows and changes that arrive in one micro-batch are taken in the order of their times, changes first; a change is
    never taken before one that it follows. A row that came in an earlier micro-batch than a change has seen the table
    without it: what is joined once is not joined again. With `keep_ms`, the table forgets a key that has not changed
    for so long by the machine's clock; without, it keeps every key until it is deleted.

    Changes without a key or a time, and rows without a time, are dropped (`dropped_rows.py`); rows without a key leave
    a left join with null, and an inner join not at all. A table that is not a stream is a snapshot: the last change of
    each key counts, by the same order, and Spark's own join is used.
    """
    places = [one if one in table.columns else None for one in (order, partition)]
    if not table.isStreaming:
        newest = _newest(table, key, value, table_time if table_time in table.columns else None, *places)
        snapshot = newest.where(F.col("value").isNotNull()).select(
            F.col("key").alias("__key"), F.col("value").alias(name)
        )
        return stream.join(snapshot, F.col(on) == F.col("__key"), how).drop("__key")
    table = counted(table, "stream_table", key, table_time, *places)
    stream = counted(stream, "stream_table", time)
    whole, kind = StructType(stream.schema.fields), table.schema[value].dataType
    key_type = stream.schema[on].dataType
    _same_type(on, key_type, key, table.schema[key].dataType)
    # Both kinds of rows have the same columns, so what is not a row of the stream has an empty one.
    changes = table.select(
        packed(F.col(key), key_type).alias("key"),
        ordinal(table, table_time).alias("at"),
        F.lit(TABLE).alias("side"),
        (F.lit(0) if places[1] is None else F.col(places[1])).cast("int").alias("partition"),
        ordinal(table, places[0] or table_time).alias("order"),
        packed(F.col(value), kind).alias("value"),
        F.lit(None).cast("string").alias("row"),
    )
    rows = stream.select(
        packed(F.col(on), key_type).alias("key"),
        ordinal(stream, time).alias("at"),
        F.lit(STREAM).alias("side"),
        F.lit(0).alias("partition"),
        F.lit(0).cast("long").alias("order"),
        F.lit(None).cast(packed_type(kind)).alias("value"),
        packed(F.struct(*stream.columns), whole).alias("row"),
    )
    output = StructType([StructField("row", packed_type(whole)), StructField("value", packed_type(kind))])
    joined = in_buckets(
        changes.unionByName(rows),
        F.col("key"),
        _StreamTable(how, keep_ms),
        output,
        buckets=buckets,
        time_mode="None" if keep_ms is None else "ProcessingTime",
    )
    opened = joined.select(unpacked(F.col("row"), whole).alias("row"), unpacked(F.col("value"), kind).alias(name))
    return opened.select("row.*", name)


def table_table(
    left: DataFrame,
    right: DataFrame,
    *,
    key: str = "key",
    value: str = "value",
    order: str | None = "offset",
    how: How = "inner",
    buckets: int = BUCKETS,
) -> DataFrame:
    """Two tables by key. The pair changes when either side does; it is gone when what `how` asks for is not there.

    Changes without a key or an order are dropped (`dropped_rows.py`).
    """
    key_type = left.schema[key].dataType
    _same_type(key, key_type, key, right.schema[key].dataType)
    left_type, right_type = left.schema[value].dataType, right.schema[value].dataType
    absent = F.lit(None)

    def shaped(table: DataFrame, side: int) -> DataFrame:
        kind = table.schema[value].dataType
        own = packed(F.col(value), kind)
        return counted(table, "table_table", key, order).select(
            packed(F.col(key), key_type).alias("key"),
            ordinal(table, order).alias("order"),
            F.lit(side).alias("side"),
            (own if side == 0 else absent.cast(packed_type(left_type))).alias("left"),
            (own if side == 1 else absent.cast(packed_type(right_type))).alias("right"),
        )

    output = pair_type(StructField("key", packed_type(key_type)), left, right, value)
    both = shaped(left, 0).unionByName(shaped(right, 1))
    joined = in_buckets(both, F.col("key"), _TableTable(how), output, buckets=buckets, order=(2, 1))
    return opened_pair(joined, key_type, left_type, right_type)


def pair_type(key: StructField, left: DataFrame, right: DataFrame, value: str) -> StructType:
    """What the operators of joins of tables yield; `opened_pair` makes columns of it."""
    return StructType(
        [
            key,
            StructField("is_there", BooleanType()),
            StructField("left", packed_type(left.schema[value].dataType)),
            StructField("right", packed_type(right.schema[value].dataType)),
        ]
    )


def opened_pair(joined: DataFrame, key_type: Any, left_type: Any, right_type: Any) -> DataFrame:
    """The key and a struct of both values, null when they are no pair any more."""
    pair = F.struct(
        unpacked(F.col("left"), left_type).alias("left"), unpacked(F.col("right"), right_type).alias("right")
    )
    return joined.select(unpacked(F.col("key"), key_type).alias("key"), F.when(F.col("is_there"), pair).alias("value"))


def is_pair(how: str, left: Any, right: Any) -> bool:
    """Whether a join of this kind has a row for these two values, of which either may be missing."""
    if how == "inner":
        return left is not None and right is not None
    return left is not None or (how == "outer" and right is not None)


def _same_type(left: str, left_type: Any, right: str, right_type: Any) -> None:
    if left_type != right_type:
        raise ValueError(
            f"{left!r} is {left_type.simpleString()} and {right!r} is {right_type.simpleString()}: cast one of them"
        )


def _newest(
    table: DataFrame, key: str, value: str, time: str | None, order: str | None, partition: str | None
) -> DataFrame:
    """`key` and the `value` of its last change: in each partition by order, and of several partitions the youngest."""
    changes = table.select(
        F.col(key).alias("key"),
        F.col(value).alias("value"),
        (F.lit(0) if partition is None else F.col(partition)).alias("partition"),
        (F.lit(0) if time is None else F.col(time)).alias("time"),
        (F.lit(None) if order is None else F.col(order)).alias("order"),
    ).where(F.col("key").isNotNull())
    if time is None and order is None:
        return changes  # nothing says which is the last: one row a key
    by = "time" if order is None else "order"
    last = F.max_by(F.struct("value", "time"), F.col(by)).alias("last")
    lasts = changes.groupBy("key", "partition").agg(last, F.max("time").alias("time"))
    return lasts.groupBy("key").agg(F.max_by(F.col("last"), F.col("time")).alias("last")).select("key", "last.value")


class _StreamTable(Operator):
    """The table's present values; a row of the stream leaves with one of them, or not at all."""

    def __init__(self, how: str, keep_ms: int | None = None) -> None:
        self._is_outer = how == "left"
        self._keep_ms = keep_ms

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Iterator[tuple[Any, ...]]:
        entries, due_ms, is_outer, keep_ms = bucket.entries, bucket.due_ms, self._is_outer, self._keep_ms
        for key, _, side, _, _, value, row in _in_order(rows):
            if side == STREAM:
                found = entries.get(key)
                if found is not None or is_outer:
                    yield row, found
            elif value is None:
                entries.pop(key, None)
                due_ms.pop(key, None)
            else:
                entries[key] = value
                if keep_ms is not None:
                    due_ms[key] = now.processing_ms + keep_ms

    def on_due(self, bucket: Bucket, keys: list[Any], now: Now) -> Rows:
        for key in keys:
            bucket.entries.pop(key, None)
        return ()


def _in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """By time, changes first. A change has at least the time of those before it in its key and partition."""
    changes = sorted((row for row in rows if row[2] == TABLE), key=itemgetter(3, 4))
    reached: dict[Any, int] = {}
    ordered: list[tuple[Any, ...]] = []
    for row in changes:
        place, at = (row[0], row[3]), row[1]
        before = reached.get(place, at)
        if at < before:
            row = (row[0], before, *row[2:])
        else:
            reached[place] = at
        ordered.append(row)
    ordered.extend(row for row in rows if row[2] == STREAM)
    ordered.sort(key=itemgetter(1, 2))
    return ordered


class _TableTable(Operator):
    """Both values of each key."""

    def __init__(self, how: str) -> None:
        self._how = how

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        entries, how = bucket.entries, self._how
        nothing = (None, None)
        before: dict[Any, tuple[Any, Any]] = {}
        for key, _, side, left, right in rows:
            old = entries.get(key, nothing)
            before.setdefault(key, old)
            entries[key] = (left, old[1]) if side == 0 else (old[0], right)
        for key, old in before.items():
            new = entries[key]
            if new == nothing:
                del entries[key]
            if new == old:
                continue
            if is_pair(how, *new):
                yield key, True, *new
            elif is_pair(how, *old):
                yield key, False, None, None
