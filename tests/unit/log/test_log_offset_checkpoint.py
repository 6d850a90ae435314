"""Checkpoints that a disk thread writes while the owner of a log cuts it: they take turns, and lowered offsets win."""

import errno
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.log import checkpoint, file_names
from ottla.log.checkpoint import read_offsets
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import PARTITION, TOPIC_ID, append, batch, open_directory, rolling

OTHER = TopicPartition("returns", 3)


class Meeting:
    """What two threads do at the same moment, the same in every run.

    The first is stopped at a call to the disk until the second is over, or has to wait for the first.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, disk: MemoryDisk) -> None:
        self._met = met = threading.Event()
        self._disk = disk

        class Lock:
            def __init__(self) -> None:
                self._lock = threading.Lock()

            def __enter__(self) -> None:
                if not self._lock.acquire(blocking=False):
                    met.set()
                    self._lock.acquire()

            def __exit__(self, *_: object) -> None:
                self._lock.release()

        monkeypatch.setattr(checkpoint, "Lock", Lock)

    def run(self, first: Callable[[], Any], stops_at: str, second: Callable[[], Any]) -> list[BaseException]:
        """Stops the first where it renames this file; returns what the two raised."""
        rename, problems = self._disk.rename, []

        def run(function: Callable[[], Any], over: Callable[[], Any] = lambda: None) -> None:
            try:
                function()
            except Exception as problem:
                problems.append(problem)
            over()

        def stopping_rename(source: str, target: str) -> None:
            if threading.current_thread() is threads[0] and target.endswith(stops_at) and not self._met.is_set():
                threads[1].start()
                self._met.wait()
            rename(source, target)

        threads = [
            threading.Thread(target=run, args=(first,)),
            threading.Thread(target=run, args=(second, self._met.set)),
        ]
        self._disk.rename = stopping_rename  # type: ignore[method-assign]
        threads[0].start()
        for thread in threads:
            thread.join()
        self._disk.rename = rename  # type: ignore[method-assign]
        return problems


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch, disk: MemoryDisk) -> Meeting:
    return Meeting(monkeypatch, disk)


def written(disk: MemoryDisk) -> tuple[LogDirectory, PartitionLog]:
    """A log of eight records, all of them flushed."""
    directory = open_directory(disk, rolling(batches=2))
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, *(batch() for _ in range(8)))
    log.flush()
    return directory, log


def saved(disk: MemoryDisk, name: str = file_names.RECOVERY_POINTS) -> dict[TopicPartition, int]:
    return read_offsets(disk, f"/data/{name}")


def test_a_log_is_cut_while_a_disk_thread_writes_checkpoints(meeting: Meeting, disk: MemoryDisk) -> None:
    directory, log = written(disk)
    directory.checkpoint()
    assert meeting.run(directory.checkpoint, file_names.RECOVERY_POINTS, lambda: log.truncate_to(1)) == []
    assert saved(disk) == {PARTITION: 1}


def test_a_log_is_cut_before_a_recovery_point_beyond_the_cut_was_ever_saved(meeting: Meeting, disk: MemoryDisk) -> None:
    directory, log = written(disk)
    assert meeting.run(directory.checkpoint, file_names.RECOVERY_POINTS, lambda: log.truncate_to(1)) == []
    assert saved(disk).get(PARTITION, 0) <= 1


def test_a_checkpoint_that_is_written_right_after_one_was_lowered_says_nothing_of_what_is_about_to_go(
    disk: MemoryDisk,
) -> None:
    directory, log = written(disk)
    log.advance_log_start_offset(5)
    directory.checkpoint()
    lower = directory._before_truncation
    told = []

    def and_checkpoint(partition: TopicPartition, offset: int) -> None:
        lower(partition, offset)
        directory.checkpoint()  # Another thread's turn comes here, before anything of the log is cut.
        told.append((saved(disk)[PARTITION], saved(disk, file_names.LOG_START_OFFSETS).get(PARTITION, 0)))

    directory._before_truncation = and_checkpoint  # type: ignore[method-assign]
    log.truncate_to(3)
    assert told == [(3, 3)]
    assert log.log_start_offset == 3


def test_what_one_thread_forgets_and_another_lowers_is_both_so(meeting: Meeting, disk: MemoryDisk) -> None:
    directory, log = written(disk)
    append(directory.create(OTHER, TOPIC_ID), batch())
    directory.flush()
    problems = meeting.run(lambda: directory._forget(OTHER), file_names.RECOVERY_POINTS, lambda: log.truncate_to(1))
    assert (problems, saved(disk)) == ([], {PARTITION: 1})


def test_how_far_a_log_is_clean_is_not_saved_when_it_was_cut_meanwhile(meeting: Meeting, disk: MemoryDisk) -> None:
    directory, log = written(disk)
    directory.save_cleaner_offset(PARTITION, 4)
    problems = meeting.run(
        lambda: directory.save_cleaner_offset(PARTITION, 6, still=lambda: not log.cut_count),
        file_names.CLEANER_OFFSETS,
        lambda: log.truncate_to(2),
    )
    assert (problems, directory.cleaner_offset(PARTITION)) == ([], 2)
    directory.save_cleaner_offset(PARTITION, 6, still=lambda: not log.cut_count)
    assert saved(disk, file_names.CLEANER_OFFSETS) == {PARTITION: 2}


def test_a_cut_that_the_disk_has_refused_is_made_with_checkpoints_that_are_lowered(disk: MemoryDisk) -> None:
    directory, log = written(disk)
    directory.checkpoint()
    disk.fail_next("write", errno.ENOSPC)
    with pytest.raises(OSError, match="injected"):
        log.truncate_to(3)
    assert (log.recovery_point, log.log_end_offset) == (8, 8)
    log.truncate_to(3)
    assert saved(disk) == {PARTITION: 3}


def test_a_log_start_offset_is_as_it_was_when_the_disk_refuses_a_cut(disk: MemoryDisk) -> None:
    directory, log = written(disk)
    log.advance_log_start_offset(5)
    directory.checkpoint()
    disk.fail_next("write", errno.ENOSPC)
    with pytest.raises(OSError, match="injected"):
        log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset) == (5, 8)
    log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
