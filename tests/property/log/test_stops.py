"""The clean stop of many partitions at once, with a power cut at each of its calls to the disk.

The partitions are in all the states that a stop can meet them in. Whatever a power cut leaves, what was flushed is
there; and where the marker of a clean stop is, everything is, and agrees with itself.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest

from ottla.base.errors import ProtocolError, StorageError
from ottla.base.ids import TopicPartition, Uuid
from ottla.log import file_names
from ottla.log.directory import LogDirectory
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.testing.clock import FixedClock
from ottla.testing.history import BatchSource
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.property.log.sound_logs import batches_of, check_sound

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_index_bytes=80, file_delete_delay_ms=5)
TOPIC_ID = Uuid(bytes(range(16)))


class Stop:
    """A directory that is about to be stopped, and what its partitions held when it was."""

    def __init__(self, seed: int, forgets: Callable[[str], bool] = lambda path: False) -> None:
        self.random = Random(seed)
        self.disk = MemoryDisk(self.random)
        self.disk.make_dirs("/data")
        self.disk.sync_dir("/")
        self.forgets = forgets
        self.sources = {state.__name__: BatchSource(self.random) for state in STATES}
        self.directory = self.opened(self.disk)
        for state in STATES:
            if state not in (begun, appended_to_at_once):
                self.append(self.directory.create(TopicPartition(state.__name__, 0), TOPIC_ID), 12)
        self.directory.close()
        self.directory = self.opened(self.disk)
        for state in STATES:
            partition = TopicPartition(state.__name__, 0)
            log = self.directory.logs.get(partition) or self.directory.create(partition, TOPIC_ID)
            log.begin_leader_epoch(1)
            state(self, log)
        logs = self.directory.logs.items()
        self.batches = {partition: batches_in(log) for partition, log in logs}
        self.flushed = {partition: log.recovery_point for partition, log in logs}
        self.starts = {partition: log.log_start_offset for partition, log in logs}

    def opened(self, disk: MemoryDisk) -> LogDirectory:
        directory = LogDirectory(ForgetfulDisk(disk, self.forgets), "/data", FixedClock(), config_of=lambda _: CONFIG)
        directory.open_all()
        for log in directory.logs.values():
            log.advance_high_watermark(log.log_end_offset)
        return directory

    def append(self, log: PartitionLog, count: int) -> None:
        source = self.sources[log.partition.topic]
        for _ in range(count):
            appended = log.append_as_leader(source.next_batch(), max(log.epochs.latest, 0))
            assert not appended.error
        log.advance_high_watermark(log.log_end_offset)

    def check(self, disk: MemoryDisk) -> bool:
        """What the next start finds; returns whether it finds a clean stop."""
        directory = self.opened(disk)
        for partition, written in self.batches.items():
            log = directory.logs.get(partition)
            kept = {offset: data for offset, data in written.items() if offset < self.flushed[partition]}
            if log is None:
                assert not (written if directory.was_clean else kept), f"{partition} is gone"
                continue
            found = {offset: data for offset, data in batches_in(log).items() if offset >= self.starts[partition]}
            assert found == written if directory.was_clean else kept.items() <= found.items() <= written.items()
            check_sound(log, self.starts[partition])
            self.sources[partition.topic].forget_producers()
            self.append(log, 2)
        return directory.was_clean


class ForgetfulDisk:
    """The disk as the directory is given it, but that some paths are never synced."""

    def __init__(self, disk: MemoryDisk, forgets: Callable[[str], bool]) -> None:
        self._disk = disk
        self._forgets = forgets

    def sync_all(self, paths: Sequence[str]) -> None:
        self._disk.sync_all([path for path in paths if not self._forgets(path)])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)


def batches_in(log: PartitionLog) -> dict[int, bytes]:
    return {
        header.base_offset: segment.file.read_at(position, header.size)
        for segment in log.segments
        for position, header in batches_of(segment)
        if header.base_offset >= log.log_start_offset
    }


# What a stop can meet.


def begun(stop: Stop, log: PartitionLog) -> None:
    """Never written to."""


def left_alone(stop: Stop, log: PartitionLog) -> None:
    """As the last clean stop left it."""


def appended_to(stop: Stop, log: PartitionLog) -> None:
    stop.append(log, 3)


def appended_to_at_once(stop: Stop, log: PartitionLog) -> None:
    """New, and neither it nor its name was ever synced."""
    stop.append(log, 20)


def flushed(stop: Stop, log: PartitionLog) -> None:
    stop.append(log, 9)
    log.flush()


def flushed_and_appended_to(stop: Stop, log: PartitionLog) -> None:
    flushed(stop, log)
    stop.append(log, 9)


def rolled(stop: Stop, log: PartitionLog) -> None:
    log.roll()


def truncated(stop: Stop, log: PartitionLog) -> None:
    log.truncate_to(log.log_end_offset // 2)


def truncated_and_appended_to(stop: Stop, log: PartitionLog) -> None:
    truncated(stop, log)
    stop.sources[log.partition.topic].forget_producers()
    stop.append(log, 4)


def retained(stop: Stop, log: PartitionLog) -> None:
    """Some segments have been deleted, and wait for their removal."""
    log.advance_log_start_offset(log.log_end_offset // 2)
    log.apply_retention()


STATES = (
    begun,
    left_alone,
    appended_to,
    appended_to_at_once,
    flushed,
    flushed_and_appended_to,
    rolled,
    truncated,
    truncated_and_appended_to,
    retained,
)


def crash_in(seed: int, call: int, survivors: int, **how: Any) -> bool:
    """Cuts the power at a call of the stop. Returns whether there was such a call."""
    stop = Stop(seed, **how)
    stop.disk.crash_at(stop.disk.calls + call)
    try:
        stop.directory.close()
    except Crashed:
        pass
    else:
        stop.disk.crash_at(-1)
    is_over = not stop.directory.logs
    for chance in range(survivors):
        was_clean = stop.check(stop.disk.survivor(Random(chance)))
        assert was_clean or not is_over, "a clean stop that is over has left no marker"
    return not is_over


def crash_after(seeds: Iterable[int], **how: Any) -> None:
    """Cuts the power when the stop is over."""
    for seed in seeds:
        crash_in(seed, 1 << 30, survivors=12, **how)


@pytest.mark.parametrize("seed", [0, *(pytest.param(more, marks=pytest.mark.long) for more in (1, 2))])
def test_a_power_cut_at_any_call_of_a_stop_loses_nothing_and_vouches_for_nothing_too_early(seed: int) -> None:
    call = 1
    while crash_in(seed, call, survivors=3):
        call += 1
    assert call > 30


@pytest.mark.parametrize(
    "ending",
    [
        file_names.LOG,
        file_names.INDEX,
        file_names.TIME_INDEX,
        file_names.TRANSACTION_INDEX,
        f"{file_names.LEADER_EPOCHS}.tmp",
        f"{appended_to.__name__}-0",
    ],
)
def test_a_file_that_the_stop_forgets_to_sync_is_noticed(ending: str) -> None:
    with pytest.raises((AssertionError, ProtocolError, StorageError)):
        crash_after(range(6), forgets=lambda path: path.endswith(ending))


def test_a_stop_costs_as_many_syncs_with_ten_changed_partitions_as_with_one() -> None:
    def syncs(partitions: int) -> int:
        disk = SyncCountingDisk()
        directory = LogDirectory(disk, "/data", FixedClock(), config_of=lambda _: CONFIG)
        for number in range(partitions):
            log = directory.create(TopicPartition("orders", number), TOPIC_ID)
            assert not log.append_as_leader(BatchSource(Random(number)).next_batch(), 0).error
        disk.syncs = 0
        directory.close()
        return disk.syncs

    assert syncs(10) == syncs(1)


class SyncCountingDisk(MemoryDisk):
    syncs = 0

    def step(self, operation: str, partly: Any = None) -> None:
        self.syncs += operation.startswith("sync")
        super().step(operation, partly)
