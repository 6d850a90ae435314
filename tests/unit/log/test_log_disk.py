"""The real disk keeps the port's promises, and the lock keeps other processes out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.log.directory import LogDirectory
from ottla.log.disk import MANY_PATHS, OsDisk
from ottla.log.errors import DirectoryInUse
from ottla.testing.clock import FixedClock
from tests.unit.log.partition_logs import CONFIG, NOW_MS, PARTITION, TOPIC_ID, append, batch, offsets_in

# Takes the lock, says so, and holds it until its input ends.
HOLDER = """
import sys
from ottla.log.disk import OsDisk
lock = OsDisk().lock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def disk() -> OsDisk:
    return OsDisk()


class TestFiles:
    def test_what_is_written_is_read(self, disk: OsDisk, tmp_path: Path) -> None:
        file = disk.open(str(tmp_path / "file"), create=True)
        file.write_at(0, b"hello")
        file.write_at(5, memoryview(bytearray(b" world")))
        file.write_at(20, b"!")
        assert file.read_at(0, 11) == b"hello world"
        assert file.read_at(11, 100) == bytes(9) + b"!"
        assert file.read_at(100, 5) == b""
        assert file.size() == 21
        buffer = bytearray(8)
        assert file.read_into(17, buffer) == 4
        assert bytes(buffer[:4]) == bytes(3) + b"!"
        file.truncate(5)
        assert file.read_at(0, 100) == b"hello"
        file.sync()
        file.close()

    def test_it_is_made_only_if_asked_for(self, disk: OsDisk, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            disk.open(str(tmp_path / "file"))
        disk.open(str(tmp_path / "file"), create=True).close()
        disk.open(str(tmp_path / "file")).close()

    def test_opening_does_not_empty_it(self, disk: OsDisk, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"content")
        file = disk.open(str(tmp_path / "file"), create=True)
        assert file.read_at(0, 100) == b"content"
        file.close()

    def test_its_descriptor_is_for_sendfile_and_is_not_inherited(self, disk: OsDisk, tmp_path: Path) -> None:
        file = disk.open(str(tmp_path / "file"), create=True)
        assert os.fstat(file.fileno()).st_size == 0
        assert not os.get_inheritable(file.fileno())
        file.close()


class TestDirectories:
    def test_names_come_sorted(self, disk: OsDisk, tmp_path: Path) -> None:
        for name in ("b", "c", "a"):
            (tmp_path / name).touch()
        assert disk.list_dir(str(tmp_path)) == ["a", "b", "c"]

    def test_a_rename_replaces(self, disk: OsDisk, tmp_path: Path) -> None:
        (tmp_path / "old").write_bytes(b"old")
        (tmp_path / "new").write_bytes(b"new")
        disk.rename(str(tmp_path / "new"), str(tmp_path / "old"))
        assert (tmp_path / "old").read_bytes() == b"new"
        assert disk.list_dir(str(tmp_path)) == ["old"]

    def test_the_rest(self, disk: OsDisk, tmp_path: Path) -> None:
        path = str(tmp_path / "a" / "b")
        disk.make_dirs(path)
        disk.make_dirs(path)
        disk.sync_dir(path)
        assert disk.is_dir(path)
        assert disk.exists(path)
        (tmp_path / "file").write_bytes(b"12345")
        os.utime(tmp_path / "file", ns=(0, 4_711_000_000))
        assert disk.size(str(tmp_path / "file")) == 5
        assert disk.modified_ms(str(tmp_path / "file")) == 4711
        assert not disk.is_dir(str(tmp_path / "file"))
        disk.remove(str(tmp_path / "file"))
        disk.remove_dir(path)
        assert not disk.exists(path)
        with pytest.raises(OSError, match="not empty"):
            disk.remove_dir(str(tmp_path))
        space = disk.space(str(tmp_path))
        assert 0 < space.usable_bytes <= space.total_bytes


class TestSyncingAll:
    @pytest.mark.parametrize("count", [2, MANY_PATHS + 1], ids=["few", "many"])
    def test_files_and_directories_are_synced_alike(self, disk: OsDisk, tmp_path: Path, count: int) -> None:
        paths = [tmp_path / str(number) for number in range(count)]
        for path in paths:
            path.write_bytes(b"content")
        disk.sync_all([*map(str, paths), str(tmp_path)])

    @pytest.mark.parametrize("count", [2, MANY_PATHS + 1], ids=["few", "many"])
    def test_one_that_is_not_there_is_an_error(self, disk: OsDisk, tmp_path: Path, count: int) -> None:
        with pytest.raises(FileNotFoundError):
            disk.sync_all([*[str(tmp_path)] * count, str(tmp_path / "missing")])

    def test_few_do_not_wait_for_what_others_write_to_the_file_system(
        self, disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ottla.log.disk.sync_file_system", pytest.fail)
        disk.sync_all([str(tmp_path)] * (MANY_PATHS - 1))

    @pytest.mark.parametrize("can_sync_file_systems", [True, False])
    def test_many_are_synced_with_their_file_system_if_that_can_be(
        self, disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_sync_file_systems: bool
    ) -> None:
        synced: list[int] = []
        monkeypatch.setattr("ottla.log.disk.sync_file_system", lambda fd: can_sync_file_systems)
        monkeypatch.setattr(os, "fsync", synced.append)
        lock = disk.lock(str(tmp_path / ".lock"))
        disk.sync_all([str(tmp_path)] * MANY_PATHS)
        lock.release()
        assert len(synced) == (0 if can_sync_file_systems else MANY_PATHS)

    def test_a_file_system_is_synced_by_a_descriptor_that_is_older_than_what_was_written(
        self, disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that is opened for it is not told of a write that failed before, if somebody else has been told already.

        Nor is one that another directory has used: what failed is reported once to each.
        """
        asked: list[tuple[int, int]] = []
        monkeypatch.setattr("ottla.log.disk.sync_file_system", lambda fd: bool(asked.append(_file_of(fd)) or True))
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        paths = []
        locks = []
        for name in ("one", "two"):
            (tmp_path / name / "orders-0").mkdir(parents=True)
            locks.append(disk.lock(str(tmp_path / name / ".lock")))
            paths += [str(tmp_path / name / "orders-0"), str(tmp_path / name)]
        disk.sync_all(paths * MANY_PATHS)
        assert asked == [_file_of_path(tmp_path / name / ".lock") for name in ("one", "two")]
        locks.pop().release()
        disk.sync_all(paths * MANY_PATHS)
        assert len(asked) == 2, "nothing that is open is as old as what is in the second"
        assert len(synced) == len(paths) * MANY_PATHS
        locks.pop().release()

    def test_a_partition_on_another_disk_is_not_synced_with_its_directory(
        self, disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        elsewhere = Path("/dev/shm")
        if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
            elsewhere = Path("/proc")
        monkeypatch.setattr("ottla.log.disk.sync_file_system", pytest.fail)
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        (tmp_path / "orders-0").symlink_to(elsewhere)
        lock = disk.lock(str(tmp_path / ".lock"))
        disk.sync_all([str(tmp_path / "orders-0")] * MANY_PATHS)
        lock.release()
        assert len(synced) == MANY_PATHS


class TestLock:
    @pytest.fixture
    def holder(self, tmp_path: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path / ".lock")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        yield process
        process.communicate()

    def open(self, path: Path) -> LogDirectory:
        return LogDirectory(OsDisk(), str(path), FixedClock(NOW_MS), config_of=lambda topic: CONFIG)

    def test_a_second_process_is_kept_out(self, holder: subprocess.Popen[bytes], tmp_path: Path) -> None:
        with pytest.raises(DirectoryInUse, match=str(tmp_path)):
            self.open(tmp_path)

    def test_the_lock_goes_with_its_process(self, holder: subprocess.Popen[bytes], tmp_path: Path) -> None:
        holder.kill()
        holder.wait()
        self.open(tmp_path).close()


def test_a_log_lives_on_a_real_disk(disk: OsDisk, tmp_path: Path) -> None:
    for round_ in range(3):
        directory = LogDirectory(disk, str(tmp_path), FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
        directory.open_all()
        log = directory.logs.get(PARTITION) or directory.create(PARTITION, TOPIC_ID)
        assert directory.was_clean == (round_ > 0)
        assert append(log, batch(), batch()) == 2 * round_ + 1
        assert offsets_in(log.read(0, 1 << 20, log.log_end_offset)) == list(range(2 * round_ + 2))
        directory.close()


def test_a_file_that_nobody_has_any_more_is_closed(tmp_path: Path) -> None:
    """Two threads may open one at the same time, and only one of the two is kept."""
    path = str(tmp_path / "file")
    file = OsDisk().open(path, create=True)
    descriptor = file.fileno()
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_what_is_reserved_is_no_part_of_the_file_and_is_given_back(disk: OsDisk, tmp_path: Path) -> None:
    path = tmp_path / "growing"
    file = disk.open(str(path), create=True)
    try:
        file.write_at(0, bytes(4096))
        if not file.reserve(4096, 1 << 20):
            pytest.skip("of no use on this file system")
        assert (file.size(), path.stat().st_blocks * 512 >= 1 << 20) == (4096, True)
        file.write_at(4096, bytes(100))
        file.truncate(4196)
        file.sync()
        assert (path.read_bytes(), path.stat().st_blocks * 512 < 1 << 20) == (bytes(4196), True)
    finally:
        file.close()


def test_nothing_is_reserved_on_a_disk_with_little_room(
    disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.log.disk._LEFT_TO_OTHERS", 1 << 50)
    path = tmp_path / "growing"
    file = disk.open(str(path), create=True)
    try:
        assert not file.reserve(0, 1 << 20)
        assert (file.size(), path.stat().st_blocks) == (0, 0)
    finally:
        file.close()


def _file_of(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _file_of_path(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
