"""A truncation that the disk interrupts is finished before anything is built on it, and retention takes no more."""

import errno
from contextlib import suppress
from random import Random

import pytest

from ottla.log import file_names
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    PARTITION,
    TOPIC_ID,
    append,
    at_offset,
    base_offsets,
    batch,
    contiguous,
    files_in,
    headers_in,
    in_transaction,
    offsets_in,
    open_directory,
    open_log,
    produced,
    rolling,
)

ENOUGH = 1 << 20
BY_TWO = rolling(batches=2)
COMPACTED = LogConfig(cleanup_policy=("compact",), index_interval_bytes=0)


def reopened(disk: MemoryDisk, config: LogConfig = CONFIG) -> PartitionLog:
    return open_directory(disk, config).logs[PARTITION]


class TestTruncation:
    def test_one_that_fails_at_any_call_is_finished_by_the_next_append(self) -> None:
        for call in range(1, 50):
            disk = MemoryDisk(Random(call))
            log = open_log(disk, BY_TWO)
            append(log, *(produced(7, number) for number in range(7)), leader_epoch=1)
            log.flush()
            disk.fail_at(disk.calls + call, errno.ENOSPC)
            try:
                log.truncate_to(3)
            except OSError:
                assert append(log, produced(7, 3), leader_epoch=2) == 3
            else:
                break
            assert contiguous(headers_in(log))
            assert log.epochs.entries == [(1, 0), (2, 3)]
            assert log.high_watermark == log.log_end_offset == 4
        assert call > 10

    @pytest.mark.parametrize("refused", ["truncate", "sync file", "sync_dir", "create leader-epoch-checkpoint"])
    @pytest.mark.parametrize("seed", range(10))
    def test_one_that_is_tried_again_is_durable(self, seed: int, refused: str) -> None:
        """Even if the second attempt finds nothing left to cut: the batches are of one size, so old ones would fit."""
        disk = MemoryDisk(Random(seed))
        log = open_directory(disk, BY_TWO).create(PARTITION, TOPIC_ID)
        append(log, batch(b"old"))
        append(log, *(batch(b"old") for _ in range(4)), leader_epoch=1)
        log.flush()
        disk.fail_next(refused, errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            log.truncate_to(1)
        log.truncate_to(1)
        append(log, batch(b"new"), leader_epoch=2)
        survivor = disk.survivor(Random(seed))
        recovered = reopened(survivor, BY_TWO)
        content = b"".join(segment.file.read_at(0, segment.size) for segment in recovered.segments)
        assert content.count(b"old") == 1

    @pytest.mark.parametrize("seed", range(40))
    def test_one_that_is_killed_half_way_does_not_bring_the_old_end_back_behind_new_batches(self, seed: int) -> None:
        """The process dies before the cut is durable, the next one appends, and then the power fails."""
        chance = Random(seed)
        disk = MemoryDisk(chance)
        log = open_directory(disk).create(PARTITION, TOPIC_ID)
        append(log, *(batch(b"old") for _ in range(4)))
        log.flush()
        disk.crash_at(disk.calls + chance.randint(1, 12))
        with suppress(Crashed):
            log.truncate_to(1)
        killed = disk.survivor_of_kill()
        log = reopened(killed)
        end = log.log_end_offset
        append(log, batch(b"new"))
        recovered = reopened(killed.survivor(chance))
        content = b"".join(segment.file.read_at(0, segment.size) for segment in recovered.segments)
        assert content.count(b"old") <= end
        assert not content.partition(b"new")[2].count(b"old")

    def test_epochs_that_it_cuts_away_do_not_come_back(self) -> None:
        """KIP-101: this follower had written epoch 3 at offset 2, and must take epoch 2's records instead."""
        disk = MemoryDisk()
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, batch(), batch(), leader_epoch=2)
        append(log, batch(), leader_epoch=3)
        directory.flush()
        log.truncate_to(2)
        log.append_as_follower(at_offset(2, batch(), leader_epoch=2))
        log.append_as_follower(at_offset(3, batch(), leader_epoch=4))
        assert log.epochs.entries == [(2, 0), (4, 3)]
        assert reopened(disk.survivor_of_kill()).epochs.entries == [(2, 0), (4, 3)]

    def test_one_before_offsets_that_are_nobodys_lowers_the_recovery_point_to_where_the_log_ends(self) -> None:
        disk = MemoryDisk()
        directory = open_directory(disk, COMPACTED)
        log = directory.create(PARTITION, TOPIC_ID)
        log.append_as_follower(at_offset(3, batch()))
        log.append_as_follower(at_offset(9, batch()))
        directory.flush()
        log.truncate_to(9)
        assert log.recovery_point == log.log_end_offset == 4
        assert reopened(disk.survivor_of_kill(), COMPACTED).recovery_point == 4

    def test_one_before_offsets_that_are_nobodys_lowers_the_log_start_offset_too(self) -> None:
        """Offsets 4 to 8 are nobody's, and the log began at 7. What comes to stand at 4 is not deleted by that."""
        disk = MemoryDisk()
        directory = open_directory(disk, COMPACTED)
        log = directory.create(PARTITION, TOPIC_ID)
        log.append_as_follower(at_offset(3, batch()))
        log.flush()
        log.append_as_follower(at_offset(9, batch()))
        log.advance_high_watermark(10)
        log.advance_log_start_offset(7)
        directory.checkpoint()
        log.truncate_to(9)
        assert log.log_start_offset == log.log_end_offset == 4
        log.append_as_follower(at_offset(4, batch()) + at_offset(5, batch()) + at_offset(9, batch()))
        log.flush()
        recovered = reopened(disk.survivor_of_kill(), COMPACTED)
        assert recovered.log_start_offset == 4
        assert offsets_in(recovered.read(4, ENOUGH, 10)) == [4, 5, 9]


class TestTruncationToNothing:
    def test_what_follows_is_kept_though_the_log_once_began_later(self) -> None:
        """The checkpoint of log start offsets must not say 9 any more when the log begins anew at 5."""
        disk = MemoryDisk()
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, *(batch() for _ in range(10)))
        log.advance_log_start_offset(9)
        directory.flush()
        log.truncate_fully(5)
        append(log, batch())
        log.flush()
        assert reopened(disk.survivor_of_kill()).log_end_offset == 6

    def test_one_that_fails_at_any_call_can_be_tried_again(self) -> None:
        for call in range(1, 50):
            disk = MemoryDisk(Random(call))
            directory = open_directory(disk, BY_TWO)
            log = directory.create(PARTITION, TOPIC_ID)
            append(log, *(in_transaction(7, number) for number in range(5)))
            directory.flush()
            disk.fail_at(disk.calls + call, errno.ENOSPC)
            try:
                log.truncate_fully(20)
            except OSError:
                directory.checkpoint()
                log.truncate_fully(20)
                assert append(log, batch()) == 20
            else:
                break
            assert base_offsets(log) == [20]
            assert log.last_stable_offset == 21
            directory.close()
            assert disk.open_files == 0
            assert files_in(disk, file_names.LOG) == [f"{20:020d}.log"]
        assert call > 10

    def test_what_is_appended_after_a_crash_in_it_is_not_taken_for_durable(self) -> None:
        """All segments are gone, but the recovery point still tells of them: what comes in their place is not meant."""
        disk = MemoryDisk()
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, batch(), batch(), batch(), batch())
        directory.flush()
        for name in files_in(disk, file_names.LOG):
            disk.remove(f"{log.directory}/{name}")
        killed = disk.survivor_of_kill()
        log = reopened(killed)
        assert (log.log_end_offset, log.recovery_point) == (0, 0)
        assert reopened(killed.survivor_of_kill()).recovery_point == 0
        append(log, batch(), batch())
        assert reopened(killed.survivor_of_kill()).recovery_point == 0


class TestRetention:
    def test_a_segment_that_cannot_be_renamed_goes_the_next_time(self) -> None:
        for call in range(1, 20):
            disk = MemoryDisk(Random(call))
            directory = open_directory(disk, BY_TWO)
            log = directory.create(PARTITION, TOPIC_ID)
            append(log, *(batch() for _ in range(7)))
            log.flush()
            log.advance_log_start_offset(4)
            disk.fail_at(disk.calls + call, errno.ENOSPC)
            try:
                log.apply_retention()
            except OSError:
                append(log, batch())
            else:
                break
            assert offsets_in(log.read(4, ENOUGH, 8))[0] == 4
            log.apply_retention()
            assert base_offsets(log) == [4, 6]
            directory.close()
            assert disk.open_files == 0
            log = reopened(disk, BY_TWO)
            assert (log.log_start_offset, log.log_end_offset) == (4, 8)
            assert contiguous(headers_in(log), 4)
        assert call > 4

    def test_files_that_wait_for_their_removal_are_closed_when_the_partition_is_deleted(self) -> None:
        disk = MemoryDisk()
        directory = open_directory(disk, rolling(batches=1))
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, batch(), batch(), batch())
        log.advance_log_start_offset(2)
        log.apply_retention()
        directory.delete(PARTITION)
        directory.remove_condemned()
        assert disk.open_files == 0
