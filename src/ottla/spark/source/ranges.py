"""Ranges of offsets, and which task reads which: large ranges are divided, and a task takes several small ones.

A task costs Spark and its Python worker 50 to 70 ms of a processor, whatever it reads: as much as 100 000 records of
100 bytes, or 30 000 of a kilobyte.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Final

from pyspark.sql.datasource import InputPartition

from ottla.base.ids import TopicPartition

WORTH_A_TASK: Final = 20_000
"""So many offsets."""
WORTH_A_TASK_BYTES: Final = 20 << 20
"""Or so many bytes, as the log has them."""
TOO_FEW_TO_WEIGH: Final = 100
"""So many offsets are read by one task, however large their records are: most micro-batches of a quiet topic are so."""


class OffsetRange:
    """Offsets in [`begin`, `end`) of one partition."""

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


class TaskRanges(InputPartition):
    """What one task reads, one range after the other."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        self.ranges = tuple(ranges)

    def __repr__(self) -> str:
        return ", ".join(map(repr, self.ranges))


def tasks_for(
    ranges: Sequence[OffsetRange],
    weigh: Callable[[Sequence[OffsetRange]], Mapping[str, float]],
    *,
    max_records: int | None = None,
    min_partitions: int | None = None,
) -> list[TaskRanges]:
    """One range for each task if the job says how many or how large; else small ranges share a task.

    `weigh` tells by topic how many bytes an offset of these ranges has. It costs a question to the brokers, and is only
    asked where the answer counts.
    """
    if max_records is None and min_partitions is None:
        small = [one for one in ranges if one.size < WORTH_A_TASK]
        is_worth_it = len(small) > 1 and sum(one.size for one in small) >= TOO_FEW_TO_WEIGH
        return [TaskRanges(group) for group in _together(ranges, weigh(small) if is_worth_it else {})]
    parts = divided(ranges, max_records=max_records, min_partitions=min_partitions)
    return [TaskRanges([part]) for part in parts]


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


def _together(ranges: Iterable[OffsetRange], bytes_per_offset: Mapping[str, float]) -> list[list[OffsetRange]]:
    """Groups of about what is worth a task, in offsets and in bytes, and ranges that have as much alone.

    The small ranges go, larger ones first, to the group that has least so far: Spark waits for its slowest task.
    """

    def worth(one: OffsetRange) -> float:
        """In tasks."""
        size_bytes = one.size * bytes_per_offset.get(one.partition.topic, 0.0)
        return max(one.size / WORTH_A_TASK, size_bytes / WORTH_A_TASK_BYTES)

    found = sorted(ranges, key=worth, reverse=True)
    small = [one for one in found if worth(one) < 1]
    groups = [[one] for one in found if worth(one) >= 1]
    shared: list[list[OffsetRange]] = [[] for _ in range(ceil(sum(map(worth, small))))]
    sums = [0.0] * len(shared)
    for one in small:
        least = sums.index(min(sums))
        shared[least].append(one)
        sums[least] += worth(one)
    return groups + shared
