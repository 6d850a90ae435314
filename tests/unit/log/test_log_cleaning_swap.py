"""Swapping cleaned segments in, and what may come in between."""

import errno
from random import Random

import pytest

from ottla.log import file_names
from ottla.log.checkpoint import read_offsets
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleanedSegment
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.unit.log.cleaned_logs import append, begun, clean_log, contents, job_for, keyed
from tests.unit.log.partition_logs import CONFIG, PARTITION, TOPIC_ID, base_offsets, files_in, open_directory, open_log

COMPACTED = CONFIG._replace(cleanup_policy=("compact",), file_delete_delay_ms=0)


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
def log(disk):
    """Three segments with old and new values of two keys, and an active one."""
    log = open_log(disk, COMPACTED)
    for number in range(3):
        append(log, keyed(f"a={number}", f"b={number}"))
        begun(log)
    append(log, keyed("c=1"))
    return log


def cleaned(log, disk):
    """Cleans without swapping; returns the base offsets of what was replaced by one segment."""
    [step, _] = clean(disk, job_for(log))
    assert isinstance(step, CleanedSegment)
    return step.base_offsets


def test_a_swap_has_three_steps(log, disk):
    replaced = cleaned(log, disk)
    assert files_in(disk, file_names.CLEANED)
    replacement = log.start_replacement(replaced)
    assert not files_in(disk, file_names.CLEANED)
    assert files_in(disk, ".log.swap") == ["00000000000000000000.log.swap"]
    assert len(contents(log)) == 7, "the log is still the old one"
    replacement.run()
    assert log.finish_replacement(replacement)
    assert not files_in(disk, file_names.SWAP)
    assert contents(log) == ["4:a=2", "5:b=2", "6:c=1"]
    log.remove_deleted()
    assert not files_in(disk, file_names.DELETED)
    assert base_offsets(log) == [0, 6]


def test_readers_of_what_was_replaced_can_finish(log, disk):
    part = log.read(0, 1000, 7)
    before = part.read()
    clean_log(log, disk)
    assert part.read() == before


def test_nothing_is_swapped_in_when_segments_have_gone_since(log, disk):
    replaced = cleaned(log, disk)
    log.advance_log_start_offset(2)
    log.apply_retention()
    assert log.start_replacement(replaced) is None
    assert len(contents(log)) == 5


def test_what_retention_takes_during_a_swap_does_not_come_back(log, disk):
    replacement = log.start_replacement(cleaned(log, disk))
    replacement.run()
    log.advance_log_start_offset(2)
    log.apply_retention()
    assert not log.finish_replacement(replacement)
    assert not files_in(disk, file_names.SWAP)
    assert base_offsets(log) == [2, 4, 6]


def test_what_is_truncated_during_a_swap_does_not_come_back(log, disk):
    replacement = log.start_replacement(cleaned(log, disk))
    replacement.run()
    log.truncate_to(3)
    assert not files_in(disk, file_names.SWAP)
    assert not log.finish_replacement(replacement)
    assert contents(log) == ["0:a=0", "1:b=0"]
    assert contents(open_log(disk, COMPACTED, recovery_point=2)) == ["0:a=0", "1:b=0"]


def test_what_is_not_durable_is_not_swapped(log, disk):
    replaced = cleaned(log, disk)
    log.recovery_point = 5
    assert log.start_replacement(replaced) is None


def test_an_old_transaction_index_does_not_survive_its_segment(disk):
    """An entry whose marker is gone would hide all that its producer wrote after it."""
    log = open_log(disk, COMPACTED)
    append(log, keyed("a=1"))
    begun(log)
    append(log, keyed("a=2"))
    begun(log)
    log.flush()
    old = log.segments[0].path(file_names.TRANSACTION_INDEX)
    disk.open(old, create=True).write_at(0, bytes(34))
    replacement = log.start_replacement(cleaned(log, disk))
    replacement.run()
    # Killed here: what is left is done when the log is opened.
    again = open_log(disk.survivor_of_kill(), COMPACTED, recovery_point=2)
    assert [entry for segment in again.segments for entry in segment.transaction_index.entries()] == []


@pytest.mark.parametrize("call", range(1, 40))
def test_a_power_cut_at_any_step_leaves_the_old_or_the_new(call):
    for seed in range(3):
        disk = MemoryDisk(Random(seed))
        log = open_log(disk, COMPACTED)
        for number in range(3):
            append(log, keyed(f"a={number}", f"b={number}"))
            begun(log)
        append(log, keyed("c=1"))
        log.flush()
        disk.crash_at(disk.calls + call)
        try:
            clean_log(log, disk)
            log.remove_deleted()
        except Crashed:
            pass
        again = open_log(disk.survivor(Random(seed)), COMPACTED, recovery_point=7)
        found = contents(again)
        assert found[-3:] == ["4:a=2", "5:b=2", "6:c=1"]
        assert len(found) in (3, 5, 7)
        assert again.log_end_offset == 7
        names_left = files_in(again._disk)
        assert not [
            name for name in names_left if name.endswith((file_names.CLEANED, file_names.SWAP, file_names.DELETED))
        ]


def test_how_far_a_log_is_clean_is_kept_until_it_is_deleted(disk):
    directory = open_directory(disk, COMPACTED)
    directory.create(PARTITION, TOPIC_ID)
    assert directory.cleaner_offset(PARTITION) is None
    directory.save_cleaner_offset(PARTITION, 7)
    directory.close()
    directory = open_directory(disk, COMPACTED)
    assert directory.cleaner_offset(PARTITION) == 7
    directory.delete(PARTITION)
    assert read_offsets(disk, "/data/cleaner-offset-checkpoint") == {}


def test_a_truncation_takes_the_clean_offset_back(disk):
    directory = open_directory(disk, COMPACTED)
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, keyed("a=1"), keyed("a=2"), keyed("a=3"))
    directory.flush()
    directory.save_cleaner_offset(PARTITION, 3)
    log.truncate_to(1)
    assert directory.cleaner_offset(PARTITION) == 1
    assert read_offsets(disk, "/data/cleaner-offset-checkpoint") == {PARTITION: 1}


def test_a_disk_that_refuses_a_rename_says_so(log, disk):
    replacement = log.start_replacement(cleaned(log, disk))
    replacement.run()
    disk.fail_at(disk.calls + 1, errno.EIO)
    with pytest.raises(OSError, match="injected"):
        log.finish_replacement(replacement)


@pytest.mark.parametrize("missing", [file_names.LOG, file_names.INDEX, file_names.TIME_INDEX])
def test_nothing_is_swapped_for_a_segment_that_is_not_there(log, disk, missing):
    replaced = cleaned(log, disk)
    disk.remove(f"{log.directory}/{file_names.file_name(0, missing)}{file_names.CLEANED}")
    before = contents(log)
    assert log.start_replacement(replaced) is None
    assert contents(log) == before
    assert files_in(disk, file_names.SWAP) == files_in(disk, file_names.DELETED) == []
