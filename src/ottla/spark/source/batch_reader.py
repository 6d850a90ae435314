"""`spark.read.format("ottla")`: the partitions are looked up once, when the query is planned, and read by tasks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.base.ids import TopicPartition
from ottla.spark.plain_errors import tells_plainly
from ottla.spark.source.filters import PushedFilters
from ottla.spark.source.lookups import Lookups
from ottla.spark.source.offsets_json import Offsets
from ottla.spark.source.probing_fetches import Prober
from ottla.spark.source.ranges import OffsetRange, TaskRanges, ranges_between, tasks_for
from ottla.spark.source.source_options import SourceOptions
from ottla.spark.source.task import RowReading, read_rows

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, reading: RowReading) -> None:
        self._options = options
        self._reading = reading
        self._filters = PushedFilters()
        self.__dict__["pushFilters"] = self._filters  # see there why it is no method

    @tells_plainly
    def partitions(self) -> list[InputPartition]:
        options, filters = self._options, self._filters
        lookups = Lookups(options)
        try:
            there = lookups.required_partitions()
            begins = lookups.at(options.starting, there, none_is_latest=options.no_timestamp_is_latest)
            ends = lookups.at(options.ending, there, none_is_latest=True)
            wanted = [partition for partition in there if filters.keeps(partition)]
            begins = {one: max(begins[one], filters.offsets.first or 0) for one in wanted}
            if filters.offsets.end is not None:
                ends = {one: min(ends[one], filters.offsets.end) for one in wanted}
            if filters.timestamps_us.first is not None:
                begins = self._not_before(lookups, wanted, begins, ends, filters.timestamps_us.first)
        finally:
            lookups.close()
        return list(
            tasks_for(
                ranges_between(begins, ends),
                self._bytes_by_topic,
                max_records=options.max_records_per_partition,
                min_partitions=options.min_partitions,
            )
        )

    def _bytes_by_topic(self, ranges: Sequence[OffsetRange]) -> Mapping[str, float]:
        prober = Prober(self._options.client)
        try:
            return prober.bytes_by_topic(ranges)
        finally:
            prober.close()

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if isinstance(partition, TaskRanges):  # Spark makes an empty one where there is nothing to read
            yield from read_rows(self._options, self._reading, partition.ranges, self._filters.rows)

    def _not_before(
        self, lookups: Lookups, wanted: list[TopicPartition], begins: Offsets, ends: Offsets, first_us: int
    ) -> Offsets:
        """All records before the first that is as young are older."""
        found = lookups.at_time(dict.fromkeys(wanted, max(first_us // 1000, 0)))
        young = {one: ends[one] if offset is None else offset for one, offset in found.items()}
        return {one: max(begins[one], young[one]) for one in wanted}
