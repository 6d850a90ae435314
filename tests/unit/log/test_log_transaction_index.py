"""The index of aborted transactions, which readers of committed records only go by (KIP-98)."""

import errno
from random import Random

import pytest

from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, replace_file
from ottla.log.transaction_index import AbortedTransaction, TransactionIndex, parse_entries
from ottla.testing.memory_disk import MemoryDisk

PATH = "/data/00000000000000000000.txnindex"
FIRST = AbortedTransaction(producer_id=7, first_offset=10, last_offset=20, last_stable_offset=21)
# Began before the first was over, and held the last stable offset back until its own end.
SECOND = AbortedTransaction(producer_id=8, first_offset=15, last_offset=40, last_stable_offset=41)
THIRD = AbortedTransaction(producer_id=7, first_offset=50, last_offset=60, last_stable_offset=61)


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    return disk


@pytest.fixture
def index(disk: MemoryDisk) -> TransactionIndex:
    index = TransactionIndex(disk, PATH)
    for aborted in (FIRST, SECOND, THIRD):
        index.append(aborted)
    return index


def test_a_segment_without_aborts_has_no_file(disk: MemoryDisk) -> None:
    index = TransactionIndex(disk, PATH)
    assert index.entries() == []
    index.flush()
    index.truncate_to(0)
    index.clear()
    index.close()
    assert not disk.exists(PATH)


def test_an_entry_has_34_bytes(disk: MemoryDisk, index: TransactionIndex) -> None:
    content = read_file(disk, PATH)
    assert len(content) == 3 * 34
    assert content[:34].hex(" ", 8) == "0000 0000000000000007 000000000000000a 0000000000000014 0000000000000015"


def test_entries_are_read_back(disk: MemoryDisk, index: TransactionIndex) -> None:
    index.close()
    assert TransactionIndex(disk, PATH).entries() == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound", "found", "complete"),
    [
        (0, 10, [], True),
        (0, 11, [FIRST], True),
        (0, 21, [FIRST], True),
        (20, 22, [FIRST, SECOND], True),
        (21, 30, [SECOND], True),
        (21, 100, [SECOND, THIRD], False),
        (41, 50, [], True),
        (61, 100, [], False),
    ],
)
def test_a_reader_gets_the_aborts_that_touch_its_range_and_whether_to_look_further(
    index: TransactionIndex, fetch_offset: int, upper_bound: int, found: list[AbortedTransaction], complete: bool
) -> None:
    assert index.collect(fetch_offset, upper_bound) == (found, complete)


@pytest.mark.parametrize(("offset", "left"), [(0, 0), (20, 0), (21, 1), (60, 2), (61, 3)])
def test_truncation_drops_transactions_whose_marker_is_gone(
    disk: MemoryDisk, index: TransactionIndex, offset: int, left: int
) -> None:
    index.truncate_to(offset)
    assert index.entries() == [FIRST, SECOND, THIRD][:left]
    assert disk.size(PATH) == left * 34


def test_what_comes_after_a_truncation_follows_what_was_left(disk: MemoryDisk, index: TransactionIndex) -> None:
    index.truncate_to(21)
    index.append(THIRD)
    index.close()
    assert TransactionIndex(disk, PATH).entries() == [FIRST, THIRD]


def test_an_entry_that_a_full_disk_refuses_is_known_and_written_later(disk: MemoryDisk) -> None:
    index = TransactionIndex(disk, PATH)
    index.append(FIRST)
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    index.append(SECOND)
    index.append(THIRD)
    assert index.collect(0, 100)[0] == [FIRST, SECOND, THIRD]
    with pytest.raises(OSError, match="injected"):
        index.flush()
    disk.repair()
    index.flush()
    assert list(parse_entries(read_file(disk, PATH), PATH)) == [FIRST, SECOND, THIRD]


def test_an_entry_that_waits_in_memory_can_be_truncated_away(disk: MemoryDisk) -> None:
    index = TransactionIndex(disk, PATH)
    index.append(FIRST)
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    index.append(SECOND)
    index.append(THIRD)
    index.truncate_to(60)
    assert index.entries() == [FIRST, SECOND]


def test_a_file_that_ends_within_an_entry_is_corrupt(disk: MemoryDisk) -> None:
    replace_file(disk, PATH, bytes(35))
    with pytest.raises(CorruptFile, match=PATH):
        TransactionIndex(disk, PATH)


def test_an_entry_of_a_newer_version_is_corrupt() -> None:
    with pytest.raises(CorruptFile, match="version 1"):
        list(parse_entries(b"\x00\x01" + bytes(32), PATH))


def test_flushing_makes_the_entries_survive_a_power_cut(disk: MemoryDisk, index: TransactionIndex) -> None:
    index.flush()
    disk.sync_dir("/data")
    disk.sync_dir("/")
    for seed in range(10):
        assert TransactionIndex(disk.survivor(Random(seed)), PATH).entries() == [FIRST, SECOND, THIRD]
