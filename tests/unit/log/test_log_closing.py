"""What the clean stop of many logs writes, and what it leaves alone."""

from ottla.base.ids import TopicPartition
from ottla.log import file_names
from ottla.log.checkpoint import parse_leader_epochs
from ottla.log.files import read_file
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    DIRECTORY,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    files_in,
    open_directory,
    rolling,
)

OTHER = TopicPartition("payments", 3)


def stopped(disk: MemoryDisk, *batches: bytearray) -> None:
    directory = open_directory(disk)
    log = directory.create(PARTITION, TOPIC_ID)
    log.begin_leader_epoch(0)
    append(log, *batches)
    directory.close()


def told_epochs(disk: MemoryDisk) -> list[tuple[int, int]]:
    path = f"{DIRECTORY}/{file_names.LEADER_EPOCHS}"
    return parse_leader_epochs(read_file(disk, path), path)


def calls_of_a_stop(disk: MemoryDisk, change: bool) -> int:
    directory = open_directory(disk)
    log = directory.logs[PARTITION]
    log.begin_leader_epoch(2)
    if change:
        append(log, batch(), leader_epoch=2)
    before = disk.calls
    directory.close()
    return disk.calls - before


def test_a_log_that_has_not_changed_costs_no_call_to_the_disk() -> None:
    empty, disk = MemoryDisk(), MemoryDisk()
    stopped(disk, batch())
    open_directory(empty).close()
    directory = open_directory(empty)
    before = empty.calls
    directory.close()
    assert calls_of_a_stop(disk, change=False) == empty.calls - before
    assert calls_of_a_stop(disk, change=True) > empty.calls - before


def test_a_log_that_never_held_a_record_is_left_as_it_is() -> None:
    disk = MemoryDisk()
    stopped(disk)
    assert not disk.exists(f"{DIRECTORY}/{file_names.LEADER_EPOCHS}")
    directory = open_directory(disk)
    assert directory.was_clean
    assert append(directory.logs[PARTITION], batch()) == 0


def test_an_epoch_in_which_nothing_was_written_is_told_with_the_next_change() -> None:
    disk = MemoryDisk()
    stopped(disk, batch())
    calls_of_a_stop(disk, change=False)
    assert told_epochs(disk) == [(0, 0)]
    calls_of_a_stop(disk, change=True)
    assert told_epochs(disk) == [(0, 0), (2, 1)]


def test_deleting_from_the_start_is_a_change() -> None:
    disk = MemoryDisk()
    config = rolling(batches=1)
    directory = open_directory(disk, config)
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, batch(), batch(), batch())
    directory.close()
    directory = open_directory(disk, config)
    log = directory.logs[PARTITION]
    log.advance_high_watermark(3)
    log.advance_log_start_offset(2)
    assert log.apply_retention() == 2
    directory.close()
    assert not files_in(disk, file_names.DELETED)
    assert told_epochs(disk) == [(0, 2)]


def test_every_log_is_let_go_of() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    append(directory.create(PARTITION, TOPIC_ID), batch())
    directory.create(OTHER, TOPIC_ID)
    directory.close()
    assert disk.open_files == 0
