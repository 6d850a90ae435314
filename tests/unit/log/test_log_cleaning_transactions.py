"""Compaction and transactions: what readers at either isolation level see is what they would have seen (KIP-98)."""

import pytest

from ottla.log.transaction_index import AbortedTransaction
from ottla.records.batch import complete_batches
from ottla.records.reader import read_records
from ottla.records.visibility import visible_batches
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
    keyed,
)
from tests.unit.log.partition_logs import CONFIG, base_offsets, marker, open_log

COMPACTED = CONFIG._replace(cleanup_policy=("compact",), delete_retention_ms=DAY_MS)
LATER_MS = NOW_MS + DAY_MS


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
def log(disk):
    return open_log(disk, COMPACTED)


def in_transaction(producer_id, sequence, *records, epoch=0):
    return keyed(*records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)


def markers(log):
    return [(header.base_offset, header.producer_id) for header, records in batches_in(log) if header.is_control]


def index_entries(log):
    return [entry for segment in log.segments for entry in segment.transaction_index.entries()]


def committed(log):
    """What a reader at read_committed sees."""
    end = log.last_stable_offset
    data = log.read(log.log_start_offset, 1 << 20, end).read()
    for segment in log.segments[1:]:
        data += segment.file.read_at(0, segment.size)
    aborted = [(entry.producer_id, entry.first_offset) for entry in log.aborted_transactions(0, end)]
    return [
        f"{record.offset}:{record.key.decode()}={record.value.decode()}"
        for position, header in visible_batches(data, aborted)
        for record in read_records(data, position, header)
    ]


def test_aborted_records_go_and_what_they_would_have_replaced_stays(log, disk):
    append(log, keyed("a=1"), in_transaction(7, 0, "a=2", "b=2"), marker(7, committed=False))
    clean_log(begun(log), disk)
    assert contents(log) == ["0:a=1"]


def test_committed_records_replace_older_ones(log, disk):
    append(log, keyed("a=1"), in_transaction(7, 0, "a=2", "b=2"), marker(7, committed=True))
    clean_log(begun(log), disk)
    assert contents(log) == ["1:a=2", "2:b=2"]
    assert markers(log) == [(3, 7)]


def test_a_transaction_that_was_aborted_before_the_dirty_part_says_nothing_of_the_next(log, disk):
    append(log, keyed("a=1"), in_transaction(7, 0, "b=1"), marker(7, committed=False))
    clean_offset = clean_log(begun(log), disk).clean_offset
    append(log, in_transaction(7, 1, "a=2"), marker(7, committed=True))
    clean_log(begun(log), disk, clean_offset=clean_offset)
    assert contents(log) == ["3:a=2"]


def test_an_open_transaction_ends_the_part_that_can_be_cleaned(log, disk):
    append(log, keyed("a=1", "a=2"))
    begun(log)
    append(log, in_transaction(7, 0, "a=3"), keyed("a=4"))
    begun(log)
    clean_log(log, disk)
    assert contents(log) == ["1:a=2", "2:a=3", "3:a=4"]


def test_an_abort_marker_stays_with_its_entry_while_a_batch_of_it_was_met(log, disk):
    append(log, in_transaction(7, 0, "a=2"), marker(7, committed=False), keyed("z=1"))
    clean_log(begun(log), disk)
    assert markers(log) == [(1, 7)]
    assert not [header for header in headers_of(log) if header.has_delete_horizon]
    assert index_entries(log) == [AbortedTransaction(7, 0, 1, 2)]


def test_a_marker_without_records_is_given_a_time_to_live_and_then_goes(log, disk):
    append(log, in_transaction(7, 0, "a=2"), marker(7, committed=False), keyed("z=1"))
    append(log, keyed("y=1", producer_id=7, producer_epoch=0, base_sequence=1))
    clean_log(begun(log), disk)  # removes the records
    clean_log(log, disk)  # meets the marker alone
    assert [header.has_delete_horizon for header, _ in batches_in(log) if header.is_control] == [True]
    assert index_entries(log) == [], "no reader needs to know of it any more"
    clean_log(log, disk, now_ms=LATER_MS - 1)
    assert markers(log) == [(1, 7)]
    clean_log(log, disk, now_ms=LATER_MS)
    assert markers(log) == []


def test_a_commit_marker_goes_when_nothing_of_its_transaction_is_left(log, disk):
    append(log, in_transaction(7, 0, "a=1"), marker(7, committed=True))
    append(log, keyed("a=2", producer_id=7, producer_epoch=0, base_sequence=1))
    clean_log(begun(log), disk)
    assert markers(log) == [(1, 7)]
    clean_log(log, disk)
    clean_log(log, disk, now_ms=LATER_MS)
    assert markers(log) == []
    assert contents(log) == ["2:a=2"]


def test_an_empty_batch_of_a_transaction_keeps_its_marker(log, disk):
    """Without it, who reads the log from its beginning would take the transaction for open."""
    append(log, in_transaction(7, 0, "a=1"), marker(7, committed=True), keyed("a=2"), keyed("b=1"))
    begun(log)
    for _ in range(3):
        clean_log(log, disk, now_ms=LATER_MS)
    assert [(header.base_offset, header.record_count) for header in headers_of(log)] == [(0, 0), (1, 1), (2, 1), (3, 1)]


def test_the_last_marker_of_a_producer_stays_for_its_epoch(log, disk):
    """With KIP-890 a marker raises the epoch; whoever forgot it would let a zombie in."""
    append(log, in_transaction(7, 0, "a=1"), marker(7, committed=True, epoch=1), keyed("a=2"))
    begun(log)
    clean_log(log, disk)
    clean_log(log, disk)
    clean_log(log, disk, now_ms=LATER_MS)
    kept = [header for header in headers_of(log) if header.is_control]
    assert [(header.base_offset, header.producer_epoch, header.record_count) for header in kept] == [(1, 1, 0)]


def test_a_transaction_whose_marker_is_not_cleaned_is_known_to_be_aborted(log, disk):
    """KAFKA-13727: a transaction that begins in what is cleaned, and ends after it."""
    append(log, keyed("a=1"), in_transaction(7, 0, "a=2"))
    begun(log)
    append(log, keyed("b=1"), marker(7, committed=False))
    clean_log(log, disk)
    assert contents(log) == ["0:a=1", "2:b=1"]
    assert committed(log) == ["0:a=1", "2:b=1"]


def test_an_abort_beyond_a_full_map_is_not_forgotten(log, disk):
    """KAFKA-13727: aborted records past the point that the map has reached, in the segment of that point."""
    append(log, keyed("a=1", "b=1", "c=1"), keyed("d=1"), in_transaction(7, 0, "d=2"), marker(7, committed=False))
    append(log, keyed("e=1"))
    begun(log)
    done = clean_log(log, disk, keys=2)
    assert done.clean_offset == 2
    assert committed(log) == ["0:a=1", "1:b=1", "2:c=1", "3:d=1", "6:e=1"]
    for _ in range(4):
        done = clean_log(log, disk, clean_offset=done.clean_offset, keys=2, now_ms=LATER_MS)
    assert done.clean_offset == log.log_end_offset
    assert committed(log) == ["0:a=1", "1:b=1", "2:c=1", "3:d=1", "6:e=1"]
    assert "4:d=2" not in contents(log)


def test_no_entry_outlives_its_marker(log, disk):
    """A stale entry would hide what its producer committed later."""
    append(log, in_transaction(7, 0, "a=1"), marker(7, committed=False))
    append(log, in_transaction(7, 1, "a=2"), marker(7, committed=True), keyed("z=1"))
    begun(log)
    clean_log(log, disk)
    clean_log(log, disk)
    clean_log(log, disk, now_ms=LATER_MS)
    assert markers(log) == [(3, 7)]
    assert index_entries(log) == []
    assert committed(log) == ["2:a=2", "4:z=1"]


def test_entries_of_several_segments_are_joined_in_the_order_of_the_markers(log, disk):
    for number in range(3):
        append(log, in_transaction(7, number, f"a={number}"), marker(7, committed=False))
        begun(log)
    clean_log(log, disk)
    assert base_offsets(log) == [0, 6]
    assert [entry.last_offset for entry in index_entries(log)] == [1, 3, 5]


def test_readers_see_what_they_saw_before_whatever_is_interleaved(log, disk):
    append(
        log,
        in_transaction(7, 0, "a=1"),
        in_transaction(8, 0, "b=1"),
        keyed("c=1"),
        marker(8, committed=True),
        in_transaction(8, 1, "a=2"),
        marker(7, committed=False),
        in_transaction(7, 1, "c=2"),
        marker(8, committed=False),
        marker(7, committed=True),
    )
    begun(log)
    before = dict(text.partition(":")[2].split("=") for text in committed(log))
    for _ in range(3):
        clean_log(log, disk, now_ms=LATER_MS)
        assert dict(text.partition(":")[2].split("=") for text in committed(log)) == before == {"b": "1", "c": "2"}
    assert list(complete_batches(log.read(0, 1 << 20, log.log_end_offset).read()))
