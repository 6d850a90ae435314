"""Damage in one partition is that partition's: it is named, recovered or left alone, and the others are served."""

import errno

import pytest

from ottla.base.ids import TopicPartition
from ottla.log import file_names
from ottla.log.checkpoint import read_offsets
from ottla.log.files import read_file, replace_file, write_file
from ottla.log.log_dirs import LogDirs
from ottla.records.header import CorruptBatch
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    files_in,
    headers_in,
    open_directory,
    open_log,
    rolling,
)

OTHER = TopicPartition("returns", 3)
SIZE = len(batch())
MAGIC_AT, LENGTH_AT = 16, 8
LOG = "/data/orders-0/00000000000000000000.log"
UNKNOWN_SWAP = "/data/orders-0/whatever.log.swap"


@pytest.fixture
def disk() -> MemoryDisk:
    """After a clean stop in epoch 7, with five records in each of two partitions."""
    disk = MemoryDisk()
    directory = open_directory(disk)
    for partition in (PARTITION, OTHER):
        append(directory.create(partition, TOPIC_ID), *(batch() for _ in range(5)))
    directory.close(7)
    return disk


def opened(disk: MemoryDisk) -> LogDirs:
    dirs = LogDirs(disk, ["/data"], FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
    dirs.open_all()
    return dirs


@pytest.mark.parametrize("header_byte", [MAGIC_AT, LENGTH_AT])
@pytest.mark.parametrize("sound", [0, 2, 4])
def test_a_header_that_rots_after_a_clean_stop_costs_its_partition_what_recovery_would(
    disk: MemoryDisk, header_byte: int, sound: int
) -> None:
    index = "/data/orders-0/00000000000000000000.index"
    replace_file(disk, index, b"")  # Nothing of the log is skipped when its end is looked for.
    before = read_file(disk, LOG)
    disk.rot(LOG, sound * SIZE + header_byte, bit=5)
    rotten = read_file(disk, LOG)
    dirs = opened(disk)
    assert not dirs.offline
    log, other = dirs.get(PARTITION), dirs.get(OTHER)
    assert log is not None
    assert other is not None
    assert (log.log_end_offset, other.log_end_offset) == (sound, 5)
    assert [header.base_offset for header in headers_in(log)] == list(range(sound))
    assert read_file(disk, LOG) == before[: sound * SIZE]
    assert read_file(disk, f"{LOG}.cut") == rotten, "what follows the damage may be sound"
    warnings = dirs.online["/data"].warnings
    assert any("orders-0 is damaged" in warning for warning in warnings)
    assert any(f"{LOG}.cut" in warning for warning in warnings)
    assert append(log, batch()) == sound


def test_a_stop_was_not_clean_if_a_log_lacks_what_it_had(disk: MemoryDisk) -> None:
    """Or the controller would take this replica for one that has all that was committed (KIP-966)."""
    assert opened(disk.survivor_of_kill()).epoch_of_clean_stop() == 7
    replace_file(disk, f"/data/{file_names.CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":7}')
    replace_file(disk, "/data/orders-0/00000000000000000000.index", b"")
    disk.rot(LOG, MAGIC_AT, bit=5)
    disk.locks.clear()
    assert opened(disk).epoch_of_clean_stop() == -1


def test_what_was_never_durable_is_cut_off_and_not_kept() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(), batch())
    disk.rot(LOG, SIZE + MAGIC_AT, bit=5)
    again = open_log(disk.survivor_of_kill())
    assert again.log_end_offset == 1
    assert not files_in(disk, file_names.CUT)


def test_without_room_to_keep_what_is_cut_off_it_is_left_as_it_is_and_the_others_are_served(disk: MemoryDisk) -> None:
    replace_file(disk, "/data/orders-0/00000000000000000000.index", b"")
    disk.rot(LOG, 2 * SIZE + MAGIC_AT, bit=5)
    rotten = read_file(disk, LOG)
    disk.fail_next("write", errno.ENOSPC)
    dirs = opened(disk)
    assert not dirs.offline
    assert (list(dirs.online["/data"].logs), list(dirs.online["/data"].damaged)) == ([OTHER], [PARTITION])
    assert read_file(disk, LOG) == rotten
    assert not files_in(disk, file_names.CUT)
    dirs.abandon()
    assert opened(disk.survivor_of_kill()).get(PARTITION).log_end_offset == 2  # type: ignore[union-attr]


class TestOnesThatCannotBeRecovered:
    @pytest.fixture
    def disk(self, disk: MemoryDisk) -> MemoryDisk:
        write_file(disk, UNKNOWN_SWAP, b"nobody knows what of")
        return disk

    def test_one_is_offline_by_name_and_left_as_it_is(self, disk: MemoryDisk) -> None:
        files = disk.files()
        dirs = opened(disk)
        directory = dirs.online["/data"]
        assert list(directory.logs) == [OTHER]
        assert list(directory.damaged) == [PARTITION]
        assert any("orders-0 is damaged, and offline" in warning for warning in directory.warnings)
        assert {path: data for path, data in disk.files().items() if "orders-0" in path} == {
            path: data for path, data in files.items() if "orders-0" in path
        }
        assert dirs.epoch_of_clean_stop() == -1

    def test_one_that_is_mended_has_all_that_it_had(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        directory.checkpoint()
        assert read_offsets(disk, f"/data/{file_names.RECOVERY_POINTS}") == {PARTITION: 5, OTHER: 5}
        directory.close()
        assert not disk.exists(f"/data/{file_names.CLEAN_SHUTDOWN}"), "the next start has to look"
        disk.remove(UNKNOWN_SWAP)
        assert open_directory(disk).logs[PARTITION].log_end_offset == 5

    def test_a_partition_of_the_same_name_does_not_begin_with_its_files(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        assert directory.create(PARTITION, TOPIC_ID).log_end_offset == 0
        (stray,) = (name for name in disk.list_dir("/data") if name.endswith(file_names.STRAY_DIR))
        assert "whatever.log.swap" in disk.list_dir(f"/data/{stray}")
        assert not directory.damaged

    def test_a_copy_that_was_on_its_way_is_set_aside(self, disk: MemoryDisk) -> None:
        disk.remove(UNKNOWN_SWAP)
        disk.rename("/data/orders-0", f"/data/orders-0.{'0123456789abcdef' * 2}-future")
        write_file(disk, f"/data/orders-0.{'0123456789abcdef' * 2}-future/whatever.log.swap", b"")
        directory = open_directory(disk)
        assert (list(directory.logs), list(directory.futures.logs)) == ([OTHER], [])
        assert any(name.endswith(file_names.STRAY_DIR) for name in disk.list_dir("/data"))


@pytest.mark.parametrize("is_clean", [True, False])
def test_leader_epochs_whose_file_is_damaged_are_found_again(is_clean: bool) -> None:
    disk = MemoryDisk()
    directory = open_directory(disk, rolling(batches=2))
    log = directory.create(PARTITION, TOPIC_ID)
    for epoch in (0, 2, 3):
        append(log, batch(), batch(), batch(), leader_epoch=epoch)
    epochs = log.epochs.entries
    directory.close()
    if not is_clean:
        disk.remove(f"/data/{file_names.CLEAN_SHUTDOWN}")
    replace_file(disk, f"/data/orders-0/{file_names.LEADER_EPOCHS}", b"garbage")
    again = open_directory(disk, rolling(batches=2))
    assert again.logs[PARTITION].epochs.entries == epochs == [(0, 0), (2, 3), (3, 6)]
    assert not again.has_lost_records
    again.close()
    third = open_directory(disk, rolling(batches=2))
    assert (third.logs[PARTITION].epochs.entries, third.warnings) == (epochs, [])


def test_a_log_whose_first_batch_is_damaged_is_appended_to_and_rolls() -> None:
    disk = MemoryDisk()
    append(log := open_log(disk), batch(), batch())
    log.close()
    disk.rot(LOG, MAGIC_AT, bit=5)
    again = open_log(disk, clean=True)
    assert again.segments[0].first_timestamp == -1
    assert append(again, batch()) == 2
    again.roll()
    with pytest.raises(CorruptBatch):
        next(headers_in(again))
