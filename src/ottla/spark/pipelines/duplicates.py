"""Rows that come twice leave once, by Spark's own operators."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from ottla.spark.pipelines.dropped_rows import counted


def deduplicate(rows: DataFrame, by: Sequence[str], *, time: str | None = None, within: str | None = None) -> DataFrame:
    """The first row of each value of `by`.

    With `time` and `within`, a value is forgotten when the watermark has passed its first row by `within`: duplicates
    that are no further apart are found, and state stays bounded. Without, every value is remembered for ever.

    A row that is late, more than `within` behind the highest time of the micro-batches before, is dropped, whether it
    is a duplicate or not: nobody remembers whether it is. Spark counts it in the query's progress
    (`numRowsDroppedByWatermark`). So is a row without a time, under `observedMetrics`. `late` and `on_time` divide rows
    before, if late ones are wanted elsewhere. A batch has no watermark, and drops none.
    """
    if (time is None) != (within is None):
        raise ValueError("time and within belong together: give both, or neither")
    if time is None or within is None:
        return rows.dropDuplicates(list(by))
    if not rows.isStreaming:
        return rows.dropDuplicates(list(by))
    return counted(rows, "deduplicate", time).withWatermark(time, within).dropDuplicatesWithinWatermark(list(by))
