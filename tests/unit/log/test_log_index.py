"""The sparse indexes, entry by entry."""

import errno

import pytest

from ottla.log.errors import CorruptFile
from ottla.log.files import read_file
from ottla.log.index import OffsetIndex, TimeIndex
from ottla.testing.memory_disk import MemoryDisk

PATH = "/data/00000000000000000100.index"


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    return disk


@pytest.fixture
def offsets(disk: MemoryDisk) -> OffsetIndex:
    """Batches that end at 104, 109 and 119, at positions 0, 500 and 1,000."""
    index = OffsetIndex(disk, PATH, 100)
    for offset, position in ((104, 0), (109, 500), (119, 1000)):
        index.append(offset, position)
    return index


@pytest.fixture
def times(disk: MemoryDisk) -> TimeIndex:
    index = TimeIndex(disk, PATH, 100)
    for timestamp, offset in ((1000, 104), (2000, 109), (3000, 119)):
        index.maybe_append(timestamp, offset)
    return index


class TestOffsetIndex:
    def test_an_entry_is_a_relative_offset_and_a_position_of_four_bytes_each(
        self, disk: MemoryDisk, offsets: OffsetIndex
    ) -> None:
        offsets.flush()
        assert read_file(disk, PATH).hex(" ", 4) == "00000004 00000000 00000009 000001f4 00000013 000003e8"

    @pytest.mark.parametrize(
        ("offset", "position"),
        [(100, 0), (103, 0), (104, 0), (108, 0), (109, 500), (118, 500), (119, 1000), (10_000, 1000)],
    )
    def test_a_lookup_finds_the_last_entry_that_is_not_after_the_offset(
        self, offsets: OffsetIndex, offset: int, position: int
    ) -> None:
        assert offsets.position_before(offset) == position

    def test_an_empty_index_sends_everyone_to_the_start(self, disk: MemoryDisk) -> None:
        index = OffsetIndex(disk, PATH, 100)
        assert index.position_before(100_000) == 0
        assert index.last_offset == 100

    def test_it_reads_the_same_from_the_file_as_from_memory(self, disk: MemoryDisk, offsets: OffsetIndex) -> None:
        offsets.close()
        reopened = OffsetIndex(disk, PATH, 100)
        assert [reopened.entry(slot) for slot in range(len(reopened))] == [(104, 0), (109, 500), (119, 1000)]
        assert reopened.position_before(110) == 500
        assert reopened.last_offset == 119

    def test_many_entries_are_partly_in_the_file_and_partly_in_memory(self, disk: MemoryDisk) -> None:
        index = OffsetIndex(disk, PATH, 100)
        for count in range(1300):
            index.append(100 + 2 * count, 10 * count)
        assert 0 < disk.size(PATH) < 1300 * 8, "the test has lost its point if nothing or everything is written"
        assert [index.position_before(100 + 2 * count + 1) for count in range(1300)] == [
            10 * count for count in range(1300)
        ]

    @pytest.mark.parametrize(("offset", "left"), [(100, 0), (104, 0), (105, 1), (109, 1), (119, 2), (120, 3)])
    def test_truncation_drops_the_entries_of_the_offset_and_after(
        self, offsets: OffsetIndex, offset: int, left: int
    ) -> None:
        offsets.truncate_to(offset)
        assert len(offsets) == left
        assert offsets.last_offset == (100, 104, 109, 119)[left]

    def test_truncation_reaches_into_the_file(self, disk: MemoryDisk, offsets: OffsetIndex) -> None:
        offsets.flush()
        offsets.append(129, 1500)
        offsets.truncate_to(109)
        assert (len(offsets), disk.size(PATH)) == (1, 8)
        offsets.append(110, 600)
        offsets.close()
        reopened = OffsetIndex(disk, PATH, 100)
        assert [reopened.entry(slot) for slot in range(len(reopened))] == [(104, 0), (110, 600)]

    def test_offsets_reach_to_two_to_the_31_beyond_the_base(self, disk: MemoryDisk) -> None:
        index = OffsetIndex(disk, PATH, 100)
        index.append(100 + 2**31 - 1, 0)
        assert index.last_offset == 100 + 2**31 - 1
        with pytest.raises(AssertionError, match="does not fit"):
            index.append(100 + 2**31, 10)

    def test_an_offset_that_is_not_after_the_last_is_a_bug(self, offsets: OffsetIndex) -> None:
        with pytest.raises(AssertionError, match="is not after the last"):
            offsets.append(119, 2000)

    def test_it_is_full_when_segment_index_bytes_hold_no_further_entry(self, offsets: OffsetIndex) -> None:
        assert [offsets.entries_left(max_bytes) for max_bytes in (16, 24, 31, 32, 80)] == [-1, 0, 0, 1, 7]

    def test_clearing_it_empties_the_file(self, disk: MemoryDisk, offsets: OffsetIndex) -> None:
        offsets.flush()
        offsets.clear()
        assert (len(offsets), disk.size(PATH), offsets.last_offset) == (0, 0, 100)


class TestTimeIndex:
    def test_an_entry_is_a_timestamp_of_eight_bytes_and_a_relative_offset_of_four(
        self, disk: MemoryDisk, times: TimeIndex
    ) -> None:
        times.truncate_to(119)
        times.flush()
        assert read_file(disk, PATH).hex() == "00000000000003e8" + "00000004" + "00000000000007d0" + "00000009"

    @pytest.mark.parametrize(
        ("timestamp", "offset"), [(0, 100), (999, 100), (1000, 104), (2999, 109), (3000, 119), (9999, 119)]
    )
    def test_a_lookup_finds_the_last_entry_that_is_not_later(
        self, times: TimeIndex, timestamp: int, offset: int
    ) -> None:
        assert times.offset_before(timestamp) == offset

    def test_a_time_that_is_not_later_than_the_last_adds_nothing(self, times: TimeIndex) -> None:
        times.maybe_append(3000, 129)
        times.maybe_append(2500, 139)
        assert times.last_entry == (3000, 119)

    def test_an_empty_index_begins_before_all_time(self, disk: MemoryDisk) -> None:
        assert TimeIndex(disk, PATH, 100).last_entry == (-1, 100)

    @pytest.mark.parametrize(("offset", "last"), [(104, (-1, 100)), (110, (2000, 109)), (200, (3000, 119))])
    def test_truncation_goes_by_offset(self, times: TimeIndex, offset: int, last: tuple[int, int]) -> None:
        times.truncate_to(offset)
        assert times.last_entry == last


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_a_file_that_ends_within_an_entry_is_corrupt(disk: MemoryDisk, kind: type[OffsetIndex | TimeIndex]) -> None:
    file = disk.open(PATH, create=True)
    file.write_at(0, bytes(25))
    file.close()
    with pytest.raises(CorruptFile, match=PATH):
        kind(disk, PATH, 100)


def test_a_file_that_was_cut_behind_its_back_is_corrupt(disk: MemoryDisk, offsets: OffsetIndex) -> None:
    offsets.close()
    reopened = OffsetIndex(disk, PATH, 100)
    disk.open(PATH).truncate(8)
    with pytest.raises(CorruptFile, match="beyond the end"):
        reopened.entry(2)


def test_entries_that_a_full_disk_refuses_wait_in_memory(disk: MemoryDisk) -> None:
    index = OffsetIndex(disk, PATH, 100)
    index.create()
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    for count in range(600):
        index.append(100 + count, 10 * count)
    assert index.position_before(100 + 599) == 5990
    with pytest.raises(OSError, match="injected"):
        index.flush()
    disk.repair()
    index.flush()
    assert disk.size(PATH) == 600 * 8
    assert OffsetIndex(disk, PATH, 100).entry(599) == (100 + 599, 5990)


def test_forgetting_an_index_writes_nothing(disk: MemoryDisk, offsets: OffsetIndex) -> None:
    offsets.create()
    offsets.forget()
    assert disk.size(PATH) == 0
    assert disk.open_files == 0


class TestManyEntries:
    """An index of more entries than are read at once, some in its file and some in memory."""

    @pytest.mark.parametrize("count", [64, 65, 66, 200, 1200])
    @pytest.mark.parametrize("power", [1, 3])
    def test_every_offset_finds_the_last_entry_that_is_not_after_it(
        self, disk: MemoryDisk, count: int, power: int
    ) -> None:
        index = OffsetIndex(disk, PATH, 100)
        entries = [(slot**power, slot * 10) for slot in range(1, count + 1)]
        for offset, position in entries:
            index.append(100 + offset, position)
        for slot in {0, 1, 31, 32, 33, 62, 63, 64, 65, count // 2, count - 2, count - 1} & set(range(count)):
            offset, position = entries[slot]
            assert index.position_before(100 + offset) == position
            assert index.position_before(100 + offset - 1) == position - 10

    def test_times_that_leap_are_found_too(self, disk: MemoryDisk) -> None:
        index = TimeIndex(disk, PATH, 0)
        times = [slot if slot < 900 else slot * 1_000_000 for slot in range(1, 1001)]
        for slot, timestamp in enumerate(times):
            index.maybe_append(timestamp, slot)
        assert [index.offset_before(timestamp) for timestamp in times] == list(range(1000))
        assert [index.offset_before(timestamp + 1) for timestamp in times[899:]] == list(range(899, 1000))
        assert index.offset_before(0) == 0

    def test_cutting_leaves_what_is_before(self, disk: MemoryDisk) -> None:
        index = OffsetIndex(disk, PATH, 0)
        for slot in range(1, 1001):
            index.append(slot * 7, slot)
        index.truncate_to(7 * 600)
        assert len(index) == 599
        assert index.position_before(1 << 20) == 599
