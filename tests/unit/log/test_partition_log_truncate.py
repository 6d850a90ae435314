"""Truncation: a follower cuts away what its leader does not have."""

import pytest

from ottla.log.partition_log import PartitionLog
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from tests.unit.log.partition_logs import (
    NOW_MS,
    append,
    at_offset,
    base_offsets,
    batch,
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

ENOUGH = 1 << 20


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> PartitionLog:
    """Ten batches of one record in segments of four; epoch 1 from 0, 2 from 5, 3 from 9."""
    log = open_log(disk, rolling(batches=4))
    append(log, *(batch(timestamp=NOW_MS + number) for number in range(5)), leader_epoch=1)
    append(log, *(batch(timestamp=NOW_MS + number) for number in range(5, 9)), leader_epoch=2)
    append(log, batch(timestamp=NOW_MS + 9), leader_epoch=3)
    return log


@pytest.mark.parametrize("offset", range(10))
def test_the_log_ends_at_the_offset_wherever_it_is(log: PartitionLog, disk: MemoryDisk, offset: int) -> None:
    assert log.truncate_to(offset)
    assert log.log_end_offset == log.high_watermark == offset
    assert contiguous(headers_in(log))
    assert base_offsets(log) == [base for base in (0, 4, 8) if base <= offset]
    assert files_in(disk, ".log") == [f"{base:020d}.log" for base in (0, 4, 8) if base <= offset]
    assert log.offset_for_timestamp(NOW_MS + offset) is None
    assert append(log, batch(), batch(), leader_epoch=7) == offset + 1
    assert contiguous(headers_in(log))


@pytest.mark.parametrize("offset", [10, 11, 1000])
def test_an_offset_at_or_after_the_end_cuts_nothing(log: PartitionLog, offset: int) -> None:
    assert not log.truncate_to(offset)
    assert log.log_end_offset == 10


def test_an_epoch_that_never_wrote_goes_even_if_no_record_does(log: PartitionLog) -> None:
    """It may contradict what the leader of the next epoch says of the same offset (KIP-279)."""
    log.begin_leader_epoch(4)
    assert log.epochs.latest == 4
    log.truncate_to(10)
    assert log.epochs.entries == [(1, 0), (2, 5), (3, 9)]


@pytest.mark.parametrize(
    ("offset", "left"), [(9, [(1, 0), (2, 5)]), (6, [(1, 0), (2, 5)]), (5, [(1, 0)]), (1, [(1, 0)]), (0, [])]
)
def test_the_epochs_that_began_there_go(log: PartitionLog, offset: int, left: list[tuple[int, int]]) -> None:
    log.truncate_to(offset)
    assert log.epochs.entries == left


def test_a_follower_finds_where_it_diverges_from_its_leader(log: PartitionLog) -> None:
    """KIP-101: it asks for the end of its own last epoch, truncates there, and goes on with the leader's records."""
    leader = open_log()
    append(leader, *(batch() for _ in range(5)), leader_epoch=1)
    append(leader, batch(), batch(), leader_epoch=2)
    append(leader, batch(), batch(), leader_epoch=4)
    epoch, end_offset = leader.epochs.end_offset(log.epochs.latest, leader.log_end_offset)
    assert (epoch, end_offset) == (2, 7)
    log.truncate_to(min(end_offset, log.epochs.end_offset(epoch, log.log_end_offset)[1]))
    log.append_as_follower(b"".join(bytes(at_offset(offset, batch(), leader_epoch=4)) for offset in (7, 8)))
    assert log.epochs.entries == leader.epochs.entries


def test_the_batch_that_holds_the_offset_goes_as_a_whole() -> None:
    log = open_log()
    append(log, batch(count=5), batch(count=5))
    log.truncate_to(7)
    assert log.log_end_offset == 5


def test_producers_are_as_they_were_at_that_offset() -> None:
    log = open_log(config=rolling(batches=2))
    append(log, *(produced(7, sequence) for sequence in range(6)), produced(8, 0))
    log.truncate_to(3)
    assert log.producers.get(8) is None
    assert log.append_as_leader(produced(7, 4), 0).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(produced(7, 2), 0).repeated
    assert append(log, produced(7, 3)) == 3


def test_a_transaction_whose_marker_is_cut_away_is_open_again() -> None:
    log = open_log()
    append(log, in_transaction(7, 0), batch(), marker(7, committed=False), batch())
    assert log.last_stable_offset == 4
    assert len(log.aborted_transactions(0, 4)) == 1
    log.truncate_to(2)
    assert log.aborted_transactions(0, 4) == []
    assert log.last_stable_offset == 0


def test_the_files_that_go_wait_for_their_readers(log: PartitionLog, disk: MemoryDisk) -> None:
    part = log.read(8, ENOUGH, 10)
    log.truncate_to(2)
    assert files_in(disk, ".log.deleted") == [f"{base:020d}.log.deleted" for base in (4, 8)]
    assert offsets_in(part) == [8, 9]
    log.remove_deleted(at_once=True)
    assert files_in(disk, ".deleted") == []


def test_the_recovery_point_goes_back_before_anything_is_cut(disk: MemoryDisk) -> None:
    lowered: list[tuple[int, int]] = []

    def lower(offset: int) -> None:
        lowered.append((offset, log.log_end_offset))

    log = open_log(disk, rolling(batches=4), before_truncation=lower)
    append(log, *(batch() for _ in range(10)))
    log.flush()
    log.truncate_to(6)
    assert lowered == [(6, 10)]
    assert log.recovery_point == 6
    append(log, batch())
    log.truncate_to(6)
    assert lowered == [(6, 10)], "what was never flushed needs no lowering"


def test_the_log_start_offset_never_passes_the_end(log: PartitionLog) -> None:
    log.advance_log_start_offset(7)
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)


class TestFully:
    def test_an_offset_before_the_first_segment_empties_the_log(self, log: PartitionLog, disk: MemoryDisk) -> None:
        log.advance_log_start_offset(8)
        log.apply_retention()
        assert base_offsets(log) == [8]
        assert log.truncate_to(3)
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (3, 3, 3)
        assert base_offsets(log) == [3]

    @pytest.mark.parametrize("offset", [0, 5, 10, 500])
    def test_the_log_begins_anew_at_any_offset(self, log: PartitionLog, disk: MemoryDisk, offset: int) -> None:
        log.truncate_fully(offset)
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (offset,) * 3
        assert log.epochs.entries == []
        assert (len(log.producers), log.size) == (0, 0)
        assert files_in(disk, ".snapshot") == []
        assert append(log, batch(), leader_epoch=9) == offset
        assert offsets_in(log.read(offset, ENOUGH, offset + 1)) == [offset]

    @pytest.mark.parametrize("offset", [0, 5, 500])
    def test_it_is_as_empty_after_a_kill(self, log: PartitionLog, disk: MemoryDisk, offset: int) -> None:
        log.truncate_fully(offset)
        reopened = open_log(disk.survivor_of_kill(), clock=FixedClock(NOW_MS))
        assert (reopened.log_start_offset, reopened.log_end_offset) == (offset, offset)
        assert reopened.epochs.entries == []


def test_a_log_that_is_cut_again_and_again_remembers_no_more_of_it(log: PartitionLog) -> None:
    """A follower of a leader that changes often is cut each time, for as long as its node runs."""

    def remembered() -> int:
        return sum(len(value) for value in vars(log).values() if isinstance(value, tuple | list | set | dict))

    log.truncate_to(0)
    before = remembered()
    for _ in range(100):
        append(log, batch(), leader_epoch=4)
        log.truncate_to(0)
    assert remembered() == before
    assert log.cut_count == 101


def test_one_that_copies_a_log_hears_of_the_lowest_cut_since_it_began_or_asked(log: PartitionLog) -> None:
    log.truncate_to(2)
    append(log, *(batch() for _ in range(6)), leader_epoch=4)
    watched = log.watch_cuts()
    log.truncate_to(4)
    log.truncate_to(3)
    assert (log.cut_count - watched, log.take_lowest_cut()) == (2, 3)
    append(log, *(batch() for _ in range(6)), leader_epoch=5)
    log.truncate_to(7)
    assert log.take_lowest_cut() == 7
