"""`spark.read.format("ottla")`: the partitions are looked up once, when the query is planned, and read by tasks."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark.source.lookups import Lookups
from ottla.spark.source.ranges import OffsetRange, divided, ranges_between
from ottla.spark.source.source_options import SourceOptions
from ottla.spark.source.task import read_rows

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, names: Sequence[str]) -> None:
        self._options = options
        self._names = list(names)

    def partitions(self) -> list[InputPartition]:
        options = self._options
        lookups = Lookups(options)
        try:
            there = lookups.required_partitions()
            begins = lookups.at(options.starting, there, none_is_latest=options.no_timestamp_is_latest)
            ends = lookups.at(options.ending, there, none_is_latest=True)
        finally:
            lookups.close()
        return list(
            divided(
                ranges_between(begins, ends),
                max_records=options.max_records_per_partition,
                min_partitions=options.min_partitions,
            )
        )

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if isinstance(partition, OffsetRange):  # Spark makes an empty one where there is nothing to read
            yield from read_rows(self._options, self._names, partition)
