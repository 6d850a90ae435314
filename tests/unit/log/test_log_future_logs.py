"""How far a copy of a log and the log itself are the same."""

import pytest

from ottla.log.future_logs import common_end, contradiction
from ottla.log.partition_log import PartitionLog
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import CONFIG, NOW_MS, PARTITION, at_offset, batch

COMPACTED = CONFIG._replace(cleanup_policy=("compact",))


def log_of(*batches: tuple[int, int], end: int | None = None) -> PartitionLog:
    """A log with a batch of one record for each leader epoch and offset."""
    log = PartitionLog.open(MemoryDisk(), "/data/orders-0", PARTITION, COMPACTED, FixedClock(NOW_MS))
    for epoch, offset in batches:
        log.append_as_follower(bytes(at_offset(offset, batch(b"%d of %d" % (offset, epoch)), epoch)))
    if end is not None:
        log.roll(end)
        log.log_end_offset = end
    return log


def test_logs_that_are_the_same() -> None:
    batches = [(0, 0), (0, 1), (2, 2), (3, 3)]
    assert common_end(log_of(*batches), log_of(*batches)) == 4
    assert common_end(log_of(*batches[:3]), log_of(*batches)) == 3
    assert common_end(log_of(*batches), log_of(*batches[:3])) == 3
    assert common_end(log_of(), log_of(*batches)) == 0


def test_logs_that_part_where_another_leader_began() -> None:
    assert common_end(log_of((0, 0), (0, 1), (0, 2), (0, 3)), log_of((0, 0), (0, 1), (1, 2))) == 2
    assert common_end(log_of((0, 0), (0, 1), (1, 2)), log_of((0, 0), (0, 1), (0, 2), (0, 3))) == 2
    assert common_end(log_of((0, 0), (1, 1), (1, 2)), log_of((0, 0), (2, 1), (2, 2))) == 1


def test_epochs_of_which_compaction_has_left_no_batch_are_no_difference() -> None:
    current = log_of((2, 0), (4, 60), (4, 61))
    current.epochs.clear()
    for epoch, offset in ((2, 0), (3, 50), (4, 60)):
        current.epochs.assign(epoch, offset)
    assert common_end(log_of((2, 0), (4, 60), (4, 61)), current) == 62
    assert common_end(log_of((2, 0), (4, 60)), current) == 61
    assert common_end(log_of((2, 0), (4, 60), (4, 61), (4, 62)), current) == 62, "the copy has more"
    assert common_end(log_of((2, 0), (2, 55), (4, 60)), current) == 55, "one has a batch that the other has not"
    assert common_end(log_of((2, 0), (4, 60), end=70), log_of((2, 0), (4, 60), end=70)) == 70


def test_batches_that_cannot_be_read_are_not_known_to_be_the_same() -> None:
    future = log_of((0, 0), (0, 1), (0, 2))
    future.epochs.truncate_from_end(1)
    future.epochs.assign(1, 1)
    disk = future.segments[0]._disk
    assert isinstance(disk, MemoryDisk)
    disk.rot(future.segments[0].path(".log"), len(batch(b"0 of 0")) + 16, bit=3)
    assert common_end(future, log_of((0, 0), (0, 1), (0, 2))) == 1


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_contradiction_is_a_batch_of_another_epoch(start: int) -> None:
    current = log_of((0, 0), (1, 2), (1, 3))
    current.advance_high_watermark(4)
    current.advance_log_start_offset(start)
    assert contradiction(log_of((0, 0), (1, 2)), current) == ""
    assert contradiction(log_of((0, 0), (0, 1)), current) == ""
    assert "offset 3" in contradiction(log_of((0, 0), (2, 3)), current)
