"""Joins of a table with the table that its rows point to: orders with their customer, bids with their auction.

Theory of operation. A row of the left table lives with its key, but must hear of changes of the row that it points
to, which lives elsewhere. So there are two steps (Kafka Streams has the same idea, KIP-213). The first keeps the
foreign key of each left row; when it changes, the row leaves the old one and subscribes to the new. The second, by
foreign key, keeps the right row and its subscribers. A row that has moved is emitted by its new place only, so that the
old place cannot overtake it; both steps see a micro-batch as a whole and tell how it ends.
"""

from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from ottla.spark.pipelines.buckets import BUCKETS, Bucket, Now, Operator, Rows, in_buckets
from ottla.spark.pipelines.dropped_rows import counted
from ottla.spark.pipelines.opaque import packed, packed_type
from ottla.spark.pipelines.table_joins import How, is_pair, opened_pair, pair_type
from ottla.spark.pipelines.tables import ordinal

LEAVE: Final = 0  # the row points elsewhere now, and is emitted from there
REMOVE: Final = 1  # the row is deleted
SUBSCRIBE: Final = 2
MOVE_IN: Final = 3  # as subscribe, but readers may know a pair of this row already
RIGHT: Final = 4  # a change of the right table


def foreign_key(
    left: DataFrame,
    right: DataFrame,
    reference: Column,
    *,
    key: str = "key",
    value: str = "value",
    order: str | None = "offset",
    how: How = "inner",
    buckets: int = BUCKETS,
) -> DataFrame:
    """Each row of the left table with the right row whose key is `reference`, an expression over the left's columns.

    The result is a table by the left's key. `how` is inner, or left: then a row that points nowhere is there with
    `right` null. Changes without a key or an order are dropped (`dropped_rows.py`). For output mode append.
    """
    if how == "outer":
        raise ValueError("a foreign-key join is inner or left: a right row without left rows has no key")
    left_key, right_key = left.schema[key].dataType, right.schema[key].dataType
    left_type, right_type = left.schema[value].dataType, right.schema[value].dataType
    referring = counted(left, "foreign_key", key, order).select(
        packed(F.col(key), left_key).alias("key"),
        ordinal(left, order).alias("order"),
        packed(reference.cast(right_key), right_key).alias("reference"),
        packed(F.col(value), left_type).alias("value"),
    )
    steps = StructType(
        [
            StructField("reference", packed_type(right_key)),
            StructField("step", IntegerType()),
            StructField("key", packed_type(left_key)),
            StructField("left", packed_type(left_type)),
        ]
    )
    moves = in_buckets(referring, F.col("key"), _References(), steps, buckets=buckets, order=(1,))
    nothing = F.lit(None)
    subscriptions = moves.select(
        "reference", F.lit(0).cast("long").alias("order"), "step", "key", "left",
        nothing.cast(packed_type(right_type)).alias("right"),
    )  # fmt: skip
    changes = counted(right, "foreign_key", key, order).select(
        packed(F.col(key), right_key).alias("reference"),
        ordinal(right, order).alias("order"),
        F.lit(RIGHT).alias("step"),
        nothing.cast(packed_type(left_key)).alias("key"),
        nothing.cast(packed_type(left_type)).alias("left"),
        packed(F.col(value), right_type).alias("right"),
    )
    output = pair_type(StructField("key", packed_type(left_key)), left, right, value)
    both = subscriptions.unionByName(changes)
    joined = in_buckets(both, F.col("reference"), _Subscribers(how), output, buckets=buckets, order=(1,))
    return opened_pair(joined, left_key, left_type, right_type)


class _References(Operator):
    """Where each row of the left table points to."""

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        entries = bucket.entries
        newest = {key: (reference, value) for key, _, reference, value in rows}
        for key, (reference, value) in newest.items():
            is_known, old = key in entries, entries.get(key)
            if value is None:
                if is_known:
                    del entries[key]
                    yield old, REMOVE, key, None
                continue
            entries[key] = reference
            has_moved = is_known and old != reference
            if has_moved:
                yield old, LEAVE, key, None
            yield reference, MOVE_IN if has_moved else SUBSCRIBE, key, value


class _Subscribers(Operator):
    """By foreign key: the right row, and the left rows that point to it."""

    def __init__(self, how: str) -> None:
        self._how = how

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        by_reference: dict[Any, list[tuple[Any, ...]]] = {}
        for reference, _, *change in rows:
            by_reference.setdefault(reference, []).append(tuple(change))
        for reference, changes in by_reference.items():
            yield from self._changed(bucket, reference, changes)

    def _changed(self, bucket: Bucket, reference: Any, changes: list[tuple[Any, ...]]) -> Rows:
        right, subscribers = bucket.entries.get(reference, (None, {}))
        old_right = right
        before: dict[Any, Any] = {}
        moved_in, left_for_good = set(), set()
        for step, key, left, new_right in changes:
            if step == RIGHT:
                right = new_right
                continue
            before.setdefault(key, subscribers.get(key))
            if step in (LEAVE, REMOVE):
                subscribers.pop(key, None)
                if step == LEAVE:
                    left_for_good.add(key)
            else:
                subscribers[key] = left
                if step == MOVE_IN:
                    moved_in.add(key)
        if right is None and not subscribers:
            bucket.entries.pop(reference, None)
        else:
            bucket.entries[reference] = (right, subscribers)
        touched = before if right == old_right else {**subscribers, **before}
        for key in touched:
            old, new = before.get(key, subscribers.get(key)), subscribers.get(key)
            if is_pair(self._how, new, right):
                if (old, old_right) != (new, right) or key in moved_in:
                    yield key, True, new, right
            elif key not in left_for_good and (is_pair(self._how, old, old_right) or key in moved_in):
                yield key, False, None, None
