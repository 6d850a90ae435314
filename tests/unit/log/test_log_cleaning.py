"""What compaction keeps, by example. Expected outcomes are those of Apache Kafka's cleaner."""

import pytest

from ottla.log import file_names
from ottla.log.cleaning.cleaning import clean
from ottla.records.batch import Compression, CorruptBatch
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.cleaned_logs import (
    DAY_MS,
    NOW_MS,
    append,
    batches_in,
    begun,
    clean_log,
    contents,
    headers_of,
    job_for,
    keyed,
)
from tests.unit.log.partition_logs import CONFIG, base_offsets, files_in, open_log, produced

COMPACTED = CONFIG._replace(cleanup_policy=("compact",), delete_retention_ms=DAY_MS)


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
def log(disk):
    return open_log(disk, COMPACTED)


def test_the_last_record_of_every_key_is_kept_at_its_offset(log, disk):
    append(log, keyed("a=1", "b=1", "a=2"), keyed("c=1", "b=2"))
    done = clean_log(begun(log), disk)
    assert contents(log) == ["2:a=2", "3:c=1", "4:b=2"]
    assert done.clean_offset == log.log_end_offset == 5
    assert [(header.base_offset, header.last_offset) for header in headers_of(log)] == [(0, 2), (3, 4)]


def test_the_clean_part_is_cleaned_by_what_is_new(log, disk):
    append(log, keyed("a=1", "b=1"))
    clean_offset = clean_log(begun(log), disk).clean_offset
    append(log, keyed("a=2", "c=1"))
    clean_log(begun(log), disk, clean_offset=clean_offset)
    assert contents(log) == ["1:b=1", "2:a=2", "3:c=1"]


def test_the_active_segment_is_left_alone(log, disk):
    append(log, keyed("a=1"))
    begun(log)
    append(log, keyed("a=2", "a=3"))
    clean_log(log, disk)
    assert contents(log) == ["0:a=1", "1:a=2", "2:a=3"]


def test_records_without_a_key_go(log, disk):
    append(log, keyed("=1", "a=1", "=2"))
    assert clean_log(begun(log), disk).stats.keyless_records == 2
    assert contents(log) == ["1:a=1"]


def test_what_the_high_watermark_has_not_passed_stays(log, disk):
    append(log, keyed("a=1"))
    log.append_as_leader(keyed("a=2"), 0)
    clean_log(begun(log), disk)
    assert contents(log) == ["0:a=1", "1:a=2"]


def test_a_tombstone_is_given_a_time_to_live_by_the_first_cleaning(log, disk):
    append(log, keyed("a=1", "b=1", "a", "b=2"))
    clean_log(begun(log), disk)
    assert contents(log) == ["2:a", "3:b=2"]
    [(header, records)] = batches_in(log)
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW_MS + DAY_MS
    assert header.max_timestamp == NOW_MS
    assert [record.timestamp for record in records] == [NOW_MS, NOW_MS]


def test_a_tombstone_goes_when_its_time_has_passed_and_no_earlier(log, disk):
    append(log, keyed("a=1", "b=1", "a"))
    clean_log(begun(log), disk)
    append(log, keyed("c=1"))
    clean_log(begun(log), disk, clean_offset=3, now_ms=NOW_MS + DAY_MS - 1)
    assert contents(log) == ["1:b=1", "2:a", "3:c=1"]
    clean_log(begun(log), disk, clean_offset=3, now_ms=NOW_MS + DAY_MS)
    assert contents(log) == ["1:b=1", "3:c=1"]
    assert [header.base_timestamp for header in headers_of(log)] == [NOW_MS + DAY_MS, NOW_MS]


def test_a_batch_that_keeps_all_its_records_is_copied_as_it_is(log, disk):
    batch = keyed("a=1", "b=1", timestamp=NOW_MS - 5, compression=Compression.ZSTD)
    append(log, batch)
    clean_log(begun(log), disk)
    assert log.segments[0].file.read_at(0, 1000) == bytes(batch)


@pytest.mark.parametrize("codec", Compression)
def test_what_is_left_is_compressed_as_it_was(log, disk, codec):
    append(log, keyed("a=1", "b=1", "a=2", "c", compression=codec))
    clean_log(begun(log), disk)
    assert contents(log) == ["1:b=1", "2:a=2", "3:c"]
    assert [header.compression for header in headers_of(log)] == [codec]


def test_records_stamped_by_the_broker_keep_their_time(log, disk):
    append(log, keyed("a=1", "b=1", "a", timestamp=NOW_MS - 999, log_append_time_ms=NOW_MS - 7))
    clean_log(begun(log), disk)
    [(header, records)] = batches_in(log)
    assert header.is_log_append_time
    assert [record.timestamp for record in records] == [NOW_MS - 7, NOW_MS - 7]


def test_a_producers_last_batch_stays_without_its_records(log, disk):
    append(log, keyed("a=1", "b=1", producer_id=7, producer_epoch=3, base_sequence=0))
    append(log, keyed("a=2", "b=2", producer_id=7, producer_epoch=3, base_sequence=2))
    append(log, keyed("a=3", "b=3"), keyed("c=3"))
    clean_log(begun(log), disk)
    assert contents(log) == ["4:a=3", "5:b=3", "6:c=3"]
    empty = headers_of(log)[0]
    assert (empty.record_count, empty.base_offset, empty.last_offset, empty.size) == (0, 2, 3, 61)
    assert (empty.producer_id, empty.producer_epoch, empty.last_sequence) == (7, 3, 3)


def test_a_producer_is_known_by_its_empty_batch_when_there_is_no_snapshot(log, disk):
    append(log, keyed("a=1", producer_id=7, producer_epoch=3, base_sequence=0), keyed("a=2"))
    clean_log(begun(log), disk)
    log.close()
    for name in files_in(disk, file_names.PRODUCER_SNAPSHOT):
        disk.remove(f"{log.directory}/{name}")
    again = open_log(disk, COMPACTED, recovery_point=2)
    assert again.append_as_leader(produced(7, 5, epoch=3), 0).error
    assert not again.append_as_leader(produced(7, 1, epoch=3), 0).error


def test_the_last_batch_of_a_cleaning_stays_so_that_the_log_does_not_seem_to_end_earlier(log, disk):
    append(log, keyed("a=1"), keyed("=no key"))
    clean_log(begun(log), disk)
    assert [(header.base_offset, header.record_count) for header in headers_of(log)] == [(0, 1), (1, 0)]
    append(log, keyed("b=1"))
    clean_log(begun(log), disk, clean_offset=2)
    assert [(header.base_offset, header.record_count) for header in headers_of(log)] == [(0, 1), (2, 1)]


def test_a_full_map_ends_the_dirty_part_and_what_is_beyond_is_copied(log, disk):
    append(log, keyed("a=1", "b=1", "a=2"), keyed("c=1", "a=3", "a=4"))
    done = clean_log(begun(log), disk, keys=2)
    assert done.clean_offset == 2, "with a and b it is full"
    assert contents(log) == ["0:a=1", "1:b=1", "2:a=2", "3:c=1", "4:a=3", "5:a=4"]
    assert clean_log(log, disk, keys=3).clean_offset == 4
    assert contents(log) == ["1:b=1", "2:a=2", "3:c=1", "4:a=3", "5:a=4"]


def test_small_segments_become_one(log, disk):
    for number in range(5):
        append(log, keyed(f"a={number}", f"k{number}=1"))
        begun(log)
    clean_log(log, disk)
    assert base_offsets(log) == [0, 10]
    assert contents(log) == ["1:k0=1", "3:k1=1", "5:k2=1", "7:k3=1", "8:a=4", "9:k4=1"]


def test_segments_are_not_grouped_beyond_segment_bytes(disk):
    size = len(keyed("a=1"))
    log = open_log(disk, COMPACTED._replace(segment_bytes=2 * size + 5))
    for number in range(6):
        append(log, keyed(f"{number}=1"))
        begun(log)
    clean_log(log, disk)
    assert base_offsets(log) == [0, 2, 4, 6]


def test_cleaned_segments_are_as_old_as_what_they_stand_for(log, disk):
    disk.now_ms = 1_000_000
    append(log, keyed("a=1", "a=2"))
    log.segments[0].file.truncate(log.segments[0].size)
    disk.set_modified_ms(log.segments[0].path(file_names.LOG), 1_000_000)
    disk.now_ms = 9_000_000
    clean_log(begun(log), disk)
    for kind in (file_names.LOG, file_names.INDEX, file_names.TIME_INDEX):
        assert disk.modified_ms(log.segments[0].path(kind)) == 1_000_000


def test_a_segment_may_end_up_empty(log, disk):
    append(log, keyed("a=1"))
    begun(log)
    append(log, keyed("a=2"))
    job = job_for(begun(log))._replace(segment_bytes=1)
    for step in list(clean(disk, job))[:-1]:
        replacement = log.start_replacement(step.base_offsets)
        replacement.run()
        assert log.finish_replacement(replacement)
    assert log.segments[0].size == 0
    assert contents(log) == ["1:a=2"]
    assert log.read(0, 1000, 2).read() == log.read(1, 1000, 2).read() != b""


def test_lookups_work_on_cleaned_segments(log, disk):
    for number in range(50):
        append(log, keyed(f"{number % 10}={number}", f"x{number}=1", timestamp=NOW_MS + number))
    clean_log(begun(log), disk)
    for offset in range(0, 100, 7):
        data = log.read(offset, 1 << 20, 100).read()
        assert data, offset
    found = log.offset_for_timestamp(NOW_MS + 30)
    assert found is not None
    assert found.offset == 61
    assert log.offset_of_max_timestamp().timestamp == NOW_MS + 49


@pytest.mark.parametrize(("position", "problem"), [(65, "checksum"), (7, "cannot be"), (70, "cannot be")])
def test_damage_is_not_copied(log, disk, position, problem):
    append(log, keyed("a=1"), keyed("a=2"))
    job = job_for(begun(log))
    log.segments[0].file.write_at(position, b"\xff")
    with pytest.raises(CorruptBatch, match=problem):
        list(clean(disk, job))
    assert base_offsets(log) == [0, 2]


def test_what_an_unfinished_cleaning_left_is_removed_by_the_next(log, disk):
    append(log, keyed("a=1"), keyed("a=2"))
    steps = clean(disk, job_for(begun(log)))
    next(steps)
    assert files_in(disk, file_names.CLEANED)
    clean_log(log, disk)
    assert not files_in(disk, file_names.CLEANED)
    assert contents(log) == ["1:a=2"]


def test_no_file_is_left_open(log, disk):
    append(log, keyed("a=1"), keyed("a=2"))
    begun(log)
    job = job_for(log)
    log.release()
    before = disk.open_files
    list(clean(disk, job))
    assert disk.open_files == before
