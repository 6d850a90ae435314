"""Crashes at every call to the disk, with any part of what was not synced lost.

One seed is one history of operations on a directory. It is played once to count the calls, and then again for each of
them with a crash there. After each crash the directory is opened (sometimes crashing again on the way) and must hold
up: everything that was flushed is there, offsets have no holes and no repetitions, nothing is there that was not
written, indexes and producer state agree with the log, and it takes appends.
"""

from contextlib import suppress
from random import Random

import pytest

from ottla.base.ids import TopicPartition, Uuid
from ottla.log.directory import LogDirectory
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_rebuild import note_written
from ottla.log.producer_state import ProducerState
from ottla.log.scan import scan_batches
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.batch import assign, checksum_matches
from ottla.testing.clock import FixedClock
from ottla.testing.history import BatchSource
from ottla.testing.memory_disk import Crashed, MemoryDisk

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = Uuid(bytes(range(16)))
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_index_bytes=80, file_delete_delay_ms=5)


class History:
    """Plays random operations and knows what must have become of them."""

    def __init__(self, seed: int, disk: MemoryDisk) -> None:
        self.random = Random(seed)
        self.source = BatchSource(self.random)
        self.disk = disk
        self.clock = FixedClock()
        # What may be found at each offset: the batch that was written there last, by its base offset.
        self.written: dict[int, bytes] = {}
        # A truncation that has not returned may or may not have happened: these may still be there too.
        self.doubtful: dict[int, bytes] = {}
        self.flushed = 0
        self.log_start_offset = 0
        self.epoch = 0

    def play(self, operations: int) -> None:
        self.directory = self.open()
        self.log = self.directory.logs.get(PARTITION) or self.directory.create(PARTITION, TOPIC_ID)
        for _ in range(operations):
            self.random.choice(self.OPERATIONS)(self)
        if self.random.random() < 0.5:
            self.directory.close()

    def open(self) -> LogDirectory:
        directory = LogDirectory(self.disk, "/data", self.clock, config_of=lambda topic: CONFIG)
        directory.open_all()
        return directory

    def append(self) -> None:
        batch = self.source.next_batch()
        self.written_by(batch)
        appended = self.log.append_as_leader(batch, self.epoch)
        assert not appended.error
        assert not appended.repeated
        self.log.advance_high_watermark(self.log.log_end_offset)

    def written_by(self, batch: bytearray) -> None:
        copy = bytearray(batch)
        assign(copy, 0, self.log.log_end_offset, self.epoch)
        self.written[self.log.log_end_offset] = bytes(copy)

    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.log.log_end_offset

    def checkpoint(self) -> None:
        self.directory.checkpoint()

    def roll(self) -> None:
        self.log.roll()

    def lead_again(self) -> None:
        self.epoch += 1
        self.log.begin_leader_epoch(self.epoch)

    def truncate(self) -> None:
        ends = [offset for offset in self.written if offset >= self.log.log_start_offset]
        if not ends:
            return
        offset = self.random.choice(ends)
        self.flushed = min(self.flushed, offset)
        self.doubtful = {base: batch for base, batch in self.written.items() if base >= offset}
        self.written = {base: batch for base, batch in self.written.items() if base < offset}
        self.log.truncate_to(offset)
        self.doubtful = {}
        self.source.forget_producers()
        self.epoch += 1
        self.log.begin_leader_epoch(self.epoch)

    def delete_records(self) -> None:
        self.log_start_offset = self.random.randint(self.log.log_start_offset, self.log.high_watermark)
        self.log.advance_log_start_offset(self.log_start_offset)
        self.log.apply_retention()

    def remove_deleted(self) -> None:
        self.clock.advance(10)
        self.log.remove_deleted()

    def restart(self) -> None:
        end = self.log.log_end_offset
        self.directory.close()
        self.flushed = end
        self.directory = self.open()
        self.log = self.directory.logs[PARTITION]
        assert self.log.log_end_offset == end
        assert self.disk.open_files == 0

    OPERATIONS = (
        *(append,) * 14,
        *(flush,) * 3,
        *(checkpoint,) * 3,
        roll,
        lead_again,
        truncate,
        delete_records,
        remove_deleted,
        restart,
    )

    def check(self, disk: MemoryDisk) -> None:
        """What is on the disk after the crash must be a log that someone could trust."""
        self.disk = disk
        directory = self.open()
        log = directory.logs.get(PARTITION)
        if log is None:
            assert self.flushed == 0, "the partition is gone, and flushed records with it"
            return
        assert log.log_end_offset >= self.flushed, "flushed records are gone"
        assert log.log_start_offset <= max(self.log_start_offset, log.segments[0].base_offset)
        assert log.segments[0].base_offset <= self.log_start_offset, "records were deleted that nobody asked to delete"
        self.check_batches(log)
        check_indexes(log)
        check_producers(log)
        end = log.log_end_offset
        self.log, self.directory, self.epoch = log, directory, self.epoch + 10
        self.source.forget_producers()
        appended = log.append_as_leader(self.source.next_batch(), self.epoch)
        assert appended.base_offset == end
        log.flush()
        directory.close()
        assert disk.open_files == 0

    def check_batches(self, log: PartitionLog) -> None:
        offset = log.segments[0].base_offset
        for segment in log.segments:
            assert segment.base_offset == offset, "a hole between segments"
            for _, header, data in scan_batches(segment.file, 0, segment.size):
                assert header.base_offset == offset, "a hole or a repetition"
                assert checksum_matches(data, 0, header)
                assert bytes(data) in (self.written.get(offset), self.doubtful.get(offset)), "not what was written"
                offset = header.next_offset
        assert offset == log.log_end_offset


def check_indexes(log: PartitionLog) -> None:
    for segment in log.segments:
        found = {position: header for position, header, _ in scan_batches(segment.file, 0, segment.size)}
        latest = max((header.max_timestamp for header in found.values()), default=-1)
        for slot in range(len(segment.offset_index)):
            last_offset, position = segment.offset_index.entry(slot)
            assert found[position].last_offset == last_offset
        for slot in range(len(segment.time_index)):
            timestamp, offset = segment.time_index.entry(slot)
            [header] = [header for header in found.values() if header.last_offset == offset]
            assert header.max_timestamp == timestamp
        assert segment.max_timestamp[0] == latest or segment is not log.active


def check_producers(log: PartitionLog) -> None:
    """The state must be what the log's batches say. Producers that are only in deleted ones may be known besides."""
    state = ProducerState()
    for segment in log.segments:
        aborted: list[AbortedTransaction] = []
        for position, header, _ in scan_batches(segment.file, 0, segment.size):
            if header.producer_id >= 0 and header.last_offset >= log.log_start_offset:
                completed = note_written(state, header, segment, position)
                if completed and completed.aborted:
                    aborted.append(state.aborted(completed))
        indexed = {entry.last_offset: entry for entry in segment.transaction_index.entries()}
        for entry in aborted:
            known = indexed.pop(entry.last_offset)
            assert known.producer_id == entry.producer_id
            assert known.first_offset <= entry.first_offset
        for entry in indexed.values():
            assert entry.first_offset < log.log_start_offset, "an aborted transaction that never was"
    for producer in state:
        known = log.producers.get(producer.producer_id)
        assert known is not None
        assert (known.epoch, known.last_timestamp) == (producer.epoch, producer.last_timestamp)
        if producer.batches:
            # A snapshot keeps the time of the last marker, not of the last batch; sequence and offset are what counts.
            assert known.batches[-1][:3] == producer.batches[-1][:3]


def crash_everywhere(seed: int, operations: int) -> int:
    counting = MemoryDisk(Random(seed))
    History(seed, counting).play(operations)
    for call in range(1, counting.calls + 1):
        disk = MemoryDisk(Random(seed))
        disk.crash_at(call)
        history = History(seed, disk)
        with pytest.raises(Crashed):
            history.play(operations)
        chance = Random(seed * 1_000_003 + call)
        try:
            survivor = disk.survivor(chance)
            while chance.random() < 0.5:
                # Recovery can crash too, and what it leaves must be recovered from.
                survivor.crash_at(chance.randint(1, 40))
                with suppress(Crashed):
                    LogDirectory(survivor, "/data", history.clock, config_of=lambda topic: CONFIG).open_all()
                survivor = survivor.survivor(chance)
            history.check(survivor)
        except Exception as problem:
            raise AssertionError(f"seed {seed}, crash at call {call}") from problem
    return counting.calls


@pytest.mark.parametrize("seed", range(30))
def test_a_crash_at_any_call_loses_nothing_that_was_flushed(seed: int) -> None:
    assert crash_everywhere(seed, operations=25) > 20


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_a_crash_at_any_call_of_a_long_history_loses_nothing_that_was_flushed(seed: int) -> None:
    assert crash_everywhere(seed, operations=60) > 50
