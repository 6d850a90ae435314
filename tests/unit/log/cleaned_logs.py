"""What the tests of the cleaner share: records with keys, and a whole cleaning in one call."""

from collections.abc import Iterator
from typing import Any

from ottla.base.ports import Disk
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleaningDone, CleaningJob
from ottla.log.cleaning.planning import CleanerLimits, cleanable, plan_cleaning
from ottla.log.partition_log import PartitionLog
from ottla.log.scan import scan_batches
from ottla.records.batch import BatchHeader, checksum_matches
from ottla.records.builder import BatchBuilder
from ottla.records.reader import read_records
from ottla.records.record import Record
from tests.unit.log.partition_logs import CONFIG, NOW_MS, append, open_log

DAY_MS = 86_400_000
SEED = bytes(range(16))
__all__ = ["CONFIG", "DAY_MS", "NOW_MS", "append", "open_log"]


def keyed(*records: str, timestamp: int = NOW_MS, **fields: Any) -> bytearray:
    """A batch of records written as "key=value"; "key" alone is a tombstone, "=value" has no key."""
    builder = BatchBuilder(**fields)
    for text in records:
        key, equals, value = text.partition("=")
        builder.append(timestamp, key.encode() or None, value.encode() if equals else None)
    return builder.build()


def begun(log: PartitionLog) -> PartitionLog:
    """Begins a new segment, so that all before it can be cleaned."""
    log.roll()
    return log


def job_for(
    log: PartitionLog, *, clean_offset: int | None = None, now_ms: int = NOW_MS, keys: int = 1000
) -> CleaningJob:
    log.flush()
    part = cleanable(log, clean_offset, now_ms, log.recovery_point)
    limits = CleanerLimits(map_bytes=keys * 24, map_load_factor=1.0)
    return CleaningJob.of_json(plan_cleaning(log, part, limits, now_ms, SEED).to_json())


def clean_log(log: PartitionLog, disk: Disk, **options: Any) -> CleaningDone:
    """A whole cleaning: every finished segment is swapped in at once."""
    for step in clean(disk, job_for(log, **options)):
        if isinstance(step, CleaningDone):
            return step
        replacement = log.start_replacement(step.base_offsets)
        assert replacement is not None
        replacement.run()
        assert log.finish_replacement(replacement)
    raise AssertionError("a cleaning ends with telling how far it got")


def batches_in(log: PartitionLog) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Every batch of the log, all of which are sound."""
    for segment in log.segments:
        for _, header, data in scan_batches(segment.file, 0, segment.size):
            assert checksum_matches(data, 0, header)
            yield header, list(read_records(data, 0, header))


def contents(log: PartitionLog) -> list[str]:
    """Every record that is not a marker, as "offset:key=value"."""
    return [
        f"{record.offset}:{(record.key or b'').decode()}"
        + ("" if record.value is None else f"={record.value.decode()}")
        for header, records in batches_in(log)
        if not header.is_control
        for record in records
    ]


def headers_of(log: PartitionLog) -> list[BatchHeader]:
    return [header for header, _ in batches_in(log)]
