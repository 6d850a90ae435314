"""A disk that cannot read what it holds: the call fails, and nothing is harmed by it."""

import errno
from collections.abc import Callable
from random import Random

import pytest

from ottla.log.directory import LogDirectory
from ottla.log.log_dirs import LogDirs
from ottla.log.partition_log import PartitionLog
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    bytes_of,
    contiguous,
    headers_in,
    in_transaction,
    marker,
    offsets_in,
    open_directory,
    produced,
    rolling,
)

ENOUGH = 1 << 20
CONFIG = rolling(batches=4)


def filled(disk: MemoryDisk) -> LogDirectory:
    """Batches of producers, with an aborted transaction, in some segments."""
    directory = open_directory(disk, CONFIG)
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, produced(5, 0), in_transaction(6, 0), marker(6, committed=False), leader_epoch=1)
    append(log, *(batch(timestamp=NOW_MS + number) for number in range(3, 9)), leader_epoch=2)
    append(log, produced(5, 1), leader_epoch=4)
    return directory


def told(log: PartitionLog) -> tuple[object, ...]:
    """What the log says about itself without looking at its files."""
    return (
        [(segment.base_offset, segment.size) for segment in log.segments],
        (log.log_start_offset, log.last_stable_offset, log.high_watermark, log.log_end_offset, log.recovery_point),
        log.epochs.entries,
        sorted(log.producers.records()),
    )


@pytest.mark.parametrize(
    "reading",
    [
        lambda log: bytes_of(log.read(1, ENOUGH, 10)),
        lambda log: log.offset_for_timestamp(NOW_MS + 5),
        lambda log: log.offset_of_max_timestamp(),
        lambda log: log.aborted_transactions(0, 10),
    ],
    ids=["by offset", "by time", "latest", "aborted transactions"],
)
def test_a_reader_is_told_and_can_read_again(reading: Callable[[PartitionLog], object]) -> None:
    disk = MemoryDisk()
    filled(disk).close()
    wanted: object = None
    for read in range(1, 50):
        directory = open_directory(disk, CONFIG)
        log = directory.logs[PARTITION]
        before = told(log)
        disk.fail_read_at(disk.reads + read, errno.EIO)
        try:
            reading(log)
        except OSError:
            assert told(log) == before
            disk.repair()
            wanted = wanted or reading(log)
            assert reading(log) == wanted
        else:
            break
        directory.close()
    assert read > 1


def test_appends_go_on_beside_reads_that_fail() -> None:
    disk = MemoryDisk()
    log = filled(disk).logs[PARTITION]
    disk.fail_read_at(disk.reads + 1, errno.EIO, times=100)
    with pytest.raises(OSError, match="injected at read"):
        bytes_of(log.read(0, ENOUGH, 10))
    assert append(log, batch()) == 10
    disk.repair()
    assert offsets_in(log.read(10, ENOUGH, 11)) == [10]


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill"])
def test_a_start_that_cannot_read_fails_and_the_next_one_finds_everything(clean: bool) -> None:
    """A read that fails is not taken for the end of the log, nor a file for damaged that only could not be read."""
    for read in range(1, 200):
        disk = MemoryDisk(Random(read))
        directory = filled(disk)
        before = told(directory.logs[PARTITION])[1:]
        if clean:
            directory.close()
        else:
            disk = disk.survivor_of_kill()
        disk.reads = 0
        disk.fail_read_at(read, errno.EIO)
        dirs = LogDirs(disk, ["/data"], FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
        dirs.open_all()
        if dirs.online:
            break
        assert disk.open_files == 0
        log = open_directory(disk, CONFIG).logs[PARTITION]
        assert log.log_end_offset == 10
        assert contiguous(headers_in(log))
        assert told(log)[2:] == before[1:]
    assert read > 5


def test_a_truncation_that_cannot_read_is_finished_by_the_next_append() -> None:
    for read in range(1, 100):
        disk = MemoryDisk(Random(read))
        log = filled(disk).logs[PARTITION]
        disk.fail_read_at(disk.reads + read, errno.EIO)
        try:
            log.truncate_to(4)
        except OSError:
            log.truncate_to(4)
        else:
            break
        assert append(log, batch(), leader_epoch=5) == 4
        assert contiguous(headers_in(log))
        assert log.epochs.entries == [(1, 0), (2, 3), (5, 4)]
        assert log.aborted_transactions(0, 5)
    assert read > 1
