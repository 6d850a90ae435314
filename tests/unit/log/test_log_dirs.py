"""Several log directories: one that fails goes offline, the others go on (KIP-112)."""

import errno

import pytest
from partition_logs import CONFIG, NOW_MS, TOPIC_ID, append, batch

from ottla.base.ids import TopicPartition
from ottla.log.errors import DirectoryInUse
from ottla.log.log_dirs import LogDirs
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk, MemoryFile

PATHS = ["/one", "/two", "/three"]
PARTITIONS = [TopicPartition("orders", number) for number in range(6)]


class DiskWithDeadDirectory(MemoryDisk):
    """Everything below `dead` fails, as when one of several disks is gone."""

    dead = ""

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self._fail(path)
        return super().open(path, create=create)

    def list_dir(self, path: str) -> list[str]:
        self._fail(path)
        return super().list_dir(path)

    def rename(self, source: str, target: str) -> None:
        self._fail(source)
        super().rename(source, target)

    def _fail(self, path: str) -> None:
        if self.dead and path.startswith(self.dead):
            raise OSError(errno.EIO, "Input/output error", path)


@pytest.fixture
def disk() -> DiskWithDeadDirectory:
    return DiskWithDeadDirectory()


def opened(disk: MemoryDisk, paths: list[str] = PATHS) -> LogDirs:
    dirs = LogDirs(disk, paths, FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
    dirs.open_all()
    return dirs


def filled(disk: MemoryDisk) -> LogDirs:
    dirs = opened(disk)
    for partition in PARTITIONS:
        append(dirs.create(partition, TOPIC_ID), batch())
    return dirs


def test_partitions_are_spread_over_the_directories(disk: DiskWithDeadDirectory) -> None:
    dirs = filled(disk)
    assert [len(directory.logs) for directory in dirs.online.values()] == [2, 2, 2]
    assert all(dirs.get(partition) is not None for partition in PARTITIONS)
    assert dirs.get(TopicPartition("unknown", 0)) is None


def test_all_are_found_again_after_a_clean_stop(disk: DiskWithDeadDirectory) -> None:
    filled(disk).close()
    assert disk.open_files == 0
    dirs = opened(disk)
    assert all(directory.was_clean for directory in dirs.online.values())
    logs = [dirs.get(partition) for partition in PARTITIONS]
    assert [log and log.log_end_offset for log in logs] == [1] * 6


@pytest.mark.parametrize("dead", PATHS)
def test_one_that_fails_at_the_start_is_offline_with_its_reason(disk: DiskWithDeadDirectory, dead: str) -> None:
    filled(disk).close()
    disk.dead = dead
    dirs = opened(disk)
    assert sorted(dirs.online) == sorted(path for path in PATHS if path != dead)
    assert [problem.errno for problem in dirs.offline.values()] == [errno.EIO]
    assert sum(dirs.get(partition) is not None for partition in PARTITIONS) == 4


def test_one_that_fails_while_it_is_opened_is_offline_too(disk: DiskWithDeadDirectory) -> None:
    filled(disk).close()
    dirs = LogDirs(disk, PATHS, FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
    disk.dead = "/two/"
    dirs.open_all()
    assert list(dirs.offline) == ["/two"]


def test_one_that_fails_at_a_checkpoint_or_the_end_does_not_stop_the_others(disk: DiskWithDeadDirectory) -> None:
    dirs = filled(disk)
    disk.dead = "/one"
    dirs.checkpoint()
    assert list(dirs.offline) == ["/one"]
    disk.dead = "/three"
    dirs.close()
    assert sorted(dirs.offline) == ["/one", "/three"]
    disk.dead = ""
    assert [opened(disk, [path]).online[path].was_clean for path in PATHS] == [False, True, False]


def test_taking_one_offline_tells_which_partitions_are_gone(disk: DiskWithDeadDirectory) -> None:
    dirs = filled(disk)
    lost = dirs.take_offline("/two", OSError(errno.EIO, "broken"))
    assert len(lost) == 2
    assert all(dirs.get(partition) is None for partition in lost)
    assert not any(lock.startswith("/two") for lock in disk.locks)
    dirs.create(TopicPartition("more", 0), TOPIC_ID)


def test_a_directory_that_another_process_uses_stops_the_start(disk: DiskWithDeadDirectory) -> None:
    other = opened(disk, ["/two"])
    with pytest.raises(DirectoryInUse, match="/two"):
        opened(disk)
    assert disk.locks == {"/two/.lock"}, "those that were taken before have been given back"
    other.close()
    opened(disk)


def test_a_partition_in_two_directories_is_found_in_both(disk: DiskWithDeadDirectory) -> None:
    for path in ("/one", "/two"):
        dirs = opened(disk, [path])
        dirs.create(PARTITIONS[0], TOPIC_ID)
        dirs.close()
    doubles = opened(disk).doubles()
    assert {name: [directory.path for directory in found] for name, found in doubles.items()} == {
        PARTITIONS[0]: ["/one", "/two"]
    }
