"""Rows that an operator cannot use: without a key, a time or an order where it needs one.

Kafka Streams drops such records, and counts them. So do these operators: a row that lacks what the operator needs is
dropped before it; inside, it would end the query, at every start again. How many were dropped is in the query's
progress: `observedMetrics` has a row for each operator, `OPERATOR.NUMBER`, with the column `dropped`. To keep them,
`unusable` gives the same rows to a query of their own, which writes them to a topic of dead letters.
"""

from collections import defaultdict
from functools import reduce
from itertools import count
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_numbers: Final = defaultdict[str, "count[int]"](lambda: count(1))
"""Spark wants the metrics of a query to have different names."""


def usable(rows: DataFrame, *needed: str) -> DataFrame:
    """The rows that have a value in all of these columns."""
    return rows.where(~_is_unusable([F.col(name) for name in needed]))


def unusable(rows: DataFrame, *needed: str) -> DataFrame:
    """The other rows: those that lack one of these columns. Together they are all rows."""
    return rows.where(_is_unusable([F.col(name) for name in needed]))


def counted(rows: DataFrame, operator: str, *needed: str | None) -> DataFrame:
    """The usable rows; the others are counted in the progress of the query. None names no column."""
    columns = [F.col(name) for name in needed if name is not None]
    if not columns:
        return rows
    is_unusable = _is_unusable(columns)
    name = f"{operator}.{next(_numbers[operator])}"
    return rows.observe(name, F.count_if(is_unusable).alias("dropped")).where(~is_unusable)


def _is_unusable(needed: list[Column]) -> Column:
    if not needed:
        raise ValueError("name at least one column that a row must have")
    return reduce(or_, [column.isNull() for column in needed])
