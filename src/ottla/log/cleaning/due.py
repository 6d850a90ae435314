"""Which part of a log can be cleaned, and whether it is time to.

Never cleaned are the active segment, what is not decided (at or past the last stable offset, and with it the high
watermark), and what is younger than `min.compaction.lag.ms`. It is time when the dirty part is more than
`min.cleanable.dirty.ratio` of the log, or has a record older than `max.compaction.lag.ms`.
"""

from typing import NamedTuple

from ottla.log.partition_log import PartitionLog
from ottla.log.reading import slot_of
from ottla.log.segment import Segment

_NEVER_MS = (1 << 63) - 1


class Cleanable(NamedTuple):
    """The clean part, then the dirty part up to `end_offset`, where a segment begins that stays as it is."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """By how much the oldest dirty record has passed `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        return self.cleanable_bytes > 0 and (self.overdue_ms > 0 or self.ratio > min_cleanable_dirty_ratio)


def cleanable(log: PartitionLog, clean_offset: int | None, now_ms: int, durable_offset: int | None = None) -> Cleanable:
    """`clean_offset` is where the last cleaning got to. With `durable_offset`, nothing at or past it is cleaned."""
    first_dirty = _first_dirty_offset(log, clean_offset)
    dirty = log.segments[slot_of(log.segments, first_dirty) : -1]
    end = min(
        log.last_stable_offset,
        log.active.base_offset,
        _first_young_offset(dirty, now_ms - log.config.min_compaction_lag_ms, log),
        _NEVER_MS if durable_offset is None else durable_offset,
    )
    end_offset = log.segments[slot_of(log.segments, end)].base_offset
    return Cleanable(
        first_dirty,
        end_offset,
        clean_bytes=sum(segment.size for segment in log.segments if segment.base_offset < first_dirty),
        cleanable_bytes=sum(segment.size for segment in dirty if segment.base_offset < end_offset),
        overdue_ms=_overdue_ms(dirty, now_ms - log.config.max_compaction_lag_ms),
    )


def _first_dirty_offset(log: PartitionLog, clean_offset: int | None) -> int:
    """What a checkpoint says that is outside of the log, after records were deleted or lost, is as good as nothing."""
    if clean_offset is None or not log.log_start_offset <= clean_offset <= log.log_end_offset:
        return log.log_start_offset
    return clean_offset


def _first_young_offset(dirty: list[Segment], before_ms: int, log: PartitionLog) -> int:
    if log.config.min_compaction_lag_ms <= 0:
        return _NEVER_MS
    return next((segment.base_offset for segment in dirty if segment.largest_timestamp() > before_ms), _NEVER_MS)


def _overdue_ms(dirty: list[Segment], before_ms: int) -> int:
    if before_ms <= 0:
        return 0
    return max((before_ms - first for segment in dirty if (first := segment.first_timestamp) > 0), default=0)
