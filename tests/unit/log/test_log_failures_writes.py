"""A disk that refuses a write or a new file: what was acknowledged stays, now and after the next start."""

import errno
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from ottla.log import file_names
from ottla.log.directory import LogDirectory
from ottla.log.errors import CorruptFile
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.log.transaction_index import AbortedTransaction, TransactionIndex
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    DIRECTORY,
    NOW_MS,
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
    marker,
    open_directory,
    open_log,
    rolling,
)

FEW_BYTES = LogConfig(segment_bytes=400)
TINY = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_index_bytes=80, file_delete_delay_ms=0)


def created(disk: MemoryDisk, config: LogConfig = CONFIG) -> tuple[LogDirectory, PartitionLog]:
    directory = open_directory(disk, config)
    return directory, directory.create(PARTITION, TOPIC_ID)


def reopened(disk: MemoryDisk, config: LogConfig = CONFIG) -> PartitionLog:
    return open_directory(disk, config).logs[PARTITION]


class TestTornAppends:
    """The disk fills up in the middle of a batch, and there is room again for the next one."""

    @pytest.fixture
    def disk(self) -> MemoryDisk:
        return MemoryDisk(Random(3))

    @pytest.fixture
    def directory(self, disk: MemoryDisk) -> LogDirectory:
        directory, log = created(disk, FEW_BYTES)
        append(log, batch(b"a" * 100))
        disk.fail_next("write", errno.ENOSPC)
        disk.fail_next("truncate", errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            append(log, batch(b"b" * 100))
        append(log, batch(b"c" * 200), batch(b"d"))
        assert base_offsets(log) == [0, 1], "the torn batch was at the end of a segment"
        return directory

    def test_leave_no_bytes_in_the_segment_when_it_is_rolled(self, disk: MemoryDisk, directory: LogDirectory) -> None:
        directory.close()
        log = reopened(disk, FEW_BYTES)
        assert log.log_end_offset == 3
        assert contiguous(headers_in(log))

    def test_are_cut_off_by_a_clean_stop_though_nothing_else_happened(self, disk: MemoryDisk) -> None:
        """The log is as the last clean stop left it, but for the bytes of a batch that was refused."""
        directory, log = created(disk, FEW_BYTES)
        append(log, batch(b"a" * 100))
        directory.close()
        directory = open_directory(disk, FEW_BYTES)
        disk.fail_next("write", errno.ENOSPC)
        disk.fail_next("truncate", errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            append(directory.logs[PARTITION], batch(b"b" * 100))
        directory.close()
        log = reopened(disk, FEW_BYTES)
        assert log.log_end_offset == 1
        assert log.active.size == log.active.file.size()

    def test_do_not_end_the_log_after_a_crash(self, disk: MemoryDisk, directory: LogDirectory) -> None:
        directory.logs[PARTITION].flush()
        assert reopened(disk.survivor_of_kill(), FEW_BYTES).log_end_offset == 3


class TestRolls:
    @pytest.mark.parametrize("also_refused", [None, "remove 00000000000000000002.log"])
    def test_one_that_fails_at_any_call_leaves_no_segment_that_shortens_the_log(self, also_refused: str | None) -> None:
        """The roll's leftovers would begin where the old segment had ended, but that one has gone on since."""
        config = rolling(batches=3)
        seen = set()
        for call in range(1, 20):
            disk = MemoryDisk(Random(call))
            directory, log = created(disk, config)
            append(log, batch(), batch())
            disk.fail_at(disk.calls + call, errno.ENOSPC)
            if also_refused:
                disk.fail_next(also_refused, errno.ENOSPC)
            try:
                log.roll()
            except OSError as problem:
                seen.add(str(problem).split(",")[1])
            else:
                continue  # An index that could not be written waits for a flush.
            append(log, batch(), batch(), batch())
            directory.close()
            log = reopened(disk, config)
            assert log.log_end_offset == 5
            assert contiguous(headers_in(log))
        assert {" create 00000000000000000002.log", " create 00000000000000000002.index"} <= seen

    @pytest.mark.parametrize("seed", range(20))
    def test_one_that_failed_does_not_make_recovery_trust_the_indexes(self, seed: int) -> None:
        """A part of the new segment came back by a power cut: the old one seemed to end before the recovery point."""
        disk = MemoryDisk(Random(seed))
        directory, log = created(disk)
        append(log, *(batch(timestamp=NOW_MS + number) for number in range(4)))
        disk.fail_next("create 00000000000000000004.index", errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            log.roll()
        log.flush()
        directory.checkpoint()
        recovered = reopened(disk.survivor(Random(seed)))
        assert recovered.log_end_offset == 4
        assert recovered.offset_of_max_timestamp() == (NOW_MS + 3, 3, 0)

    def test_one_whose_leftovers_are_refused_too_fails_until_they_are_gone(self) -> None:
        disk = MemoryDisk()
        log = open_log(disk)
        append(log, batch())
        disk.fail_next("create 00000000000000000001.timeindex", errno.ENOSPC)
        disk.fail_next("remove 00000000000000000001.log", errno.ENOSPC, times=2)
        for _ in range(2):
            with pytest.raises(OSError, match="injected"):
                log.roll()
        assert append(log, batch()) == 1
        log.roll()
        assert files_in(disk, file_names.LOG) == [f"{0:020d}.log", f"{2:020d}.log"]

    def test_one_that_cannot_remove_the_empty_segment_before_it_goes_on(self) -> None:
        disk = MemoryDisk()
        log = open_log(disk)
        disk.fail_next("remove", errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            log.roll(10)
        log.append_as_follower(at_offset(10, batch()))
        assert files_in(disk, file_names.LOG) == [f"{10:020d}.log"]


class TestIndexes:
    def test_an_entry_that_the_disk_refuses_waits_in_memory(self) -> None:
        disk = MemoryDisk(Random(3))
        log = open_log(disk)
        for number in range(600):
            if number == 512:  # The batch is written; with its entry what is kept in memory is full, and that is not.
                disk.fail_at(disk.calls + 2, errno.ENOSPC)
            append(log, batch(timestamp=NOW_MS + number))
        assert contiguous(headers_in(log))
        index = log.active.offset_index
        assert len(index) > 512
        for slot in range(len(index)):
            last_offset, position = index.entry(slot)
            found = log.active.find(last_offset)
            assert found is not None
            assert found[0] == position

    def test_an_abort_marker_is_indexed_though_the_disk_refuses_the_index(self) -> None:
        disk = MemoryDisk()
        log = open_log(disk)
        append(log, in_transaction(7, 0))
        disk.fail_next("create 00000000000000000000.txnindex", errno.ENOSPC)
        append(log, marker(7, committed=False))
        assert log.aborted_transactions(0, 2) == [AbortedTransaction(7, 0, 1, 2)]

    @pytest.mark.parametrize("seed", range(100))
    def test_a_torn_entry_does_not_come_to_light_when_the_index_is_cut(self, seed: int) -> None:
        disk = MemoryDisk(Random(seed))
        disk.make_dirs(DIRECTORY)
        path = f"{DIRECTORY}/{file_names.file_name(0, file_names.TRANSACTION_INDEX)}"
        index = TransactionIndex(disk, path)
        index.append(AbortedTransaction(7, 1, 2, 3))
        disk.fail_next("write", errno.ENOSPC)
        disk.fail_next("truncate", errno.ENOSPC)
        index.append(AbortedTransaction(7, 5, 6, 7))
        index.truncate_to(6)
        index.flush()
        index.close()
        assert TransactionIndex(disk, path).entries() == [AbortedTransaction(7, 1, 2, 3)]

    def test_one_of_an_unknown_version_is_rebuilt_even_after_a_clean_stop(self) -> None:
        disk = MemoryDisk()
        directory, log = created(disk)
        append(log, in_transaction(7, 0), marker(7, committed=False))
        directory.close()
        file = disk.open(f"{DIRECTORY}/{file_names.file_name(0, file_names.TRANSACTION_INDEX)}")
        file.write_at(0, b"\x7f" * 34)
        file.close()
        with pytest.raises(CorruptFile):
            TransactionIndex(disk, f"{DIRECTORY}/{file_names.file_name(0, file_names.TRANSACTION_INDEX)}").entries()
        assert reopened(disk).aborted_transactions(0, 2) == [AbortedTransaction(7, 0, 1, 2)]


def stop_cleanly(disk: MemoryDisk, directory: LogDirectory) -> MemoryDisk:
    directory.close()
    return disk


def kill(disk: MemoryDisk, directory: LogDirectory) -> MemoryDisk:
    return disk.survivor_of_kill()


def flush_and_cut_power(disk: MemoryDisk, directory: LogDirectory) -> MemoryDisk:
    directory.logs[PARTITION].flush()
    return disk.survivor(Random(disk.calls))


@pytest.mark.slow
@pytest.mark.parametrize("end", [stop_cleanly, kill, flush_and_cut_power])
def test_what_was_acknowledged_is_there_after_a_failed_call_and_a_restart(
    end: Callable[[MemoryDisk, LogDirectory], MemoryDisk],
) -> None:
    """A producer whose batch is refused gives up, so other bytes take its place."""

    def play(disk: MemoryDisk, log: PartitionLog) -> bytes:
        chance, acknowledged = Random(1), b""
        for number in range(30):
            data = batch(b"x" * chance.randint(1, 500), timestamp=NOW_MS + number)
            with suppress(OSError):
                append(log, data)
                acknowledged += data
            if number % 7 == 6:
                with suppress(OSError):
                    log.flush()
        return acknowledged

    disk = MemoryDisk()
    directory, log = created(disk, TINY)
    first = disk.calls + 1
    play(disk, log)
    for call in range(first, disk.calls + 1):
        failing = MemoryDisk(Random(call))
        directory, log = created(failing, TINY)
        failing.fail_at(call, errno.ENOSPC)
        acknowledged = play(failing, log)
        recovered = reopened(end(failing, directory), TINY)
        assert b"".join(segment.file.read_at(0, segment.size) for segment in recovered.segments) == acknowledged
        assert contiguous(headers_in(recovered))
