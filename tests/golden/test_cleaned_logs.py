"""Logs that Apache Kafka has cleaned: we find nothing more to clean in them, and our cleaner goes by their marks."""

import shutil
from pathlib import Path

import pytest

from ottla.base.ids import TopicPartition
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleanedSegment
from ottla.log.cleaning.planning import CleanerLimits, cleanable, plan_cleaning
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.log.scan import scan_batches
from ottla.records.batch import BatchHeader
from ottla.testing.clock import FixedClock

CLEAN = Path(__file__).parent / "kafka-4.3.1" / "clean"
# The golden node ran within a minute of this; `compacted` has horizons a day later.
THEN_MS = 1_794_738_870_000
DAY_MS = 86_400_000


def opened(topic: str, tmp_path: Path) -> PartitionLog:
    directory = tmp_path / f"{topic}-0"
    shutil.copytree(CLEAN / f"{topic}-0", directory)
    config = LogConfig(cleanup_policy=("compact",), index_interval_bytes=100, delete_retention_ms=DAY_MS)
    log = PartitionLog.open(OsDisk(), str(directory), TopicPartition(topic, 0), config, FixedClock(THEN_MS), clean=True)
    log.advance_high_watermark(log.log_end_offset)
    return log


def cleaned_again(log: PartitionLog, now_ms: int) -> None:
    part = cleanable(log, None, now_ms)
    for step in clean(OsDisk(), plan_cleaning(log, part, CleanerLimits(), now_ms, bytes(16))):
        if isinstance(step, CleanedSegment):
            replacement = log.start_replacement(step.base_offsets)
            assert replacement is not None
            replacement.run()
            assert log.finish_replacement(replacement)


def contents(log: PartitionLog, before: int) -> list[tuple[BatchHeader, bytes]]:
    return [
        (header, bytes(data))
        for segment in log.segments
        for _, header, data in scan_batches(segment.file, 0, segment.size)
        if header.base_offset < before
    ]


@pytest.mark.parametrize("topic", ["compacted", "compacted-expired"])
def test_what_kafka_has_cleaned_is_left_to_the_byte(topic: str, tmp_path: Path) -> None:
    log = opened(topic, tmp_path)
    active = log.active.base_offset
    before = contents(log, active)
    cleaned_again(log, THEN_MS)
    assert len(log.segments) == 2, "small segments have become one"
    assert contents(log, active) == before
    log.release()


def test_kafkas_delete_horizons_count_for_us(tmp_path: Path) -> None:
    log = opened("compacted", tmp_path)
    assert [header for header, _ in contents(log, 1000) if header.has_delete_horizon]
    cleaned_again(log, THEN_MS + 2 * DAY_MS)
    left = contents(log, log.active.base_offset)
    assert not [header.base_offset for header, _ in left if header.is_control and header.has_delete_horizon]
    assert [header.record_count for header, _ in left if header.base_offset == 45] == [6], "its tombstone is gone"
    log.release()
