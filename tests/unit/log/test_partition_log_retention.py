"""What is no longer kept: by time, by size, by DeleteRecords; and how its files leave."""

from typing import Any

import pytest

from ottla.log.errors import OffsetOutOfRange
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    base_offsets,
    batch,
    files_in,
    in_transaction,
    marker,
    offsets_in,
    open_directory,
    open_log,
    produced,
    rolling,
)

ENOUGH = 1 << 20
SIZE = len(batch())
# Segments of two batches, and nothing goes unless a test says so.
KEEPING = rolling(batches=2)._replace(retention_ms=-1, retention_bytes=-1)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW_MS)


def log_with(disk: MemoryDisk, clock: FixedClock, **settings: Any) -> PartitionLog:
    """Seven batches, a second apart, in segments 0, 2, 4 and 6."""
    log = open_log(disk, KEEPING._replace(**settings), clock)
    append(log, *(batch(timestamp=NOW_MS + 1000 * number) for number in range(7)))
    assert base_offsets(log) == [0, 2, 4, 6]
    return log


class TestByTime:
    @pytest.mark.parametrize(
        ("later_ms", "left"),
        [(11_000, [0, 2, 4, 6]), (11_001, [2, 4, 6]), (13_001, [4, 6]), (15_001, [6]), (16_000, [6])],
    )
    def test_a_segment_goes_when_its_newest_record_is_too_old(
        self, disk: MemoryDisk, clock: FixedClock, later_ms: int, left: list[int]
    ) -> None:
        log = log_with(disk, clock, retention_ms=10_000)
        clock.advance(later_ms)
        assert log.apply_retention() == 4 - len(left)
        assert base_offsets(log) == left
        assert log.log_start_offset == left[0]

    def test_the_active_segment_goes_too_and_an_empty_one_takes_its_place(
        self, disk: MemoryDisk, clock: FixedClock
    ) -> None:
        log = log_with(disk, clock, retention_ms=10_000)
        clock.advance(60_000)
        assert log.apply_retention() == 4
        assert base_offsets(log) == [7]
        assert log.log_start_offset == log.log_end_offset == 7
        assert log.apply_retention() == 0, "the empty one stays"
        assert append(log, batch()) == 7

    def test_a_young_segment_keeps_all_after_it(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = open_log(disk, KEEPING._replace(retention_ms=10_000), clock)
        append(log, *(batch(timestamp=timestamp) for timestamp in (NOW_MS, NOW_MS, 1, 1, 1)))
        assert log.apply_retention() == 0

    def test_records_without_a_time_are_as_old_as_their_file(self, disk: MemoryDisk, clock: FixedClock) -> None:
        disk.now_ms = NOW_MS
        log = open_log(disk, KEEPING._replace(retention_ms=10_000), clock)
        append(log, *(batch(timestamp=-1) for _ in range(3)))
        clock.advance(10_000)
        assert log.apply_retention() == 0
        clock.advance(1)
        assert log.apply_retention() == 2


class TestBySize:
    @pytest.mark.parametrize(
        ("retention_bytes", "left"),
        [(-1, [0, 2, 4, 6]), (7 * SIZE, [0, 2, 4, 6]), (6 * SIZE, [0, 2, 4, 6]), (5 * SIZE, [2, 4, 6]), (SIZE, [6])],
    )
    def test_segments_go_while_enough_is_left(
        self, disk: MemoryDisk, clock: FixedClock, retention_bytes: int, left: list[int]
    ) -> None:
        log = log_with(disk, clock, retention_bytes=retention_bytes)
        log.apply_retention()
        assert base_offsets(log) == left

    def test_keeping_nothing_empties_the_log(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock, retention_bytes=0)
        log.apply_retention()
        assert base_offsets(log) == [7]


class TestLimits:
    def test_nothing_goes_that_is_not_replicated(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock, retention_bytes=0)
        log.advance_high_watermark(5)
        log.apply_retention()
        assert base_offsets(log) == [4, 6]

    def test_a_compacted_topic_forgets_only_by_log_start_offset(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock, retention_bytes=0, retention_ms=0, cleanup_policy=("compact",))
        clock.advance(60_000)
        assert log.apply_retention() == 0
        log.advance_log_start_offset(4)
        assert log.apply_retention() == 2

    def test_a_topic_can_be_both(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock, retention_bytes=0, cleanup_policy=("compact", "delete"))
        assert log.apply_retention() == 4


class TestDeleteRecords:
    def test_what_is_before_the_log_start_offset_cannot_be_read(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock)
        assert log.advance_log_start_offset(3)
        with pytest.raises(OffsetOutOfRange):
            log.read(2, ENOUGH, 7)
        assert offsets_in(log.read(3, ENOUGH, 7)) == [3]

    def test_only_whole_segments_leave_the_disk(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock)
        log.advance_log_start_offset(5)
        assert log.apply_retention() == 2
        assert base_offsets(log) == [4, 6]
        assert log.log_start_offset == 5

    def test_all_of_the_log_can_be_deleted(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock)
        log.advance_log_start_offset(7)
        assert log.apply_retention() == 3
        assert (log.log_start_offset, base_offsets(log)) == (7, [6])
        assert append(log, batch()) == 7

    def test_it_never_goes_back(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock)
        log.advance_log_start_offset(5)
        assert not log.advance_log_start_offset(5)
        assert not log.advance_log_start_offset(2)
        assert log.log_start_offset == 5

    def test_it_never_passes_the_high_watermark(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock)
        log.advance_high_watermark(4)
        with pytest.raises(OffsetOutOfRange):
            log.advance_log_start_offset(5)

    def test_the_epoch_that_spans_it_now_begins_there(self, disk: MemoryDisk) -> None:
        log = open_log(disk)
        append(log, batch(), batch(), leader_epoch=1)
        append(log, batch(), batch(), leader_epoch=2)
        log.advance_log_start_offset(3)
        assert log.epochs.entries == [(2, 3)]

    @pytest.mark.parametrize("clean", [True, False])
    def test_it_survives_a_restart_in_its_checkpoint(self, disk: MemoryDisk, clean: bool) -> None:
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, batch(), batch(), batch())
        log.advance_log_start_offset(2)
        if clean:
            directory.close()
        else:
            directory.checkpoint()
        reopened = open_directory(disk.survivor_of_kill()).logs[PARTITION]
        assert (reopened.log_start_offset, reopened.log_end_offset) == (2, 3)

    def test_producers_of_deleted_records_are_still_known(self, disk: MemoryDisk, clock: FixedClock) -> None:
        """Deleting records is no reason to take a batch twice (KIP-360)."""
        log = open_log(disk, KEEPING, clock)
        append(log, produced(7, 0), *(batch() for _ in range(5)))
        log.advance_log_start_offset(6)
        log.apply_retention()
        assert log.append_as_leader(produced(7, 0), 0).repeated

    def test_a_marker_in_what_was_deleted_holds_nobody_back(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = open_log(disk, KEEPING, clock)
        append(log, in_transaction(7, 0), marker(7, committed=True), *(batch() for _ in range(4)))
        log.advance_log_start_offset(4)
        assert log.last_stable_offset == 6


class TestFiles:
    def deleted(self, disk: MemoryDisk, clock: FixedClock) -> PartitionLog:
        log = log_with(disk, clock, file_delete_delay_ms=5000)
        log.advance_log_start_offset(4)
        log.apply_retention()
        return log

    def test_they_are_renamed_at_once(self, disk: MemoryDisk, clock: FixedClock) -> None:
        self.deleted(disk, clock)
        assert files_in(disk, ".deleted") == [
            "00000000000000000000.index.deleted",
            "00000000000000000000.log.deleted",
            "00000000000000000000.timeindex.deleted",
            "00000000000000000002.index.deleted",
            "00000000000000000002.log.deleted",
            "00000000000000000002.snapshot.deleted",
            "00000000000000000002.timeindex.deleted",
        ]
        assert files_in(disk, ".log") == ["00000000000000000004.log", "00000000000000000006.log"]

    def test_they_are_removed_after_file_delete_delay_ms(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = self.deleted(disk, clock)
        clock.advance(4999)
        log.remove_deleted()
        assert files_in(disk, ".deleted")
        clock.advance(1)
        log.remove_deleted()
        assert not files_in(disk, ".deleted")

    def test_a_reader_can_finish_meanwhile(self, disk: MemoryDisk, clock: FixedClock) -> None:
        log = log_with(disk, clock)
        part = log.read(0, ENOUGH, 7)
        log.advance_log_start_offset(4)
        log.apply_retention()
        assert offsets_in(part) == [0, 1]

    def test_closing_the_log_waits_no_longer(self, disk: MemoryDisk, clock: FixedClock) -> None:
        self.deleted(disk, clock).close()
        assert not files_in(disk, ".deleted")
        assert disk.open_files == 0

    def test_what_a_kill_leaves_is_removed_at_the_next_start(self, disk: MemoryDisk, clock: FixedClock) -> None:
        self.deleted(disk, clock)
        survivor = disk.survivor_of_kill()
        log = open_log(survivor, LogConfig(), clock)
        assert base_offsets(log) == [4, 6]
        assert not files_in(survivor, ".deleted")
