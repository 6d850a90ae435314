"""Directories that fail, were left half open, or hold files that cannot be read: one directory's trouble is its own."""

import errno
from pathlib import Path
from random import Random

import pytest

from ottla.log import file_names
from ottla.log.directory import LogDirectory
from ottla.log.disk import OsDisk
from ottla.log.errors import DirectoryInUse
from ottla.log.files import make_dirs, replace_file
from ottla.log.log_dirs import LogDirs
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    open_directory,
    rolling,
)


def stopped_cleanly(disk: MemoryDisk) -> None:
    directory = open_directory(disk)
    append(directory.create(PARTITION, TOPIC_ID), batch())
    directory.close()


class TestFilesThatCannotBeRead:
    """Each costs what it was good for, and not the start."""

    @pytest.fixture
    def disk(self) -> MemoryDisk:
        disk = MemoryDisk()
        stopped_cleanly(disk)
        return disk

    @pytest.mark.parametrize(
        "name", [file_names.RECOVERY_POINTS, file_names.LOG_START_OFFSETS, file_names.HIGH_WATERMARKS]
    )
    def test_a_damaged_checkpoint_is_as_good_as_none(self, disk: MemoryDisk, name: str) -> None:
        replace_file(disk, f"/data/{name}", b"garbage")
        directory = open_directory(disk)
        assert directory.logs[PARTITION].log_end_offset == 1
        assert [warning for warning in directory.warnings if name in warning]

    def test_the_marker_of_a_clean_stop_counts_whatever_is_in_it(self, disk: MemoryDisk) -> None:
        replace_file(disk, f"/data/{file_names.CLEAN_SHUTDOWN}", b"garbage")
        directory = open_directory(disk)
        assert (directory.was_clean, directory.broker_epoch) == (True, -1)


class TestCleanStops:
    @pytest.mark.parametrize("seed", range(20))
    def test_one_is_not_remembered_by_a_start_that_was_killed_at_once(self, seed: int) -> None:
        """The first start removes the marker and dies; the second finds none, works, and the power fails."""
        disk = MemoryDisk(Random(seed))
        stopped_cleanly(disk)
        disk.crash_at(disk.calls + 2)
        with pytest.raises(Crashed):
            open_directory(disk)
        killed = disk.survivor_of_kill()
        append(open_directory(killed).logs[PARTITION], batch())
        assert not open_directory(killed.survivor(Random(seed))).was_clean

    def test_one_that_fails_at_any_call_says_that_it_was_none_unless_all_is_durable(self) -> None:
        for call in range(1, 100):
            disk = MemoryDisk(Random(call))
            directory = open_directory(disk, rolling(batches=2))
            log = directory.create(PARTITION, TOPIC_ID)
            log.flush()
            append(log, *(batch() for _ in range(5)))
            disk.fail_at(disk.calls + call, errno.EIO)
            try:
                directory.close()
            except OSError:
                directory.abandon()
            else:
                break
            assert disk.open_files == 0
            again = open_directory(disk.survivor(Random(call)), rolling(batches=2))
            assert again.logs[PARTITION].log_end_offset == 5 or not again.was_clean
        assert call > 20


class TestFailedDirectories:
    def test_one_that_is_taken_offline_is_closed_and_not_written_to(self) -> None:
        disk = MemoryDisk()
        dirs = LogDirs(disk, ["/data"], FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
        dirs.open_all()
        append(dirs.create(PARTITION, TOPIC_ID), batch(), batch())
        before = disk.calls
        disk.fail_from(before + 1, errno.EIO)
        dirs.take_offline("/data", OSError(errno.EIO, "Input/output error"))
        assert disk.calls == before
        assert disk.open_files == 0

    def test_an_opening_that_fails_leaves_no_file_open(self) -> None:
        for call in range(1, 100):
            disk = MemoryDisk(Random(call))
            directory = open_directory(disk, rolling(batches=2))
            append(directory.create(PARTITION, TOPIC_ID), *(batch() for _ in range(5)))
            killed = disk.survivor_of_kill()
            killed.fail_at(call, errno.EIO)
            dirs = LogDirs(killed, ["/data"], FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
            dirs.open_all()
            if dirs.online:
                break
            assert killed.open_files == 0
            assert not killed.locks
        assert call > 5

    @pytest.mark.parametrize("seed", range(10))
    def test_a_directory_whose_name_could_not_be_synced_is_not_taken_for_durable_later(self, seed: int) -> None:
        disk = MemoryDisk(Random(seed))
        disk.fail_next("sync_dir", errno.EIO)
        with pytest.raises(OSError, match="injected"):
            make_dirs(disk, "/data")
        make_dirs(disk, "/data")
        assert disk.survivor(Random(seed)).is_dir("/data")


class TestRealFiles:
    def test_a_closed_file_does_not_read_from_another_that_has_its_descriptor(self, tmp_path: Path) -> None:
        disk = OsDisk()
        (tmp_path / "closed").write_bytes(b"closed")
        (tmp_path / "secret").write_bytes(b"secret")
        closed = disk.open(str(tmp_path / "closed"))
        closed.close()
        other = disk.open(str(tmp_path / "secret"))
        with pytest.raises(OSError, match="Bad file descriptor"):
            closed.read_at(0, 6)
        other.close()

    def test_a_directory_is_locked_against_the_same_process_too(self, tmp_path: Path) -> None:
        """The system's record locks are between processes only, and closing any descriptor would let go of them."""
        first = LogDirectory(OsDisk(), str(tmp_path), FixedClock(), config_of=lambda topic: CONFIG)
        for _ in range(2):
            with pytest.raises(DirectoryInUse):
                LogDirectory(OsDisk(), str(tmp_path), FixedClock(), config_of=lambda topic: CONFIG)
        first.close()
        LogDirectory(OsDisk(), str(tmp_path), FixedClock(), config_of=lambda topic: CONFIG).close()
