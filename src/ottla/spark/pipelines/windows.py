"""Windows over event time: tumbling, hopping and session windows, by Spark's own operators, and what becomes of late
rows.

A window is open until the watermark passes its end: the highest time seen, less the `grace`. Output mode decides what
is emitted. In `append` a window is emitted once, when it has closed (Kafka Streams' `suppress(untilWindowCloses)`); in
`update` whenever it has changed. A row that comes after its window has closed is dropped, and counted in the query's
progress (`numRowsDroppedByWatermark`). So is a row without a time, under `observedMetrics`. Two other policies:

- `grace=None`: nothing is late, every window stays open. State grows for ever; output mode update only.
- `late` and `on_time` divide rows before any window, by how long they took to arrive, so that late ones can go
  elsewhere.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ottla.spark.pipelines.dropped_rows import counted


def tumbling(
    rows: DataFrame,
    size: str,
    *aggregates: Column,
    by: Sequence[str] = (),
    time: str = "timestamp",
    grace: str | None = "0 seconds",
) -> DataFrame:
    """Windows of one size, side by side. Has `window` (a struct of `start` and `end`), `by` and the aggregates."""
    return _windowed(counted(rows, "tumbling", time), F.window(time, size), aggregates, by, time, grace)


def hopping(
    rows: DataFrame,
    size: str,
    advance: str,
    *aggregates: Column,
    by: Sequence[str] = (),
    time: str = "timestamp",
    grace: str | None = "0 seconds",
) -> DataFrame:
    """Windows of one size that begin every `advance`: a row is in size / advance of them."""
    return _windowed(counted(rows, "hopping", time), F.window(time, size, advance), aggregates, by, time, grace)


def session(
    rows: DataFrame,
    gap: str,
    *aggregates: Column,
    by: Sequence[str] = (),
    time: str = "timestamp",
    grace: str | None = "0 seconds",
) -> DataFrame:
    """Windows that last as long as rows follow each other within `gap`. Spark tells sessions in output mode append."""
    return _windowed(counted(rows, "session", time), F.session_window(time, gap), aggregates, by, time, grace)


def on_time(rows: DataFrame, time: str, grace: str, *, arrived: str = "timestamp") -> DataFrame:
    """The rows that arrived within `grace` of their event time; `late` has all others.

    A topic with `message.timestamp.type=LogAppendTime` has the time of arrival as `timestamp`. The division looks at
    a row alone, so it is the same in every run, whatever the micro-batches were.
    """
    return rows.where(~_is_late(time, grace, arrived))


def late(rows: DataFrame, time: str, grace: str, *, arrived: str = "timestamp") -> DataFrame:
    """The rows that arrived later than `grace` after their event time, for a topic of their own.

    And those without one of the two times: of these nobody can say that they were on time, and windows drop them.
    """
    return rows.where(_is_late(time, grace, arrived))


def _is_late(time: str, grace: str, arrived: str) -> Column:
    return F.coalesce(F.col(arrived) > F.col(time) + F.expr(f"INTERVAL {grace}"), F.lit(True))


def _windowed(
    rows: DataFrame, window: Column, aggregates: Sequence[Column], by: Sequence[str], time: str, grace: str | None
) -> DataFrame:
    if not aggregates:
        raise ValueError('no aggregates were given; the number of rows is F.count("*").alias("count")')
    watched = rows if grace is None else rows.withWatermark(time, grace)
    return watched.groupBy(window.alias("window"), *by).agg(*aggregates)
