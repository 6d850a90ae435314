"""Several log directories: one that fails goes offline, the others go on (KIP-112)."""

import errno
from collections.abc import Callable

import pytest

from ottla.base.ids import TopicPartition
from ottla.log.errors import DirectoryInUse
from ottla.log.log_dirs import LogDirs
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import CONFIG, NOW_MS, TOPIC_ID, append, batch

PATHS = ["/one", "/two", "/three"]
PARTITIONS = [TopicPartition("orders", number) for number in range(6)]


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def opened(disk: MemoryDisk, paths: list[str] = PATHS) -> LogDirs:
    dirs = LogDirs(disk, paths, FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
    dirs.open_all()
    return dirs


def filled(disk: MemoryDisk) -> LogDirs:
    dirs = opened(disk)
    for partition in PARTITIONS:
        append(dirs.create(partition, TOPIC_ID), batch())
    return dirs


def test_partitions_are_spread_over_the_directories(disk: MemoryDisk) -> None:
    dirs = filled(disk)
    assert [len(directory.logs) for directory in dirs.online.values()] == [2, 2, 2]
    assert all(dirs.get(partition) is not None for partition in PARTITIONS)
    assert dirs.get(TopicPartition("unknown", 0)) is None


def test_all_are_found_again_after_a_clean_stop(disk: MemoryDisk) -> None:
    filled(disk).close()
    assert disk.open_files == 0
    dirs = opened(disk)
    assert all(directory.was_clean for directory in dirs.online.values())
    logs = [dirs.get(partition) for partition in PARTITIONS]
    assert [log and log.log_end_offset for log in logs] == [1] * 6


@pytest.mark.parametrize("dead", PATHS)
def test_one_that_fails_at_the_start_is_offline_with_its_reason(disk: MemoryDisk, dead: str) -> None:
    filled(disk).close()
    disk.fail_directory(dead)
    dirs = opened(disk)
    assert sorted(dirs.online) == sorted(path for path in PATHS if path != dead)
    assert [problem.errno for problem in dirs.offline.values()] == [errno.EIO]
    assert sum(dirs.get(partition) is not None for partition in PARTITIONS) == 4


def test_one_that_fails_while_it_is_opened_is_offline_too(disk: MemoryDisk) -> None:
    filled(disk).close()
    dirs = LogDirs(disk, PATHS, FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
    disk.fail_directory("/two")
    dirs.open_all()
    assert list(dirs.offline) == ["/two"]


def test_one_that_fails_at_a_checkpoint_or_the_end_does_not_stop_the_others(disk: MemoryDisk) -> None:
    dirs = filled(disk)
    disk.fail_directory("/one")
    dirs.checkpoint()
    assert list(dirs.offline) == ["/one"]
    disk.fail_directory("/three")
    dirs.close()
    assert sorted(dirs.offline) == ["/one", "/three"]
    disk.mend_directory("/one")
    disk.mend_directory("/three")
    assert [opened(disk, [path]).online[path].was_clean for path in PATHS] == [False, True, False]


@pytest.mark.parametrize(
    ("spoil", "epoch"),
    [
        (lambda disk: None, 7),
        (lambda disk: disk.fail_directory("/two"), -1),
        (lambda disk: disk.empty_directory("/two"), -1),
        (lambda disk: disk.remove("/two/.kafka_cleanshutdown"), -1),
    ],
    ids=["all are there", "one has failed", "one is new", "one had failed before"],
)
def test_a_stop_was_clean_if_all_directories_say_so(
    disk: MemoryDisk, spoil: Callable[[MemoryDisk], None], epoch: int
) -> None:
    filled(disk).close(broker_epoch=7)
    spoil(disk)
    assert opened(disk).epoch_of_clean_stop() == epoch


def test_directories_of_two_stops_tell_of_no_clean_one(disk: MemoryDisk) -> None:
    opened(disk).close(broker_epoch=7)
    opened(disk, PATHS[:2]).close(broker_epoch=8)
    assert opened(disk).epoch_of_clean_stop() == -1


def test_taking_one_offline_tells_which_partitions_are_gone(disk: MemoryDisk) -> None:
    dirs = filled(disk)
    lost = dirs.take_offline("/two", OSError(errno.EIO, "broken"))
    assert len(lost) == 2
    assert all(dirs.get(partition) is None for partition in lost)
    assert not any(lock.startswith("/two") for lock in disk.locks)
    dirs.create(TopicPartition("more", 0), TOPIC_ID)


def test_a_directory_that_another_process_uses_stops_the_start(disk: MemoryDisk) -> None:
    other = opened(disk, ["/two"])
    with pytest.raises(DirectoryInUse, match="/two"):
        opened(disk)
    assert disk.locks == {"/two/.lock"}, "those that were taken before have been given back"
    other.close()
    opened(disk)


def test_a_partition_in_two_directories_is_found_in_both(disk: MemoryDisk) -> None:
    for path in ("/one", "/two"):
        dirs = opened(disk, [path])
        dirs.create(PARTITIONS[0], TOPIC_ID)
        dirs.close()
    doubles = opened(disk).doubles()
    assert {name: [directory.path for directory in found] for name, found in doubles.items()} == {
        PARTITIONS[0]: ["/one", "/two"]
    }
