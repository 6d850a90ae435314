"""Results as records of a compacted topic: a key, and a value or nothing."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType

from ottla.spark.pipelines.opaque import WRITTEN


def aggregated(rows: DataFrame, by: Sequence[str], *aggregates: Column) -> DataFrame:
    """Aggregates by the columns `by`, ready for a compacted topic: in output mode update each change is one record."""
    return to_records(rows.groupBy(*by).agg(*aggregates), by)


def to_records(results: DataFrame, key: Sequence[str], *, deleted: Column | None = None) -> DataFrame:
    """`key` and `value` as the sink wants them, so that the topic, compacted, holds the newest result of each key.

    One key column that is a string or bytes is the key as it is; several, or others, are a JSON object with the
    columns in the order given, which is the same bytes whenever the values are equal: instants are in UTC, to the
    microsecond, whatever the session's time zone is. The value is a JSON object of all other columns. Where `deleted`
    holds the value is null, which deletes the key.
    """
    if not key:
        raise ValueError("a record of a compacted topic needs a key: name at least one column")
    rest = [F.col(name) for name in results.columns if name not in key]
    value: Column = F.to_json(F.struct(*rest), WRITTEN)
    if deleted is not None:
        value = F.when(~F.coalesce(deleted, F.lit(False)), value)
    return results.select(_key(results, key).alias("key"), value.cast("binary").alias("value"))


def table_to_records(table: DataFrame, *, key: str = "key", value: str = "value") -> DataFrame:
    """A table (`tables.py`) as records: its value as JSON, or as it is if it is bytes or a string; null stays null."""
    content = F.col(value)
    if not isinstance(table.schema[value].dataType, StringType | BinaryType):
        content = F.when(content.isNotNull(), F.to_json(content, WRITTEN))
    return table.select(_key(table, [key]).alias("key"), content.cast("binary").alias("value"))


def _key(results: DataFrame, key: Sequence[str]) -> Column:
    if len(key) == 1 and isinstance(results.schema[key[0]].dataType, StringType | BinaryType):
        return F.col(key[0]).cast("binary")
    return F.to_json(F.struct(*key), WRITTEN).cast("binary")
