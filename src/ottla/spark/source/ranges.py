"""Ranges of offsets, one for each task, and how large ones are divided."""

from collections.abc import Iterable, Mapping
from math import ceil

from pyspark.sql.datasource import InputPartition

from ottla.base.ids import TopicPartition


class OffsetRange(InputPartition):
    """What one task reads: offsets in [`begin`, `end`) of one partition."""

    def __init__(self, partition: TopicPartition, begin: int, end: int) -> None:
        self.partition = partition
        self.begin = begin
        self.end = end

    @property
    def size(self) -> int:
        return self.end - self.begin

    def __repr__(self) -> str:
        return f"{self.partition}[{self.begin}, {self.end})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetRange) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def ranges_between(begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """Those that hold something, in order."""
    return [
        OffsetRange(partition, begins[partition], ends[partition])
        for partition in sorted(ends)
        if partition in begins and begins[partition] < ends[partition]
    ]


def divided(
    ranges: Iterable[OffsetRange], *, max_records: int | None = None, min_partitions: int | None = None
) -> list[OffsetRange]:
    """At most so many offsets in a range; then, at least about so many ranges, large ones divided more often.

    As Spark's connector does it: the parts of each range are as its share of all offsets.
    """
    found = list(ranges)
    if max_records is not None:
        found = [part for one in found for part in _in_parts(one, ceil(one.size / max_records))]
    total = sum(one.size for one in found)
    if min_partitions is None or len(found) >= min_partitions or not total:
        return found
    return [part for one in found for part in _in_parts(one, max(round(one.size / total * min_partitions), 1))]


def _in_parts(whole: OffsetRange, parts: int) -> Iterable[OffsetRange]:
    parts = min(parts, whole.size)
    for index in range(parts):
        begin = whole.begin + whole.size * index // parts
        end = whole.begin + whole.size * (index + 1) // parts
        yield OffsetRange(whole.partition, begin, end)
