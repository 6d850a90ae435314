"""Filters of a batch read that need not read what they throw away.

on topic and partition    partitions that do not match are not read at all
on offset                 ranges are cut to the bounds
on timestamp              ranges begin at the first record that is as young; as records need not be in order of time,
                          the rest is filtered here, before Spark sees it

Spark refuses a reader with a method `pushFilters` while its filter pushdown is off, which is Spark's default: a session
of the user's own would fail at every read. It looks at the method's `__func__`. So `PushedFilters` stands in for the
method, shows the `__func__` of a reader that has none, and takes filters all the same when they come.
"""

import operator
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from ottla.base.ids import TopicPartition

_COMPARISONS: Final[dict[type[Filter], Callable[[Any, Any], bool]]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
_NEVER_NULL: Final = frozenset(("topic", "partition", "offset", "timestamp", "timestampType"))
_OF_A_PARTITION: Final = frozenset(("topic", "partition"))


class Bounds(NamedTuple):
    """From the first to before the second; None where there is no bound."""

    first: int | None = None
    end: int | None = None

    def within(self, first: int | None, end: int | None) -> "Bounds":
        firsts = [one for one in (self.first, first) if one is not None]
        ends = [one for one in (self.end, end) if one is not None]
        return Bounds(max(firsts, default=None), min(ends, default=None))


class PushedFilters:
    """Those that were taken. Called by Spark with all filters that it has; returns those that it must see to."""

    def __init__(self) -> None:
        self.__func__ = DataSourceReader.pushFilters
        self._of_partitions: list[Filter] = []
        self.offsets = Bounds()
        self.timestamps_us = Bounds()

    def __call__(self, filters: Iterable[Filter]) -> list[Filter]:
        return [one for one in filters if not self._take(one)]

    def keeps(self, partition: TopicPartition) -> bool:
        known = {"topic": partition.topic, "partition": partition.partition}
        return all(_holds(one, known) for one in self._of_partitions)

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those of the batch that are within the bounds of time."""
        first, end = self.timestamps_us
        if first is None and end is None:
            return batch
        from pyarrow import compute

        column = batch.column("timestamp").cast(pa.int64())
        if first is not None:
            batch = batch.filter(compute.greater_equal(column, first))
            column = batch.column("timestamp").cast(pa.int64())
        return batch if end is None else batch.filter(compute.less(column, end))

    def _take(self, wanted: Filter) -> bool:
        column = _column(wanted)
        if isinstance(wanted, IsNotNull):
            return column in _NEVER_NULL
        if column in _OF_A_PARTITION and _is_known(wanted):
            self._of_partitions.append(wanted)
            return True
        if column == "offset" and (bounds := _bounds(wanted, int)) is not None:
            self.offsets = self.offsets.within(*bounds)
            return True
        if column == "timestamp" and (bounds := _bounds(wanted, _microseconds)) is not None:
            self.timestamps_us = self.timestamps_us.within(*bounds)
            return True
        return False


def _column(wanted: Filter) -> str | None:
    inner: Any = wanted.child if isinstance(wanted, Not) else wanted
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    return path[0] if len(path) == 1 else None


def _is_known(wanted: Filter) -> bool:
    inner = wanted.child if isinstance(wanted, Not) else wanted
    return type(inner) in _COMPARISONS or isinstance(inner, In)


def _holds(wanted: Any, known: dict[str, Any]) -> bool:
    if isinstance(wanted, Not):
        return not _holds(wanted.child, known)
    value = known[wanted.attribute[0]]
    return value in wanted.value if isinstance(wanted, In) else _COMPARISONS[type(wanted)](value, wanted.value)


def _bounds(wanted: Any, number: Callable[[Any], int]) -> Bounds | None:
    if type(wanted) not in _COMPARISONS or wanted.value is None:
        return None
    value = number(wanted.value)
    match wanted:
        case GreaterThan():
            return Bounds(value + 1, None)
        case GreaterThanOrEqual():
            return Bounds(value, None)
        case LessThan():
            return Bounds(None, value)
        case LessThanOrEqual():
            return Bounds(None, value + 1)
        case _:
            return Bounds(value, value + 1)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(time: datetime) -> int:
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    since = aware - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
