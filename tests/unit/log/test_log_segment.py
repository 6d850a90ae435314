"""One segment: what it indexes, finds, drops, and when it is full."""

import errno

import pytest

from ottla.log.files import read_file
from ottla.log.log_config import LogConfig
from ottla.log.segment import Segment
from ottla.records.builder import BatchBuilder
from ottla.testing.memory_disk import MemoryDisk, MemoryFile
from tests.unit.log.partition_logs import NOW_MS, at_offset, batch, header_of

DIRECTORY = "/data/orders-0"
BASE_OFFSET = 100
SIZE = len(batch())


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dirs(DIRECTORY)
    return disk


def new_segment(disk: MemoryDisk, index_interval_bytes: int = 0) -> Segment:
    segment = Segment(disk, DIRECTORY, BASE_OFFSET, index_interval_bytes=index_interval_bytes, created_ms=NOW_MS)
    segment.create()
    return segment


def put(segment: Segment, offset: int, data: bytearray | None = None) -> None:
    data = at_offset(offset, data or batch(timestamp=NOW_MS + offset))
    segment.append(data, [header_of(data)])


@pytest.fixture
def segment(disk: MemoryDisk) -> Segment:
    """Batches of one record at 100 to 104, each a millisecond later than the one before."""
    segment = new_segment(disk)
    for offset in range(100, 105):
        put(segment, offset)
    return segment


def entries(segment: Segment) -> list[tuple[int, int]]:
    return [segment.offset_index.entry(slot) for slot in range(len(segment.offset_index))]


class TestRoomAhead:
    """What a disk that can reserve is asked for; the one in memory cannot, and says so."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
        asked: list[tuple[int, int]] = []

        def reserve(_: MemoryFile, position: int, size: int) -> bool:
            asked.append((position, size))
            return True

        monkeypatch.setattr(MemoryFile, "reserve", reserve)
        return asked

    def test_a_segment_that_has_grown_large_asks_for_a_part_of_its_size(
        self, disk: MemoryDisk, asked: list[tuple[int, int]]
    ) -> None:
        segment = new_segment(disk)
        for offset in range(100, 140):
            put(segment, offset, batch(bytes(200_000)))
        assert len(asked) > 2
        assert all(size == position // 4 for position, size in asked)
        assert [position for position, _ in asked[1:]] > [position + size for position, size in asked[:-1]]

    def test_what_is_left_is_given_back_when_the_segment_stops_being_active(
        self, disk: MemoryDisk, asked: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given_back: list[int] = []
        monkeypatch.setattr(MemoryFile, "truncate", lambda _, size: given_back.append(size))
        segment = new_segment(disk)
        put(segment, 100)
        segment.become_inactive()
        assert given_back == []
        for offset in range(101, 120):
            put(segment, offset, batch(bytes(200_000)))
        segment.become_inactive()
        segment.become_inactive()
        assert asked
        assert given_back == [segment.size]

    def test_a_disk_that_cannot_is_asked_once(self, disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []
        monkeypatch.setattr(MemoryFile, "reserve", lambda _, position, size: bool(asked.append(position)))
        segment = new_segment(disk)
        for offset in range(100, 120):
            put(segment, offset, batch(bytes(200_000)))
        assert len(asked) == 1


class TestIndexing:
    def test_the_files_are_there_before_the_first_batch(self, disk: MemoryDisk) -> None:
        new_segment(disk)
        assert disk.list_dir(DIRECTORY) == [f"00000000000000000100.{kind}" for kind in ("index", "log", "timeindex")]

    def test_the_first_batch_needs_no_entry(self, segment: Segment) -> None:
        assert entries(segment) == [(offset, (offset - 100) * SIZE) for offset in range(101, 105)]

    def test_an_entry_is_due_once_more_than_the_interval_has_been_written(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk, index_interval_bytes=2 * SIZE)
        for offset in range(100, 110):
            put(segment, offset)
        assert entries(segment) == [(103, 3 * SIZE), (106, 6 * SIZE), (109, 9 * SIZE)]

    def test_an_entry_has_the_last_offset_of_its_batch(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        put(segment, 100)
        put(segment, 101, batch(count=5))
        assert entries(segment) == [(105, SIZE)]

    def test_the_time_index_gets_the_largest_time_so_far(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        for offset, timestamp in ((100, 50), (101, 90), (102, 70), (103, 95)):
            put(segment, offset, batch(timestamp=timestamp))
        found = [segment.time_index.entry(slot) for slot in range(len(segment.time_index))]
        assert found == [(90, 101), (95, 103)]

    def test_one_more_time_entry_is_made_when_the_segment_stops_being_active(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk, index_interval_bytes=4096)
        put(segment, 100, batch(timestamp=50))
        put(segment, 101, batch(timestamp=40))
        segment.become_inactive()
        segment.become_inactive()
        assert [segment.time_index.entry(slot) for slot in range(len(segment.time_index))] == [(50, 100)]


class TestFinding:
    @pytest.mark.parametrize("offset", range(100, 105))
    def test_every_offset_is_found(self, segment: Segment, offset: int) -> None:
        found = segment.find(offset)
        assert found is not None
        assert (found[0], found[1].base_offset) == ((offset - 100) * SIZE, offset)

    def test_an_offset_within_a_batch_finds_that_batch(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        put(segment, 100, batch(count=10))
        put(segment, 110, batch(count=10))
        for offset in range(110, 120):
            found = segment.find(offset)
            assert found is not None
            assert found[1].base_offset == 110

    def test_an_offset_that_compaction_removed_finds_what_comes_next(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        for offset in (100, 150, 170):
            put(segment, offset)
        found = segment.find(120)
        assert found is not None
        assert found[1].base_offset == 150

    def test_an_offset_after_the_end_is_not_found(self, segment: Segment) -> None:
        assert segment.find(105) is None
        assert segment.position_of_end(105) == segment.size
        assert segment.position_of_end(103) == 3 * SIZE

    @pytest.mark.parametrize(
        ("timestamp", "found"), [(0, 100), (NOW_MS + 102, 102), (NOW_MS + 104, 104), (NOW_MS + 105, None)]
    )
    def test_a_timestamp_finds_the_first_record_that_is_not_older(
        self, segment: Segment, timestamp: int, found: int | None
    ) -> None:
        answer = segment.find_timestamp(timestamp, 0, segment.size)
        assert (answer[1] if answer else None) == found

    def test_a_timestamp_is_looked_up_within_the_batch(self, disk: MemoryDisk) -> None:
        builder = BatchBuilder()
        for timestamp in (10, 40, 20, 50):
            builder.append(timestamp, None, b"value")
        segment = new_segment(disk)
        put(segment, 100, builder.build())
        assert segment.find_timestamp(30, 0, segment.size) == (40, 101)
        assert segment.find_timestamp(30, 102, segment.size) == (50, 103)
        assert segment.find_timestamp(50, 0, segment.size) == (50, 103)

    def test_the_next_offset_follows_the_last_batch(self, disk: MemoryDisk, segment: Segment) -> None:
        assert segment.next_offset() == 105
        assert new_segment(disk).next_offset() == 105
        put(segment, 105, batch(count=7))
        assert segment.next_offset() == 112

    def test_an_empty_segment_ends_where_it_begins(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        assert segment.next_offset() == BASE_OFFSET
        assert segment.find(BASE_OFFSET) is None
        assert segment.first_timestamp == -1
        assert segment.max_timestamp == (-1, BASE_OFFSET)


class TestRolling:
    def full(self, segment: Segment, **differences: int) -> bool:
        """Whether one more batch, of a few bytes at the same time, belongs into a new segment."""
        config = LogConfig(
            segment_bytes=differences.pop("max_bytes", 10_000),
            segment_index_bytes=differences.pop("index_bytes", 4096),
        )
        batch_ = {"incoming": 10, "last_offset": 105, "max_timestamp": NOW_MS, "now_ms": NOW_MS, "max_ms": 1000}
        return segment.should_roll(config, **{**batch_, **differences})

    def test_there_is_room(self, segment: Segment) -> None:
        assert not self.full(segment)

    def test_by_size(self, segment: Segment) -> None:
        assert self.full(segment, max_bytes=segment.size + 9)
        assert not self.full(segment, max_bytes=segment.size + 10)

    def test_by_the_time_of_its_records(self, segment: Segment) -> None:
        first = NOW_MS + 100
        assert not self.full(segment, max_timestamp=first + 1000)
        assert self.full(segment, max_timestamp=first + 1001)
        assert not self.full(segment, now_ms=first + 1_000_000), "the wall clock does not count if records have a time"

    def test_by_the_wall_clock_if_its_records_have_no_time(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        put(segment, 100, batch(timestamp=-1))
        assert not self.full(segment, now_ms=NOW_MS + 1000)
        assert self.full(segment, now_ms=NOW_MS + 1001)

    def test_never_by_time_while_it_is_empty(self, disk: MemoryDisk) -> None:
        assert not self.full(new_segment(disk), now_ms=NOW_MS + 1_000_000)

    def test_by_a_full_offset_index(self, segment: Segment) -> None:
        segment.time_index.clear()
        assert len(segment.offset_index) == 4
        assert self.full(segment, index_bytes=39)
        assert not self.full(segment, index_bytes=40)

    def test_by_a_time_index_with_one_entry_left(self, segment: Segment) -> None:
        segment.offset_index.clear()
        assert len(segment.time_index) == 4
        assert self.full(segment, index_bytes=5 * 12)
        assert not self.full(segment, index_bytes=6 * 12)

    def test_by_an_offset_that_does_not_fit_the_indexes(self, segment: Segment) -> None:
        assert not self.full(segment, last_offset=BASE_OFFSET + 2**31 - 1)
        assert self.full(segment, last_offset=BASE_OFFSET + 2**31)

    def test_a_file_never_exceeds_what_java_can_address(self, segment: Segment) -> None:
        assert self.full(segment, incoming=2**31 - 1 - segment.size + 1, max_bytes=2**40)


class TestRoom:
    """`has_room` is what `should_roll` remembers: it may be too careful, and never wrong."""

    def roomy(self, segment: Segment, config: LogConfig, offset: int, size: int = SIZE, late_ms: int = 0) -> bool:
        return segment.has_room(config, size, offset, NOW_MS + late_ms)

    @pytest.mark.parametrize("index_interval_bytes", [0, SIZE - 1, 3 * SIZE, 100 * SIZE])
    @pytest.mark.parametrize("segment_index_bytes", [60, 200, 4096])
    def test_where_there_is_room_no_roll_is_due(
        self, disk: MemoryDisk, index_interval_bytes: int, segment_index_bytes: int
    ) -> None:
        config = LogConfig(segment_bytes=300 * SIZE, segment_index_bytes=segment_index_bytes)
        segment, offset = new_segment(disk, index_interval_bytes), BASE_OFFSET
        while True:
            has_room = segment.has_room(config, SIZE, offset, NOW_MS + offset)
            if segment.should_roll(config, SIZE, offset, NOW_MS + offset, NOW_MS, max_ms=250):
                break
            put(segment, offset)
            offset += 1
        assert not has_room

    def test_it_ends_with_the_time_and_the_size_of_the_segment(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk, index_interval_bytes=4096)
        put(segment, 100)
        config = LogConfig(segment_bytes=10_000)
        assert not segment.should_roll(config, SIZE, 101, NOW_MS, NOW_MS, max_ms=1000)
        assert self.roomy(segment, config, 101, late_ms=1100)
        assert not self.roomy(segment, config, 101, late_ms=1101)
        assert self.roomy(segment, config, 101, size=10_000 - SIZE)
        assert not self.roomy(segment, config, 101, size=10_000 - SIZE + 1)
        assert not self.roomy(segment, config, BASE_OFFSET + 2**31)
        assert not self.roomy(segment, LogConfig(segment_bytes=10_000), 101), "another configuration"

    def test_truncation_ends_it(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk, index_interval_bytes=4096)
        put(segment, 100)
        config = LogConfig()
        segment.should_roll(config, SIZE, 101, NOW_MS, NOW_MS, max_ms=1000)
        segment.truncate_to(100)
        assert not self.roomy(segment, config, 100)


class TestTruncating:
    @pytest.mark.parametrize("offset", range(100, 106))
    def test_what_is_left_ends_before_the_offset(self, segment: Segment, offset: int) -> None:
        segment.truncate_to(offset)
        assert segment.next_offset() == offset
        assert segment.size == segment.file.size() == (offset - 100) * SIZE
        assert entries(segment) == [(left, (left - 100) * SIZE) for left in range(101, offset)]
        assert segment.max_timestamp == ((NOW_MS + offset - 1, offset - 1) if offset > 100 else (-1, BASE_OFFSET))

    def test_the_batch_that_holds_the_offset_goes_as_a_whole(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        put(segment, 100)
        put(segment, 101, batch(count=10))
        segment.truncate_to(105)
        assert segment.next_offset() == 101

    def test_appends_go_on_where_it_was_cut(self, segment: Segment) -> None:
        segment.truncate_to(102)
        put(segment, 102, batch(b"other", timestamp=NOW_MS + 500))
        assert segment.next_offset() == 103
        assert segment.max_timestamp == (NOW_MS + 500, 102)

    def test_the_first_time_is_read_again_after_all_was_cut(self, segment: Segment) -> None:
        assert segment.first_timestamp == NOW_MS + 100
        segment.truncate_to(100)
        put(segment, 100, batch(timestamp=7))
        assert segment.first_timestamp == 7


class TestFailing:
    def test_a_batch_that_was_not_written_is_not_there(self, disk: MemoryDisk, segment: Segment) -> None:
        before = (segment.size, entries(segment), segment.max_timestamp)
        disk.fail_at(disk.calls + 1, errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            put(segment, 105)
        assert (segment.size, entries(segment), segment.max_timestamp) == before

    def test_the_next_batch_takes_its_place(self, disk: MemoryDisk, segment: Segment) -> None:
        disk.fail_at(disk.calls + 1, errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            put(segment, 105, batch(b"x" * 1000))
        put(segment, 105)
        put(segment, 106)
        assert segment.next_offset() == 107
        assert segment.find(106) is not None


class TestFiles:
    def test_renaming_moves_every_file_and_keeps_it_readable(self, disk: MemoryDisk, segment: Segment) -> None:
        segment.rename(".deleted")
        assert disk.list_dir(DIRECTORY) == [
            f"00000000000000000100.{kind}.deleted" for kind in ("index", "log", "timeindex")
        ]
        assert segment.find(103) is not None
        segment.rename("")
        assert disk.exists(f"{DIRECTORY}/00000000000000000100.log")

    def test_deleting_removes_every_file_even_if_some_are_gone(self, disk: MemoryDisk, segment: Segment) -> None:
        disk.remove(f"{DIRECTORY}/00000000000000000100.index")
        segment.delete()
        assert disk.list_dir(DIRECTORY) == []
        assert disk.open_files == 0

    def test_the_time_of_a_segment_without_times_is_its_files(self, disk: MemoryDisk) -> None:
        segment = new_segment(disk)
        disk.now_ms = 4711
        put(segment, 100, batch(timestamp=-1))
        assert segment.largest_timestamp() == 4711
        put(segment, 101, batch(timestamp=5))
        assert segment.largest_timestamp() == 5

    def test_closing_writes_the_indexes(self, disk: MemoryDisk, segment: Segment) -> None:
        assert disk.size(f"{DIRECTORY}/00000000000000000100.index") == 0
        segment.close()
        assert len(read_file(disk, f"{DIRECTORY}/00000000000000000100.index")) == 4 * 8
        assert disk.open_files == 0
