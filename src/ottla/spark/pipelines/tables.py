"""Tables from compacted topics: the latest value of each key, and what follows when it changes.

A table is a DataFrame of changes, as a compacted topic is: a `key`, a `value` which is null when the key was deleted,
and an order, the record's `offset`. A key's records are all in one partition, so offsets order them. `value` may be
anything: the record's bytes, or what was read from them with `from_json` (which makes a null of a null).
"""

from collections.abc import Iterator, Mapping
from decimal import Context, Decimal, localcontext
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    IntegralType,
    LongType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.pipelines.buckets import BUCKETS, Bucket, Now, Operator, Rows, in_buckets
from ottla.spark.pipelines.dropped_rows import counted
from ottla.spark.pipelines.opaque import packed, packed_type, unpacked

_DIGITS: Final = 38
"""The most that Spark's decimals have."""


def latest(changes: DataFrame, *, key: str = "key", value: str = "value", order: str = "offset") -> DataFrame:
    """One row a key: its newest value, null if it was deleted, and the order of that change.

    Spark's own aggregation. Streaming, in output mode update, it tells the keys that changed in each micro-batch. Its
    state keeps deleted keys: a change that comes late must not bring one back.
    """
    newest = F.max_by(F.struct(F.col(value).alias("value"), F.col(order).alias("order")), F.col(order))
    return (
        changes.groupBy(key)
        .agg(newest.alias("newest"))
        .select(key, F.col("newest.value").alias(value), F.col("newest.order").alias(order))
    )


def present(table: DataFrame, *, value: str = "value") -> DataFrame:
    """The rows that are there: without deleted keys. For snapshots; a stream that is written back needs its deletes."""
    return table.where(F.col(value).isNotNull())


def aggregate_table(
    table: DataFrame,
    group: Column,
    sums: Mapping[str, Column] | None = None,
    *,
    key: str = "key",
    value: str = "value",
    order: str | None = "offset",
    buckets: int = BUCKETS,
) -> DataFrame:
    """Counts and sums over the current rows of a table, by group; a table again.

    When a row changes, what it added to its old group is taken out of it: an aggregation of changes would count it
    twice. `group` and `sums` are expressions over the table's columns. The result has `key`, the group, and `value`,
    a struct of `count` and the sums; it is null when the last row has left the group. Sums of integers are longs, sums
    of decimals are decimals; one that does not fit is null, and there again when it fits. Changes without a key or an
    order are dropped (`dropped_rows.py`).

    Two stateful operators, for output mode append: rows by key, then groups.
    """
    measures = dict(sums or {})
    live = F.col(value).isNotNull()
    typed = table.select(group.alias("g"), *(measure.alias(name) for name, measure in measures.items()))
    group_type, names = typed.schema["g"].dataType, list(measures)
    kinds = {name: _number(typed.schema[name].dataType) for name in names}
    key_type = table.schema[key].dataType
    shaped = counted(table, "aggregate_table", key, order).select(
        packed(F.col(key), key_type).alias("key"),
        ordinal(table, order).alias("order"),
        packed(group, group_type).alias("group"),
        live.alias("is_live"),
        *(F.coalesce(measures[name].cast(kinds[name]), F.lit(0).cast(kinds[name])).alias(name) for name in names),
    )
    numbers = [StructField("count", LongType()), *(StructField(name, kinds[name]) for name in names)]
    parts = StructType([StructField("group", packed_type(group_type)), *numbers])
    changes = in_buckets(shaped, F.col("key"), _Parts(), parts, buckets=buckets, order=(1,))
    totals = StructType([*parts.fields, StructField("is_live", BooleanType())])
    added = in_buckets(changes, F.col("group"), _Totals(list(kinds.values())), totals, buckets=buckets)
    return _opened(added, group_type, names)


def aggregate_stream(
    rows: DataFrame, group: Column, sums: Mapping[str, Column] | None = None, *, buckets: int = BUCKETS
) -> DataFrame:
    """Running counts and sums over a stream, by group: a table with `key` and `value`, as of `aggregate_table`.

    Spark's own `groupBy().agg()` is faster and knows more functions, but tells changes in output mode update only,
    which sinks in Python cannot take, and which nothing stateful can follow. This is for output mode append.
    """
    measures = dict(sums or {})
    typed = rows.select(group.alias("g"), *(measure.alias(name) for name, measure in measures.items()))
    group_type, names = typed.schema["g"].dataType, list(measures)
    kinds = {name: _number(typed.schema[name].dataType) for name in names}
    parts = rows.select(
        packed(group, group_type).alias("group"),
        F.lit(1).cast("long").alias("count"),
        *(F.coalesce(measures[name].cast(kinds[name]), F.lit(0).cast(kinds[name])).alias(name) for name in names),
    )
    numbers = [StructField("count", LongType()), *(StructField(name, kinds[name]) for name in names)]
    output = [StructField("group", packed_type(group_type)), *numbers, StructField("is_live", BooleanType())]
    totals = _Totals(list(kinds.values()))
    return _opened(in_buckets(parts, F.col("group"), totals, StructType(output), buckets=buckets), group_type, names)


def ordinal(rows: DataFrame, order: str | None) -> Column:
    """The order of rows as an integer; without a column for it rows come one a key and micro-batch, and need none."""
    if order is None:
        return F.lit(0).cast("long")
    if isinstance(rows.schema[order].dataType, TimestampType):
        return F.unix_micros(F.col(order))
    return F.col(order).cast("long")


def _opened(totals: DataFrame, group_type: DataType, names: list[str]) -> DataFrame:
    return totals.select(
        unpacked(F.col("group"), group_type).alias("key"),
        F.when(F.col("is_live"), F.struct("count", *names)).alias("value"),
    )


def _number(kind: DataType) -> DataType:
    if isinstance(kind, IntegralType):
        return LongType()
    return DecimalType(_DIGITS, kind.scale) if isinstance(kind, DecimalType) else DoubleType()


def _fits(kind: DataType, total: Any) -> bool:
    """Whether a column of this type can hold it. Python's integers know no bound."""
    if isinstance(kind, LongType):
        return -(1 << 63) <= total < 1 << 63
    if isinstance(kind, DecimalType):
        return abs(total) < Decimal(1).scaleb(kind.precision - kind.scale)
    return True


def _sums(old: list[Any], parts: list[Any]) -> list[Any]:
    try:
        return [a + b for a, b in zip(old, parts, strict=True)]
    except TypeError:  # a checkpoint from when sums of decimals were floats
        return [Decimal(repr(a)) + b if isinstance(b, Decimal) else a + b for a, b in zip(old, parts, strict=True)]


class _Parts(Operator):
    """Keeps what each row adds to its group. A change takes the old part out and puts the new one in.

    A part that is taken out has the count -1, and the numbers that it was put in with: the negative of the smallest
    long is no long.
    """

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        entries = bucket.entries
        before: dict[Any, tuple[Any, ...] | None] = {}
        for key, _, group, is_live, *measures in rows:
            before.setdefault(key, entries.get(key))
            if is_live:
                entries[key] = (group, 1, *measures)
            else:
                entries.pop(key, None)
        for key, old in before.items():
            new = entries.get(key)
            if old == new:
                continue
            if old is not None:
                yield (old[0], -1, *old[2:])
            if new is not None:
                yield new


class _Totals(Operator):
    """Adds up the parts of each group, exactly. A group without rows is gone."""

    def __init__(self, kinds: list[DataType]) -> None:
        self._kinds = kinds

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        with localcontext(Context(prec=2 * _DIGITS)):  # Python's own context rounds decimals to 28 digits
            return list(self._added(bucket, rows))

    def _added(self, bucket: Bucket, rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        entries = bucket.entries
        before: dict[Any, Any] = {}
        for group, *parts in rows:
            old = entries.get(group)
            before.setdefault(group, old)
            if parts[0] < 0:
                parts = [parts[0], *(-part for part in parts[1:])]
            entries[group] = parts if old is None else _sums(old, parts)
        for group, old in before.items():
            totals = entries[group]
            if totals[0] == 0:
                del entries[group]
                if old is not None:
                    yield (group, 0, *[None] * len(self._kinds), False)
            elif totals != old:
                yield (group, totals[0], *self._emitted(totals[1:]), True)

    def _emitted(self, sums: list[Any]) -> list[Any]:
        return [total if _fits(kind, total) else None for kind, total in zip(self._kinds, sums, strict=True)]
