"""Segments that are full are flushed on their own: the recovery point follows them, and a crash does not scan them."""

import errno
from random import Random

import pytest

from ottla.log.files import read_file, replace_file
from ottla.log.partition_log import PartitionLog
from ottla.log.segment import Segment
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    base_offsets,
    batch,
    contiguous,
    files_in,
    headers_in,
    in_transaction,
    marker,
    open_directory,
    open_log,
    produced,
    rolling,
)

CONFIG = rolling(batches=4)
SEEDS = pytest.mark.parametrize("seed", range(20))


def flush_rolled(log: PartitionLog) -> None:
    flush = log.start_flush_of_rolled()
    flush.run()
    log.finish_flush(flush)


def test_the_recovery_point_moves_to_where_the_active_segment_begins() -> None:
    log = open_log(config=CONFIG)
    assert not log.has_unflushed_segments
    append(log, *(batch() for _ in range(10)))
    assert log.has_unflushed_segments
    flush_rolled(log)
    assert log.recovery_point == 8
    assert not log.has_unflushed_segments


@SEEDS
def test_what_is_before_it_survives_a_power_cut_with_its_indexes_and_producers(seed: int) -> None:
    disk = MemoryDisk(Random(seed))
    directory = open_directory(disk, CONFIG)
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, in_transaction(6, 0), marker(6, committed=False), produced(5, 0))
    append(log, *(batch(timestamp=NOW_MS + number) for number in range(7)))
    end = log.active.base_offset
    flush_rolled(log)
    directory.checkpoint()
    scanned: list[Segment] = []
    survivor = disk.survivor(Random(seed))
    recovered = open_log(survivor, CONFIG, recovery_point=end, progress=scanned.append)
    assert recovered.log_end_offset >= end
    assert contiguous(headers_in(recovered))
    assert [segment.base_offset for segment in scanned] == [end]
    assert recovered.aborted_transactions(0, end) == log.aborted_transactions(0, end)
    assert recovered.producers.get(5) is not None
    for ours, theirs in zip(log.segments[:-1], recovered.segments, strict=False):
        assert ours.max_timestamp == theirs.max_timestamp
        assert len(ours.offset_index) == len(theirs.offset_index)
    assert open_directory(survivor, CONFIG).logs[PARTITION].recovery_point == end


def test_damage_in_the_oldest_segment_does_not_cost_the_log() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk, CONFIG)
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, *(batch() for _ in range(12)))
    flush_rolled(log)
    directory.checkpoint()
    killed = disk.survivor_of_kill()
    path = f"{DIRECTORY}/{0:020d}.log"
    content = bytearray(read_file(killed, path))
    content[70] ^= 1
    replace_file(killed, path, bytes(content))
    assert open_directory(killed, CONFIG).logs[PARTITION].log_end_offset == 12


def test_appends_and_rolls_go_on_meanwhile() -> None:
    log = open_log(config=CONFIG)
    append(log, *(batch() for _ in range(5)))
    flush = log.start_flush_of_rolled()
    append(log, *(batch() for _ in range(5)))
    flush.run()
    log.finish_flush(flush)
    assert log.recovery_point == 4
    assert log.has_unflushed_segments


def test_a_truncation_meanwhile_leaves_the_recovery_point_where_it_is() -> None:
    log = open_log(config=CONFIG)
    append(log, *(batch() for _ in range(10)))
    flush = log.start_flush_of_rolled()
    log.truncate_to(2)
    flush.run()
    log.finish_flush(flush)
    assert log.recovery_point <= log.log_end_offset == 2


@pytest.mark.parametrize("when", ["before it runs", "after it ran"])
def test_retention_may_take_the_segments_meanwhile_and_their_files_stay_until_it_is_over(when: str) -> None:
    disk, clock = MemoryDisk(), FixedClock(NOW_MS)
    log = open_log(disk, CONFIG, clock)
    append(log, *(batch() for _ in range(10)))
    log.segments[0].close()  # So that a file is looked for by its name.
    flush = log.start_flush_of_rolled()
    if when == "after it ran":
        flush.run()
    log.advance_log_start_offset(8)
    assert log.apply_retention() == 2
    clock.advance(log.config.file_delete_delay_ms)
    assert log.remove_deleted()
    assert len(files_in(disk, ".log.deleted")) == 2
    if when == "before it runs":
        flush.run()
    log.finish_flush(flush)
    assert (base_offsets(log), log.recovery_point) == ([8], 8)
    assert not log.remove_deleted()
    assert files_in(disk, ".deleted") == []


def test_a_log_may_be_released_while_a_worker_removes_its_old_files() -> None:
    """As when a directory fails: the loop lets go of its logs at once, whatever the workers do."""

    class ReleasedMeanwhile(MemoryDisk):
        def remove(self, path: str) -> None:
            super().remove(path)
            log.release()

    disk, clock = ReleasedMeanwhile(), FixedClock(NOW_MS)
    log = open_log(disk, CONFIG, clock)
    append(log, *(batch() for _ in range(10)))
    log.advance_log_start_offset(8)
    assert log.apply_retention() == 2
    clock.advance(log.config.file_delete_delay_ms)
    assert not log.remove_deleted()


def test_one_that_fails_promises_nothing_and_lets_go_of_the_segments() -> None:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    append(log, *(batch() for _ in range(10)))
    flush = log.start_flush_of_rolled()
    disk.fail_next("sync file", errno.EIO)
    with pytest.raises(OSError, match="injected"):
        flush.run()
    flush.end()
    assert log.recovery_point == 0
    assert [segment.in_use for segment in log.segments] == [0, 0, 0]


def test_an_index_that_a_full_disk_refused_at_the_roll_is_written_by_the_flush() -> None:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    append(log, *(batch() for _ in range(4)))
    disk.fail_at(disk.calls + 1, errno.ENOSPC)
    log.roll()
    assert disk.size(log.segments[0].path(".index")) != 3 * 8
    flush_rolled(log)
    assert disk.size(log.segments[0].path(".index")) == 3 * 8
    assert log.recovery_point == 4
