"""Appending, as leader and as follower: offsets, epochs, segments, and what a producer may repeat."""

import pytest

from ottla.log.errors import OffsetOutOfRange
from ottla.log.log_config import LogConfig
from ottla.log.outcomes import Appended
from ottla.log.producer_state import AppendOrigin
from ottla.records.batch import read_header
from ottla.records.header import ChecksumMismatch
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from tests.unit.log.partition_logs import (
    CONFIG,
    NOW_MS,
    PARTITION,
    append,
    at_offset,
    base_offsets,
    batch,
    bytes_of,
    contiguous,
    files_in,
    headers_in,
    in_transaction,
    marker,
    offsets_in,
    open_log,
    produced,
    rolling,
)


class TestLeader:
    def test_batches_get_the_offsets_at_the_end_of_the_log(self) -> None:
        log = open_log()
        assert log.append_as_leader(batch(count=3), 0) == Appended(ErrorCode.NONE, 0, 2)
        assert log.append_as_leader(batch(count=2), 0) == Appended(ErrorCode.NONE, 3, 4)
        assert log.log_end_offset == 5

    def test_offset_and_leader_epoch_are_written_into_the_batch_itself(self) -> None:
        log = open_log()
        append(log, batch(count=3))
        data = batch()
        append(log, data, leader_epoch=9)
        header = read_header(data)
        assert (header.base_offset, header.partition_leader_epoch) == (3, 9)
        assert bytes_of(log.read(3, 1000, 100)) == data

    @pytest.mark.parametrize("with_header", [True, False])
    def test_a_batch_that_changed_since_it_was_checked_is_not_written(self, with_header: bool) -> None:
        log = open_log()
        append(log, batch(count=3))
        changed = batch(b"value")
        header = read_header(changed) if with_header else None
        changed[-1] ^= 1
        with pytest.raises(ChecksumMismatch, match="offset 3 fails its checksum"):
            log.append_as_leader(changed, 0, header=header)
        assert log.log_end_offset == 3
        assert append(log, batch()) == 3
        assert contiguous(headers_in(log))

    def test_another_batch_in_the_place_of_the_one_that_was_checked_is_not_written(self) -> None:
        """It is sound by itself, and as long as the other."""
        log = open_log(config=LogConfig())
        append(log, batch(), batch())
        checked, other = read_header(batch(b"mine!")), batch(b"their")
        with pytest.raises(ChecksumMismatch):
            log.append_as_leader(other, 0, header=checked)
        assert log.log_end_offset == 2

    @pytest.mark.parametrize("data", [batch() + batch(), batch() + bytes(1)])
    def test_a_leader_appends_one_batch_at_a_time(self, data: bytearray) -> None:
        log = open_log()
        with pytest.raises(AssertionError):
            log.append_as_leader(data, 0)
        assert (log.log_end_offset, log.size) == (0, 0)

    def test_more_than_a_segment_holds_is_refused(self) -> None:
        log = open_log(config=LogConfig(segment_bytes=100))
        assert log.append_as_leader(batch(b"x" * 100), 0).error is ErrorCode.RECORD_LIST_TOO_LARGE
        assert (log.log_end_offset, log.size) == (0, 0)

    def test_an_epoch_begins_with_its_first_batch(self) -> None:
        log = open_log()
        append(log, batch(), batch(), leader_epoch=1)
        append(log, batch(), leader_epoch=3)
        assert log.epochs.entries == [(1, 0), (3, 2)]

    def test_an_epoch_begins_with_its_leader_even_if_nothing_is_written(self) -> None:
        log = open_log()
        append(log, batch(), leader_epoch=1)
        log.begin_leader_epoch(2)
        log.begin_leader_epoch(2)
        log.begin_leader_epoch(1)
        assert log.epochs.entries == [(1, 0), (2, 1)]


class TestProducers:
    """Each of KIP-98's promises, seen from the log."""

    def test_a_repetition_is_acknowledged_and_not_written(self) -> None:
        log = open_log()
        append(log, batch(), produced(7, 0, count=3))
        again = log.append_as_leader(produced(7, 0, count=3), 0)
        assert again == Appended(ErrorCode.NONE, 1, 3, repeated=True)
        assert log.log_end_offset == 4

    def test_a_gap_a_zombie_and_a_plain_batch_in_a_transaction_are_refused(self) -> None:
        log = open_log()
        append(log, produced(1, 0), produced(2, 0, epoch=5), in_transaction(3, 0))
        refused = [
            log.append_as_leader(produced(1, 2), 0),
            log.append_as_leader(produced(2, 1, epoch=4), 0),
            log.append_as_leader(produced(3, 1), 0),
        ]
        assert [outcome.error for outcome in refused] == [
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.INVALID_TXN_STATE,
        ]
        assert log.log_end_offset == 3

    def test_a_zombie_coordinators_marker_is_refused(self) -> None:
        log = open_log()
        append(log, in_transaction(7, 0), marker(7, committed=True, coordinator_epoch=3), in_transaction(7, 1))
        late = log.append_as_leader(marker(7, committed=False, coordinator_epoch=2), 0, AppendOrigin.COORDINATOR)
        assert late.error is ErrorCode.TRANSACTION_COORDINATOR_FENCED

    def test_a_coordinators_own_records_need_no_sequence(self) -> None:
        log = open_log()
        append(log, produced(7, 0))
        assert not log.append_as_leader(produced(7, 50), 0, AppendOrigin.COORDINATOR).error

    def test_repetitions_are_known_after_a_roll_a_clean_stop_and_a_kill(self) -> None:
        disk = MemoryDisk()
        log = open_log(disk)
        append(log, produced(7, 0))
        log.roll()
        append(log, produced(8, 0), batch())
        killed = open_log(disk.survivor_of_kill())
        assert killed.append_as_leader(produced(7, 0), 0).repeated
        assert killed.append_as_leader(produced(8, 0), 0).repeated
        log.close()
        reopened = open_log(disk, clean=True)
        assert reopened.append_as_leader(produced(7, 0), 0).repeated
        assert reopened.append_as_leader(produced(8, 0), 0) == Appended(ErrorCode.NONE, 1, 1, repeated=True)


class TestFollower:
    def test_a_batch_that_does_not_match_its_checksum_is_not_written(self) -> None:
        log = open_log()
        data = at_offset(0, batch()) + at_offset(1, batch())
        data[-1] ^= 1
        with pytest.raises(ChecksumMismatch, match="offset 1 fails its checksum"):
            log.append_as_follower(data)
        assert (log.log_end_offset, log.segments[-1].size) == (0, 0)

    def test_batches_keep_the_offsets_and_epochs_of_the_leader(self) -> None:
        log = open_log()
        sent = at_offset(0, batch(count=2), leader_epoch=1) + at_offset(2, batch(), leader_epoch=4)
        assert log.append_as_follower(bytes(sent)) == Appended(ErrorCode.NONE, 0, 2)
        assert bytes_of(log.read(0, 1000, 100)) == sent
        assert log.epochs.entries == [(1, 0), (4, 2)]

    def test_the_gaps_that_compaction_left_at_the_leader_are_kept(self) -> None:
        log = open_log()
        log.append_as_follower(at_offset(5, batch()) + at_offset(90, batch()))
        assert log.log_end_offset == 91
        assert offsets_in(log.read(6, 1000, 100)) == [90]

    @pytest.mark.parametrize("offset", [0, 4])
    def test_an_offset_that_is_already_there_is_an_error(self, offset: int) -> None:
        log = open_log()
        append(log, batch(count=5))
        with pytest.raises(OffsetOutOfRange):
            log.append_as_follower(at_offset(offset, batch()))
        with pytest.raises(OffsetOutOfRange):
            log.append_as_follower(at_offset(5, batch(count=2)) + at_offset(6, batch()))
        assert log.log_end_offset == 5

    def test_the_leader_has_decided_so_sequences_are_not_checked_but_noted(self) -> None:
        log = open_log()
        log.append_as_follower(at_offset(0, produced(7, 5)))
        log.append_as_follower(at_offset(1, produced(7, 9)))
        assert log.append_as_leader(produced(7, 9), 0).repeated

    def test_transactions_are_followed_too(self) -> None:
        log = open_log()
        log.append_as_follower(at_offset(0, in_transaction(7, 0)) + at_offset(1, in_transaction(8, 0)))
        log.append_as_follower(at_offset(2, marker(7, committed=False)) + at_offset(3, marker(8, committed=True)))
        log.advance_high_watermark(4)
        assert [(aborted.producer_id, aborted.first_offset) for aborted in log.aborted_transactions(0, 4)] == [(7, 0)]
        assert log.last_stable_offset == 4


class TestRolling:
    def test_by_size(self) -> None:
        log = open_log(config=rolling(batches=3))
        append(log, *(batch() for _ in range(7)))
        assert base_offsets(log) == [0, 3, 6]
        assert contiguous(headers_in(log))

    def test_by_age(self) -> None:
        log = open_log(config=CONFIG._replace(segment_ms=1000))
        append(log, batch(timestamp=NOW_MS), batch(timestamp=NOW_MS + 1000), batch(timestamp=NOW_MS + 1001))
        assert base_offsets(log) == [0, 2]

    @pytest.mark.parametrize(
        ("policy", "segment_ms", "rolled"),
        [(("compact",), 5000, [0, 1]), (("compact", "delete"), 5000, [0, 1]), (("delete",), 5000, [0])],
    )
    def test_a_compacted_log_by_the_age_at_which_records_must_be_cleaned(
        self, policy: tuple[str, ...], segment_ms: int, rolled: list[int]
    ) -> None:
        """What is in the active segment is never cleaned (KIP-354)."""
        log = open_log(config=CONFIG._replace(cleanup_policy=policy, segment_ms=segment_ms, max_compaction_lag_ms=1000))
        append(log, batch(timestamp=NOW_MS), batch(timestamp=NOW_MS + 1001))
        assert base_offsets(log) == rolled

    def test_a_compacted_log_by_segment_ms_if_that_is_shorter(self) -> None:
        config = CONFIG._replace(cleanup_policy=("compact",), segment_ms=1000, max_compaction_lag_ms=5000)
        log = open_log(config=config)
        append(log, batch(timestamp=NOW_MS), batch(timestamp=NOW_MS + 1000))
        assert base_offsets(log) == [0]
        append(log, batch(timestamp=NOW_MS + 1001))
        assert base_offsets(log) == [0, 2]

    def test_by_age_with_jitter_at_the_same_moment_in_every_run(self) -> None:
        config = CONFIG._replace(segment_ms=1000, segment_jitter_ms=500)
        assert len({config.roll_ms(PARTITION, base) for base in range(50)}) > 10
        assert all(500 < config.roll_ms(PARTITION, base) <= 1000 for base in range(50))
        assert config.roll_ms(PARTITION, 7) == config.roll_ms(PARTITION, 7)

    def test_by_a_full_index(self) -> None:
        log = open_log(config=CONFIG._replace(segment_index_bytes=64))
        append(log, *(batch(timestamp=NOW_MS + number) for number in range(12)))
        # Five time entries fit into 64 bytes, of which one is for the end; the first batch has none.
        assert base_offsets(log) == [0, 5, 10]

    def test_by_an_offset_too_far_from_the_base(self) -> None:
        log = open_log()
        log.append_as_follower(at_offset(0, batch()))
        log.append_as_follower(at_offset(2**31 - 1, batch()))
        assert base_offsets(log) == [0]
        log.append_as_follower(at_offset(2**31, batch()))
        assert base_offsets(log) == [0, 2**31]
        assert offsets_in(log.read(2**31, 1000, 2**40)) == [2**31]

    def test_an_empty_segment_gives_way_to_one_at_the_followers_first_offset(self) -> None:
        disk = MemoryDisk()
        log = open_log(disk)
        log.append_as_follower(at_offset(2**31 + 5, batch()))
        assert base_offsets(log) == [2**31 + 5]
        assert files_in(disk, ".log") == [f"{2**31 + 5:020d}.log"]

    def test_each_roll_leaves_a_snapshot_of_the_producers(self) -> None:
        disk = MemoryDisk()
        log = open_log(disk, rolling(batches=2))
        append(log, *(batch() for _ in range(5)))
        assert files_in(disk, ".snapshot") == [f"{offset:020d}.snapshot" for offset in (2, 4)]

    def test_rolling_an_empty_segment_changes_nothing(self) -> None:
        log = open_log()
        append(log, batch())
        log.roll()
        log.roll()
        assert base_offsets(log) == [0, 1]

    def test_the_age_of_an_idle_segment_shows_at_the_next_append(self) -> None:
        clock = FixedClock(NOW_MS)
        log = open_log(config=CONFIG._replace(segment_ms=1000), clock=clock)
        append(log, batch(timestamp=-1))
        clock.advance(1001)
        assert base_offsets(log) == [0]
        append(log, batch(timestamp=-1))
        assert base_offsets(log) == [0, 1]
