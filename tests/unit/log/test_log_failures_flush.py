"""What a flush has promised holds after a power cut, though some of its calls failed before, or others overtook it."""

import errno
from random import Random

import pytest

from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.transaction_index import AbortedTransaction
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    DIRECTORY,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    in_transaction,
    marker,
    open_directory,
    open_log,
    produced,
    rolling,
)

SEEDS = pytest.mark.parametrize("seed", range(20))


@SEEDS
def test_a_flush_that_is_tried_again_syncs_the_names_that_the_first_could_not(seed: int) -> None:
    disk = MemoryDisk(Random(seed))
    config = rolling(batches=2)
    log = open_directory(disk, config).create(PARTITION, TOPIC_ID)
    append(log, batch())
    log.flush()
    append(log, batch(), batch(), batch())
    disk.fail_next("sync_dir", errno.EIO)
    with pytest.raises(OSError, match="injected"):
        log.flush()
    log.flush()
    recovered = open_directory(disk.survivor(Random(seed)), config).logs[PARTITION]
    assert recovered.log_end_offset == 4


def test_leader_epochs_that_could_not_be_written_are_written_by_the_next_flush() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    log.begin_leader_epoch(3)
    disk.fail_next("create leader-epoch-checkpoint", errno.ENOSPC)
    with pytest.raises(OSError, match="injected"):
        log.flush()
    log.flush()
    assert LeaderEpochs(disk, DIRECTORY).entries == [(3, 0)]


def test_a_flush_that_a_truncation_has_overtaken_moves_nothing() -> None:
    """What it synced is gone, and what stands in its place was never synced."""
    log = open_log()
    append(log, *(batch() for _ in range(4)))
    flush = log.start_flush()
    flush.run()
    log.truncate_to(1)
    append(log, *(batch() for _ in range(3)))
    log.finish_flush(flush)
    assert log.recovery_point <= 1


@SEEDS
def test_producers_are_known_after_a_clean_stop_and_a_power_cut(seed: int) -> None:
    disk = MemoryDisk(Random(seed))
    directory = open_directory(disk)
    log = directory.create(PARTITION, TOPIC_ID)
    append(log, produced(7, 0))
    log.flush()
    append(log, produced(7, 1))
    directory.close()
    recovered = open_directory(disk.survivor(Random(seed))).logs[PARTITION]
    producer = recovered.producers.get(7)
    assert producer is not None
    assert producer.last_sequence == 1


class TestTransactionIndexes:
    """Recovery rewrites them, and most are empty: both are easily left out of a flush."""

    @SEEDS
    def test_one_that_recovery_has_rebuilt_is_durable_with_the_next_flush(self, seed: int) -> None:
        disk = MemoryDisk(Random(seed))
        log = open_directory(disk).create(PARTITION, TOPIC_ID)
        append(log, in_transaction(7, 0), marker(7, committed=False))
        log.roll()
        append(log, batch())
        killed = disk.survivor_of_kill()
        directory = open_directory(killed)
        directory.logs[PARTITION].flush()
        directory.checkpoint()
        recovered = open_directory(killed.survivor(Random(seed))).logs[PARTITION]
        assert recovered.aborted_transactions(0, 3) == [AbortedTransaction(7, 0, 1, 2)]

    @SEEDS
    def test_one_that_a_truncation_has_emptied_stays_empty(self, seed: int) -> None:
        disk = MemoryDisk(Random(seed))
        log = open_directory(disk).create(PARTITION, TOPIC_ID)
        append(log, in_transaction(7, 0), marker(7, committed=False))
        log.roll()
        log.flush()
        log.truncate_to(0)
        append(log, batch(), batch())
        killed = disk.survivor_of_kill()
        directory = open_directory(killed)
        log = directory.logs[PARTITION]
        log.roll()
        directory.flush()
        recovered = open_directory(killed.survivor(Random(seed))).logs[PARTITION]
        assert recovered.log_end_offset == 2
        assert recovered.aborted_transactions(0, 2) == []


def test_the_last_stable_offset_is_not_before_the_start_of_the_log() -> None:
    """A transaction whose beginning has been deleted is still open."""
    log = open_log(config=CONFIG)
    append(log, in_transaction(7, 0), batch(), batch(), batch())
    log.advance_log_start_offset(2)
    assert log.last_stable_offset == 2
