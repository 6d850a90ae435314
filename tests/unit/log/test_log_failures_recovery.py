"""What recovery drops stays dropped, and what a compacted topic's followers leave is a log like any other."""

from random import Random

import pytest

from ottla.log import file_names
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    PARTITION,
    TOPIC_ID,
    append,
    at_offset,
    base_offsets,
    batch,
    headers_in,
    offsets_in,
    open_directory,
    rolling,
)

COMPACTED = LogConfig(cleanup_policy=("compact",), index_interval_bytes=0)
ENOUGH = 1 << 20
SEEDS = pytest.mark.parametrize("seed", range(20))


def reopened(disk: MemoryDisk, config: LogConfig = CONFIG) -> PartitionLog:
    return open_directory(disk, config).logs[PARTITION]


def cut(disk: MemoryDisk, log: PartitionLog, slot: int, size: int) -> None:
    """The end of a segment is lost, as a power cut can do it."""
    file = disk.open(f"{log.directory}/{file_names.file_name(log.segments[slot].base_offset, file_names.LOG)}")
    file.truncate(size)
    file.sync()
    file.close()


@SEEDS
@pytest.mark.parametrize("config", [CONFIG, COMPACTED], ids=["deleted", "compacted"])
def test_segments_that_were_dropped_do_not_come_back_behind_new_batches(config: LogConfig, seed: int) -> None:
    """The first segment lost half a batch, so the second went. New batches end just where that one began."""
    disk = MemoryDisk(Random(seed))
    log = open_directory(disk, config).create(PARTITION, TOPIC_ID)
    append(log, batch(b"old"), batch(b"old"))
    log.roll()
    append(log, batch(b"old"))
    disk.sync_dir(log.directory)
    log.active.file.sync()
    cut(disk, log, 0, log.segments[0].size - 5)
    damaged = disk.survivor_of_kill()
    recovered = reopened(damaged, config)
    assert recovered.log_end_offset == 1
    append(recovered, batch(b"new"))
    assert reopened(damaged.survivor(Random(seed)), config).log_end_offset <= 2


@SEEDS
def test_segments_that_a_killed_truncation_had_renamed_do_not_come_back(seed: int) -> None:
    disk = MemoryDisk(Random(seed))
    log = open_directory(disk, COMPACTED).create(PARTITION, TOPIC_ID)
    append(log, batch(b"old"), batch(b"old"))
    log.roll()
    append(log, batch(b"old"))
    log.flush()
    disk.crash_at(disk.calls + 5)
    with pytest.raises(Crashed):
        log.truncate_to(1)
    killed = disk.survivor_of_kill()
    log = reopened(killed, COMPACTED)
    assert base_offsets(log) == [0]
    append(log, batch(b"new"), batch(b"new"))
    survivor = reopened(killed.survivor(Random(seed)), COMPACTED)
    offsets = [header.base_offset for header in headers_in(survivor)]
    assert offsets == list(range(len(offsets)))
    assert len(survivor.segments) == 1


def test_a_segment_that_begins_before_the_one_before_it_ends_is_dropped() -> None:
    """Gaps are nothing special to a compacted topic, but repetitions are."""
    disk = MemoryDisk()
    log = open_directory(disk, COMPACTED).create(PARTITION, TOPIC_ID)
    log.append_as_follower(at_offset(0, batch()))
    log.roll(10)
    log.append_as_follower(at_offset(10, batch()))
    first = log.segments[0].file
    first.write_at(first.size(), at_offset(12, batch()))
    recovered = reopened(disk.survivor_of_kill(), COMPACTED)
    assert base_offsets(recovered) == [0]
    assert recovered.log_end_offset == 13


class TestFollowersOfCompactedTopics:
    """The leader's cleaner has taken some offsets away, and its followers leap over them."""

    @pytest.fixture
    def disk(self) -> MemoryDisk:
        return MemoryDisk()

    @pytest.fixture
    def log(self, disk: MemoryDisk) -> PartitionLog:
        """Offsets 0, 10 and 20, a segment each: every leap comes with a roll."""
        config = rolling(COMPACTED, batches=1)
        log = open_directory(disk, config).create(PARTITION, TOPIC_ID)
        for offset in (0, 10, 20):
            log.append_as_follower(at_offset(offset, batch()))
        return log

    def test_a_leap_at_a_roll_leaves_no_gap_between_segments(self, log: PartitionLog) -> None:
        assert base_offsets(log) == [0, 1, 11]
        assert offsets_in(log.read(5, ENOUGH, 21)) == [10]

    def test_nothing_is_lost_by_an_unclean_stop_though_the_topic_is_no_longer_compacted(
        self, disk: MemoryDisk, log: PartitionLog
    ) -> None:
        log.flush()
        recovered = reopened(disk.survivor_of_kill(), CONFIG)
        assert recovered.log_end_offset == 21
        assert [header.base_offset for header in headers_in(recovered)] == [0, 10, 20]

    def test_a_leap_too_far_for_one_segment_begins_another_where_it_lands(
        self, disk: MemoryDisk, log: PartitionLog
    ) -> None:
        far = 21 + (1 << 31)
        log.append_as_follower(at_offset(far, batch()))
        assert base_offsets(log)[-1] == far
        assert reopened(disk.survivor_of_kill(), COMPACTED).log_end_offset == far + 1
