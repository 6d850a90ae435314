"""From a log to a job: everything that a cleaning needs to know and cannot read from segments that are closed."""

from dataclasses import dataclass

from ottla.log.cleaning.due import Cleanable
from ottla.log.cleaning.job import CleaningJob, LastRecord
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import Producer
from ottla.log.transaction_index import AbortedTransaction

_BYTES_A_SLOT = 24
_MOST_MAP_BYTES = (1 << 31) - 1  # As in Kafka, whatever the setting says.
_LEAST_BUFFER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class CleanerLimits:
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
