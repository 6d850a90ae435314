"""Reading by offset, by time, and only what is committed."""

import json
import shutil
from base64 import b64decode
from pathlib import Path

import pytest

from ottla.base.ids import TopicPartition
from ottla.log.disk import OsDisk
from ottla.log.errors import OffsetOutOfRange
from ottla.log.log_config import LogConfig
from ottla.log.outcomes import FileSlice, TimestampAndOffset
from ottla.log.partition_log import PartitionLog
from ottla.log.scan import scan_batches
from ottla.records.builder import BatchBuilder
from ottla.records.reader import read_records
from ottla.testing.clock import FixedClock
from tests.unit.log.partition_logs import (
    NOW_MS,
    append,
    at_offset,
    batch,
    bytes_of,
    headers_in,
    in_transaction,
    marker,
    offsets_in,
    open_log,
    rolling,
)

LEGACY = Path(__file__).parents[2] / "golden" / "kafka-4.3.1" / "legacy"
NOTHING = FileSlice(None, 0, 0)
ENOUGH = 1 << 20
SIZE = len(batch())


@pytest.fixture
def log() -> PartitionLog:
    """Ten batches of one record, in segments of four: 0 to 3, 4 to 7, 8 and 9."""
    log = open_log(config=rolling(batches=4))
    append(log, *(batch(timestamp=NOW_MS + number) for number in range(10)))
    return log


class TestByOffset:
    def test_a_read_ends_with_its_segment(self, log: PartitionLog) -> None:
        assert offsets_in(log.read(0, ENOUGH, 10)) == [0, 1, 2, 3]
        assert offsets_in(log.read(2, ENOUGH, 10)) == [2, 3]
        assert offsets_in(log.read(4, ENOUGH, 10)) == [4, 5, 6, 7]
        assert offsets_in(log.read(9, ENOUGH, 10)) == [9]

    def test_reading_on_meets_every_record_once(self, log: PartitionLog) -> None:
        met: list[int] = []
        while found := offsets_in(log.read(len(met), 2 * SIZE, 10)):
            met += found
        assert met == list(range(10))

    def test_the_batch_that_holds_the_offset_comes_whole(self) -> None:
        log = open_log()
        append(log, batch(count=5), batch(count=5))
        assert offsets_in(log.read(7, ENOUGH, 10)) == [5, 6, 7, 8, 9]

    def test_at_the_end_of_the_log_there_is_nothing(self, log: PartitionLog) -> None:
        assert log.read(10, ENOUGH, 10) == NOTHING
        assert log.read(10, ENOUGH, 100) == NOTHING

    @pytest.mark.parametrize("offset", [-1, 11, 2**62])
    def test_outside_of_the_log_is_an_error(self, log: PartitionLog, offset: int) -> None:
        with pytest.raises(OffsetOutOfRange) as problem:
            log.read(offset, ENOUGH, 10)
        assert problem.value.offset == offset

    def test_before_the_log_start_offset_is_an_error(self, log: PartitionLog) -> None:
        log.advance_log_start_offset(2)
        with pytest.raises(OffsetOutOfRange):
            log.read(1, ENOUGH, 10)
        assert offsets_in(log.read(2, ENOUGH, 10)) == [2, 3]


class TestLimits:
    def test_at_most_max_bytes_are_read_even_if_that_cuts_a_batch(self, log: PartitionLog) -> None:
        part = log.read(0, 2 * SIZE + 10, 10)
        assert part.size == 2 * SIZE + 10
        assert offsets_in(part) == [0, 1]

    def test_the_first_batch_is_whole_if_asked_for(self, log: PartitionLog) -> None:
        """KIP-74: a consumer makes progress even if a record is larger than its limit."""
        assert log.read(0, 10, 10).size == 10
        assert log.read(0, 0, 10).size == 0
        assert offsets_in(log.read(0, 0, 10, min_one_batch=True)) == [0]
        assert log.read(0, 2 * SIZE, 10, min_one_batch=True).size == 2 * SIZE

    @pytest.mark.parametrize("upper_bound", range(11))
    def test_nothing_at_or_after_the_upper_bound_is_read(self, log: PartitionLog, upper_bound: int) -> None:
        assert offsets_in(log.read(0, ENOUGH, upper_bound)) == list(range(min(upper_bound, 4)))
        assert offsets_in(log.read(8, ENOUGH, upper_bound)) == list(range(8, upper_bound))

    def test_an_upper_bound_within_a_batch_leaves_the_batch_out(self) -> None:
        """A high watermark is always at the edge of a batch; whatever comes, half a batch is never given out."""
        log = open_log()
        append(log, batch(count=5), batch(count=5))
        assert offsets_in(log.read(0, ENOUGH, 7)) == [0, 1, 2, 3, 4]
        assert offsets_in(log.read(5, ENOUGH, 7, min_one_batch=True)) == []

    def test_what_is_appended_later_is_not_in_the_slice(self, log: PartitionLog) -> None:
        part = log.read(8, ENOUGH, 10)
        append(log, batch())
        assert offsets_in(part) == [8, 9]


class TestGaps:
    """Compaction removes records and whole batches; offsets stay."""

    @pytest.fixture
    def compacted(self) -> PartitionLog:
        log = open_log(config=LogConfig(cleanup_policy=("compact",), index_interval_bytes=0))
        log.append_as_follower(at_offset(3, batch()) + at_offset(7, batch()))
        log.roll(20)
        log.append_as_follower(at_offset(25, batch()))
        log.advance_high_watermark(26)
        return log

    @pytest.mark.parametrize(
        ("offset", "found"), [(0, [3, 7]), (4, [7]), (7, [7]), (8, [25]), (19, [25]), (20, [25]), (25, [25])]
    )
    def test_a_reader_is_given_what_comes_next(self, compacted: PartitionLog, offset: int, found: list[int]) -> None:
        assert offsets_in(compacted.read(offset, ENOUGH, 26)) == found

    def test_the_upper_bound_holds_across_a_gap(self, compacted: PartitionLog) -> None:
        assert compacted.read(8, ENOUGH, 20) == NOTHING
        assert offsets_in(compacted.read(8, ENOUGH, 25)) == []
        assert offsets_in(compacted.read(0, ENOUGH, 5)) == [3]


class TestByTime:
    @pytest.mark.parametrize("number", range(10))
    def test_the_first_record_that_is_not_older_is_found(self, log: PartitionLog, number: int) -> None:
        assert log.offset_for_timestamp(NOW_MS + number) == TimestampAndOffset(NOW_MS + number, number, 0)

    def test_before_all_records_is_the_first_and_after_all_none(self, log: PartitionLog) -> None:
        assert log.offset_for_timestamp(0) == TimestampAndOffset(NOW_MS, 0, 0)
        assert log.offset_for_timestamp(NOW_MS + 10) is None

    def test_the_answer_has_the_epoch_of_its_offset(self, log: PartitionLog) -> None:
        append(log, batch(timestamp=NOW_MS + 100), leader_epoch=6)
        assert log.offset_for_timestamp(NOW_MS + 50) == TimestampAndOffset(NOW_MS + 100, 10, 6)

    def test_times_need_not_rise(self) -> None:
        log = open_log()
        append(log, *(batch(timestamp=timestamp) for timestamp in (50, 90, 70, 95, 60)))
        found = [log.offset_for_timestamp(timestamp) for timestamp in (40, 51, 80, 91, 96)]
        assert [answer and answer.offset for answer in found] == [0, 1, 1, 3, None]

    def test_deleted_records_are_not_found(self, log: PartitionLog) -> None:
        log.advance_log_start_offset(2)
        assert log.offset_for_timestamp(0) == TimestampAndOffset(NOW_MS + 2, 2, 0)

    def test_it_is_found_after_a_clean_stop_too(self) -> None:
        log = open_log(config=LogConfig())
        disk = log._disk
        append(log, *(batch(timestamp=NOW_MS + number) for number in range(5)))
        log.close()
        assert open_log(disk, LogConfig(), clean=True).offset_for_timestamp(NOW_MS + 3) == (NOW_MS + 3, 3, 0)

    def test_the_largest_time_has_its_first_record(self) -> None:
        """KIP-734: within a batch, between batches and between segments."""
        log = open_log()
        builder = BatchBuilder()
        for timestamp in (10, 80, 30, 80):
            builder.append(timestamp, None, b"value")
        append(log, batch(timestamp=70), builder.build(), batch(timestamp=80))
        log.roll()
        append(log, batch(timestamp=80), batch(timestamp=60))
        assert log.offset_of_max_timestamp() == TimestampAndOffset(80, 2, 0)

    def test_an_empty_log_has_no_largest_time(self) -> None:
        assert open_log().offset_of_max_timestamp() is None
        assert open_log().offset_for_timestamp(0) is None


class TestCommitted:
    """What a reader at `read_committed` may see, and what it must leave out (KIP-98)."""

    def test_the_last_stable_offset_is_the_high_watermark_without_transactions(self) -> None:
        log = open_log()
        append(log, batch(), batch())
        log.append_as_leader(batch(), 0)
        assert log.last_stable_offset == log.high_watermark == 2

    def test_an_open_transaction_holds_it_back(self) -> None:
        log = open_log()
        append(log, batch(), in_transaction(7, 0), batch())
        assert log.last_stable_offset == 1
        append(log, marker(7, committed=True))
        assert log.last_stable_offset == 4

    def test_a_marker_that_is_not_replicated_holds_it_back_as_well(self) -> None:
        log = open_log()
        append(log, batch(), in_transaction(7, 0), batch())
        log.append_as_leader(marker(7, committed=True), 0)
        assert log.last_stable_offset == 1
        log.advance_high_watermark(4)
        assert log.last_stable_offset == 4

    def test_it_is_never_beyond_the_high_watermark(self) -> None:
        log = open_log()
        append(log, batch())
        log.append_as_leader(batch(), 0)
        log.append_as_leader(in_transaction(7, 0), 0)
        assert log.last_stable_offset == 1

    @pytest.fixture
    def aborted(self) -> PartitionLog:
        """7 aborts 0 to 2, 8 aborts 1 to 5, 9 commits 3 to 6; the markers of 8 and 9 are in a second segment."""
        log = open_log()
        append(log, in_transaction(7, 0), in_transaction(8, 0), marker(7, committed=False), in_transaction(9, 0))
        log.roll()
        append(log, batch(), marker(8, committed=False), marker(9, committed=True), batch())
        return log

    @pytest.mark.parametrize(
        ("from_offset", "upper_bound", "producers"),
        [(0, 8, [7, 8]), (0, 1, [7]), (0, 2, [7, 8]), (2, 3, [7, 8]), (3, 4, [8]), (4, 8, [8]), (6, 8, []), (7, 8, [])],
    )
    def test_the_aborted_transactions_of_a_range_are_those_that_touch_it(
        self, aborted: PartitionLog, from_offset: int, upper_bound: int, producers: list[int]
    ) -> None:
        found = aborted.aborted_transactions(from_offset, upper_bound)
        assert [transaction.producer_id for transaction in found] == producers

    @pytest.mark.parametrize(
        ("from_offset", "batches", "producers"), [(0, 1, [7]), (0, 2, [7, 8]), (3, 1, [8]), (4, 1, [8]), (6, 2, [])]
    )
    def test_those_in_a_part_that_was_read_reach_to_the_next_entry_of_the_index(
        self, aborted: PartitionLog, from_offset: int, batches: int, producers: list[int]
    ) -> None:
        headers = [header for header in headers_in(aborted) if header.base_offset >= from_offset]
        part = aborted.read(from_offset, sum(header.size for header in headers[:batches]), 8)
        found = aborted.aborted_in(from_offset, part, 8)
        assert [transaction.producer_id for transaction in found] == producers

    def test_they_are_the_same_after_the_index_was_lost(self, aborted: PartitionLog) -> None:
        expected = aborted.aborted_transactions(0, 8)
        survivor = aborted._disk.survivor_of_kill()
        survivor.remove("/data/orders-0/00000000000000000000.txnindex")
        assert open_log(survivor).aborted_transactions(0, 8) == expected


@pytest.mark.parametrize("name", sorted(path.name for path in LEGACY.iterdir()))
def test_segments_of_the_older_formats_are_read_as_kafka_reads_them(name: str, tmp_path: Path) -> None:
    """Magic 0 and 1, left on the disk by brokers before 0.11; they come without indexes."""
    shutil.copytree(LEGACY / name, tmp_path / name)
    topic, _, number = name.rpartition("-")
    log = PartitionLog.open(
        OsDisk(), str(tmp_path / name), TopicPartition(topic, int(number)), LogConfig(), FixedClock(NOW_MS)
    )
    records = [
        record
        for segment in log.segments
        for _, header, data in scan_batches(segment.file, 0, segment.size)
        for record in read_records(data, 0, header)
    ]
    expected = json.loads((LEGACY.parent / "legacy.expected" / f"{name}.json").read_text())["records"]
    assert [(record.offset, record.timestamp, record.key, record.value) for record in records] == [
        (
            record["offset"],
            record["timestamp"],
            None if record["key"] is None else b64decode(record["key"]),
            None if record["value"] is None else b64decode(record["value"]),
        )
        for record in expected
    ]
    assert log.log_end_offset == expected[-1]["offset"] + 1
    for record in expected:
        part = log.read(record["offset"], ENOUGH, log.log_end_offset, min_one_batch=True)
        assert part.size > 0
        assert record["offset"] in offsets_in(part)
    new = batch()
    assert append(log, new) == expected[-1]["offset"] + 1
    assert bytes_of(log.read(log.log_end_offset - 1, ENOUGH, log.log_end_offset)) == new
    log.close()
