"""From a log to a job: everything that a cleaning needs to know and cannot read from segments that are closed."""

from typing import NamedTuple

from ottla.log.cleaning.job import CleaningJob, LastRecord
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import Producer
from ottla.log.reading import slot_of
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction

# Which part of a log can be cleaned, and whether it is time to.
#
# Never cleaned are the active segment, what is not decided (at or past the last stable offset, and with it the high
# watermark), and what is younger than `min.compaction.lag.ms`. It is time when the dirty part is more than
# `min.cleanable.dirty.ratio` of the log, or has a record older than `max.compaction.lag.ms`.

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


_BYTES_A_SLOT = 24
_MOST_MAP_BYTES = (1 << 31) - 1  # As in Kafka, whatever the setting says.
_LEAST_BUFFER_BYTES = 4096


class CleanerLimits(NamedTuple):
    """How much memory one cleaning may take, and how fast it may be."""

    map_bytes: int = 128 << 20
    map_load_factor: float = 0.9
    buffer_bytes: int = 512 << 10
    bytes_per_s: float = float("inf")

    @property
    def map_slots(self) -> int:
        return max(min(self.map_bytes, _MOST_MAP_BYTES) // _BYTES_A_SLOT, 1)

    @property
    def map_capacity(self) -> int:
        return max(min(int(self.map_slots * self.map_load_factor), self.map_slots), 1)


def plan_cleaning(log: PartitionLog, part: Cleanable, limits: CleanerLimits, now_ms: int, seed: bytes) -> CleaningJob:
    """The job of cleaning `part`, all of which must be durable, and be promised to be in the checkpoint."""
    base_offsets = tuple(segment.base_offset for segment in log.segments if segment.base_offset < part.end_offset)
    return CleaningJob(
        directory=log.directory,
        base_offsets=base_offsets,
        first_dirty_offset=part.first_dirty_offset,
        end_offset=part.end_offset,
        now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        segment_bytes=log.config.segment_bytes,
        segment_index_bytes=log.config.segment_index_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        map_slots=limits.map_slots,
        map_capacity=limits.map_capacity,
        seed=seed.hex(),
        buffer_bytes=max(limits.buffer_bytes // 2, _LEAST_BUFFER_BYTES),
        bytes_per_s=limits.bytes_per_s,
        aborted=_aborted_after(log, len(base_offsets)),
        producers={producer.producer_id: _last_record(producer) for producer in log.producers},
    )


def _aborted_after(log: PartitionLog, slot: int) -> tuple[AbortedTransaction, ...]:
    """Transactions may begin in what is cleaned, and have their markers in what is not."""
    return tuple(entry for segment in log.segments[slot:] for entry in segment.transaction_index.entries())


def _last_record(producer: Producer) -> LastRecord:
    return LastRecord(producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
