"""A disk that is full or broken for one call: what was acknowledged stays readable, and the log goes on.

Each case plays the same appends, flushes and rolls, and lets one call to the disk fail. An operation that fails has not
happened and is tried again, as a producer would.
"""

import errno
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from ottla.base.ids import TopicPartition
from ottla.log.directory import LogDirectory
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.testing.history import BatchSource
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    contiguous,
    headers_in,
    offsets_in,
    open_directory,
    open_log,
    produced,
)

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_index_bytes=80, file_delete_delay_ms=0)
ENOUGH = 1 << 20


def insist(operation: Callable[[], object]) -> int:
    """Repeats what fails; returns how often it did."""
    failures = 0
    while True:
        try:
            operation()
        except OSError:
            failures += 1
            assert failures < 5
        else:
            return failures


def play(log: PartitionLog, seed: int) -> tuple[list[bytes], int]:
    """Forty appends with some flushes; returns what was acknowledged, and how many operations failed."""
    source = BatchSource(Random(seed))
    acknowledged: list[bytes] = []
    failures = 0
    for number in range(40):
        data = source.next_batch()
        failures += insist(lambda data=data: append(log, data))  # type: ignore[misc]
        acknowledged.append(bytes(data))
        if number % 7 == 6:
            failures += insist(log.flush)
    return acknowledged, failures


def all_bytes(log: PartitionLog) -> bytes:
    return b"".join(segment.file.read_at(0, segment.size) for segment in log.segments)


def calls_of_a_play(seed: int) -> tuple[int, int]:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    before = disk.calls
    play(log, seed)
    return before, disk.calls


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("seed", range(2))
def test_one_failed_call_loses_nothing_that_was_acknowledged(seed: int, error: int) -> None:
    first, last = calls_of_a_play(seed)
    assert last - first > 100
    seen = 0
    for call in range(first + 1, last + 1):
        disk = MemoryDisk(Random(call))
        log = open_log(disk, CONFIG)
        disk.fail_at(call, error)
        acknowledged, failures = play(log, seed)
        seen += failures
        assert all_bytes(log) == b"".join(acknowledged), f"call {call}"
        assert contiguous(headers_in(log))
        for header in headers_in(log):
            assert header.base_offset in offsets_in(log.read(header.base_offset, ENOUGH, log.log_end_offset))
    assert seen > 0, "no failure reached an operation, so nothing was tested"


def test_a_full_disk_refuses_appends_until_there_is_space_again() -> None:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    append(log, produced(7, 0), batch())
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    for _ in range(3):
        with pytest.raises(OSError, match="injected"):
            log.append_as_leader(produced(7, 1), 0)
    assert log.log_end_offset == 2
    assert offsets_in(log.read(0, ENOUGH, 2)) == [0, 1]
    disk.repair()
    again = log.append_as_leader(produced(7, 1), 0)
    assert (again.base_offset, again.repeated) == (2, False), "what failed was not noted as taken"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_flush_that_failed_promises_nothing(error: int) -> None:
    """The recovery point stays where it was, wherever in the flush the disk failed."""
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    append(log, *(batch(b"x" * 300) for _ in range(5)))
    before = disk.calls
    log.flush()
    steps = disk.calls - before
    for step in range(1, steps + 1):
        disk = MemoryDisk()
        log = open_log(disk, CONFIG)
        append(log, *(batch(b"x" * 300) for _ in range(5)))
        disk.fail_at(disk.calls + step, error)
        with pytest.raises(OSError, match="injected"):
            log.flush()
        assert log.recovery_point == 0


def test_a_partition_that_could_not_be_created_can_be_created_later() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    before = disk.calls
    directory.create(TopicPartition("first", 0), TOPIC_ID)
    for step in range(1, disk.calls - before + 1):
        partition = TopicPartition("later", step)
        disk.fail_at(disk.calls + step, errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            directory.create(partition, TOPIC_ID)
        assert append(directory.create(partition, TOPIC_ID), batch()) == 0


def test_a_checkpoint_that_failed_is_written_by_the_next() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, batch(), batch())
    log.flush()
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    with pytest.raises(OSError, match="injected"):
        directory.checkpoint()
    disk.repair()
    directory.checkpoint()
    assert open_directory(disk.survivor_of_kill()).logs[PARTITION].recovery_point == 2


@pytest.mark.parametrize("seed", range(20))
def test_what_was_flushed_is_there_after_the_disk_died_and_came_back(seed: int) -> None:
    """The owner takes the directory offline; a later start finds what a power cut would have left."""
    chance = Random(seed)
    disk = MemoryDisk(chance)
    directory: LogDirectory = open_directory(disk, CONFIG)
    log = directory.create(PARTITION, TOPIC_ID)
    source = BatchSource(chance, now_ms=NOW_MS)
    disk.fail_from(disk.calls + chance.randint(1, 60), errno.EIO)
    flushed = 0
    with suppress(OSError):
        while True:
            append(log, source.next_batch())
            log.flush()
            flushed = log.log_end_offset
    directory.abandon()
    recovered = open_directory(disk.survivor(chance), CONFIG).logs.get(PARTITION)
    if recovered is None:
        assert flushed == 0, "a partition is there after its first flush at the latest"
        return
    assert recovered.log_end_offset >= flushed
    assert contiguous(headers_in(recovered))
