"""Joins of two streams whose rows are close in time, by Spark's own operator."""

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.pipelines.dropped_rows import counted


def stream_stream(
    left: DataFrame,
    right: DataFrame,
    on: Sequence[str],
    *,
    left_time: str,
    right_time: str,
    before: str = "0 seconds",
    after: str = "0 seconds",
    grace: str = "0 seconds",
    how: Literal["inner", "left", "right", "outer"] = "inner",
) -> DataFrame:
    """Pairs of rows that are equal in `on`, where the right row is at most `before` earlier and `after` later.

    Each side's rows are kept until no partner can come any more: the watermark of the other side has passed. A row
    without a partner, in the outer joins, is emitted then. Null is equal to nothing: a row with a null in `on` has no
    partner. A row without its time is dropped, and counted (`dropped_rows.py`): no watermark would ever pass it, so the
    state would keep it for ever. The sides' other columns must have different names. For output mode append.
    """
    if shared := sorted(set(left.columns) & set(right.columns) - set(on)):
        raise ValueError(f"both sides have the columns {', '.join(shared)}: rename them, or name them in `on`")
    a = counted(left, "stream_stream", left_time).withWatermark(left_time, grace).alias("a")
    b = counted(right, "stream_stream", right_time).withWatermark(right_time, grace).alias("b")
    condition = F.expr(
        f"b.`{right_time}` >= a.`{left_time}` - INTERVAL {before} "
        f"AND b.`{right_time}` <= a.`{left_time}` + INTERVAL {after}"
    )
    for name in on:
        condition = condition & (F.col(f"a.{name}") == F.col(f"b.{name}"))
        # Spark's outer join of streams takes two nulls for equal: its state finds them under the same key.
        condition = condition & F.col(f"a.{name}").isNotNull() & F.col(f"b.{name}").isNotNull()
    joined = a.join(b, condition, {"outer": "fullOuter"}.get(how, how))
    keys = [F.coalesce(f"a.{name}", f"b.{name}").alias(name) for name in on]
    rest = [
        F.col(f"{side}.{name}") for side, rows in (("a", left), ("b", right)) for name in rows.columns if name not in on
    ]
    return joined.select(*keys, *rest)
