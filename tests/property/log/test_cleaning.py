"""Random histories, cleaned and cut short: a reader of the whole log ends with the map that it would have had before.

A history is puts and deletes of a few keys, by plain, idempotent and transactional producers, over many segments. It is
cleaned once or more; a power cut may come at any call to the disk. What must hold:

- every record that is there stands at its offset, and is the record that was written;
- a reader at `read_committed`, from the beginning, ends with the same map of keys as before any cleaning;
- so does one at `read_uncommitted`, but for records of aborted transactions, which it may or may not meet;
- who the producers are, and where their sequences stand, can be told from the log alone.
"""

from random import Random

import pytest

from ottla.base.ids import TopicPartition, Uuid
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleanedSegment, CleaningJob
from ottla.log.cleaning.planning import CleanerLimits, cleanable, plan_cleaning
from ottla.log.directory import LogDirectory
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_recovery import rebuild_producers
from ottla.log.scan import scan_batches
from ottla.records.batch import checksum_matches
from ottla.records.reader import read_records
from ottla.records.visibility import visible_batches
from ottla.testing.clock import FixedClock
from ottla.testing.history import BatchSource
from ottla.testing.memory_disk import Crashed, MemoryDisk

PARTITION = TopicPartition("orders", 0)
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    index_interval_bytes=100,
    segment_bytes=700,
    delete_retention_ms=1000,
    file_delete_delay_ms=500,
)


class World:
    """A directory with one partition, and what was ever written to it."""

    def __init__(self, seed: int, disk: MemoryDisk) -> None:
        self.random = Random(seed)
        self.disk = disk
        self.clock = FixedClock()
        self.config = CONFIG._replace(segment_bytes=self.random.choice([400, 700, 3000]))
        self.written = {}
        self.in_transactions = {}
        self.aborted = set()
        self.source = BatchSource(self.random, tombstones=self.random.choice([0.0, 0.2, 0.5]))
        self.directory = self.opened(disk)
        self.directory.create(PARTITION, Uuid(bytes(range(16))))
        self.calls_of_cleanings = []
        self.crash = None

    def opened(self, disk: MemoryDisk) -> LogDirectory:
        return LogDirectory(disk, "/data", self.clock, config_of=lambda topic: self.config)

    @property
    def log(self) -> PartitionLog:
        return self.directory.logs[PARTITION]

    def write(self, batches: int) -> None:
        for _ in range(batches):
            batch = self.source.next_batch()
            first_offset = self.log.log_end_offset
            assert not self.log.append_as_leader(batch, 0).error
            if self.random.random() < 0.1:
                self.log.roll()
            for _, header in visible_batches(batch, keep_control=True):
                offsets = range(first_offset, self.log.log_end_offset)
                if not header.is_control:
                    for record in read_records(batch):
                        self.written[record.offset] = (record.key, record.value, record.timestamp)
                    if header.is_transactional:
                        self.in_transactions.setdefault(header.producer_id, []).extend(offsets)
        self.log.advance_high_watermark(self.log.log_end_offset)
        for entry in self.log.aborted_transactions(0, self.log.log_end_offset):
            in_it = range(entry.first_offset, entry.last_offset)
            self.aborted |= set(in_it) & set(self.in_transactions.get(entry.producer_id, ()))

    def clean(self) -> None:
        """A cleaning with all that the broker does around it."""
        self.log.flush()
        self.directory.checkpoint()
        now_ms = self.clock.now_ms()
        durable = self.directory.saved_recovery_point(PARTITION)
        part = cleanable(self.log, self.directory.cleaner_offset(PARTITION), now_ms, durable)
        if part.cleanable_bytes == 0:
            return
        limits = CleanerLimits(map_bytes=24 * self.random.choice([2, 3, 100]), map_load_factor=1.0, buffer_bytes=900)
        job = CleaningJob.of_json(plan_cleaning(self.log, part, limits, now_ms, bytes(16)).to_json())
        swaps_at_once = self.random.random() < 0.5
        waiting = []
        for step in clean(self.disk, job):
            if isinstance(step, CleanedSegment):
                waiting.append(step)
                if swaps_at_once:
                    self.swap(waiting)
            else:
                self.swap(waiting)
                self.directory.save_cleaner_offset(PARTITION, step.clean_offset)
        self.log.remove_deleted()

    def swap(self, waiting: list[CleanedSegment]) -> None:
        while waiting:
            replacement = self.log.start_replacement(waiting.pop(0).base_offsets)
            replacement.run()
            assert self.log.finish_replacement(replacement)

    def restart(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.directory = self.opened(disk)
        self.directory.open_all()
        self.log.advance_high_watermark(self.log.log_end_offset)


def make_world(seed: int, crash_at: int = -1) -> World:
    """Everything that happens, up to the crash if there is one; the same for the same seed."""
    disk = MemoryDisk(Random(seed))
    world = World(seed, disk)
    disk.crash_at(crash_at)
    for _ in range(world.random.randint(1, 4)):
        world.write(world.random.randint(1, 40))
        world.log.flush()
        world.directory.checkpoint()
        world.clock.advance(world.random.choice([0, 600, 1500]))
        first = disk.calls + 1
        try:
            world.clean()
        except Crashed as crash:
            world.crash = crash
            break
        world.calls_of_cleanings += range(first, disk.calls + 1)
    return world


def records_in(log: PartitionLog) -> dict[int, tuple]:
    """Every data record, as read_uncommitted sees it."""
    found = {}
    last_offset = -1
    for segment in log.segments:
        for _, header, data in scan_batches(segment.file, 0, segment.size):
            assert checksum_matches(data, 0, header)
            assert header.base_offset > last_offset
            last_offset = header.last_offset
            if not header.is_control:
                for record in read_records(data, 0, header):
                    found[record.offset] = (record.key, record.value, record.timestamp)
    return found


def committed_offsets(log: PartitionLog) -> set[int]:
    """What a consumer at read_committed is shown, fetching a little at a time."""
    offset, end, seen = log.log_start_offset, log.last_stable_offset, set()
    while offset < end:
        data = log.read(offset, 300, end, min_one_batch=True).read()
        aborted = [(entry.producer_id, entry.first_offset) for entry in log.aborted_transactions(offset, end)]
        last = None
        for position, header in visible_batches(data, aborted):
            seen |= {record.offset for record in read_records(data, position, header)}
        for _, header in visible_batches(data, keep_control=True):
            last = header
        if last is None:
            break
        offset = last.next_offset
    return seen


def as_map(records: dict[int, tuple]) -> dict[bytes, bytes]:
    result = {}
    for _, (key, value, _) in sorted(records.items()):
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def producers_of(log: PartitionLog, state) -> dict:
    return {p.producer_id: (p.epoch, p.last_sequence, p.current_txn_first_offset) for p in state}


def check(world: World) -> None:
    log, written, aborted = world.log, world.written, world.aborted
    found = records_in(log)
    assert all(written[offset] == record for offset, record in found.items())
    assert log.log_end_offset == max([*written, log.log_end_offset - 1]) + 1
    decided = {offset: record for offset, record in written.items() if offset < log.last_stable_offset}
    expected = {offset: record for offset, record in decided.items() if offset not in aborted}
    seen = committed_offsets(log)
    assert not seen & aborted
    assert as_map({offset: found[offset] for offset in seen}) == as_map(expected)
    not_aborted = {offset: record for offset, record in written.items() if offset not in aborted}
    assert as_map({o: r for o, r in found.items() if o not in aborted}) == as_map(not_aborted)
    rebuilt = rebuild_producers(_NoSnapshots(), log.segments, log.log_start_offset, log.log_end_offset, 0)
    assert producers_of(log, rebuilt) == producers_of(log, log.producers)


class _NoSnapshots:
    def load(self, state, log_start_offset, up_to, silent_since_ms):
        return log_start_offset


def test_readers_end_with_the_same_map_after_any_number_of_cleanings():
    removed = 0
    for seed in range(80):
        world = make_world(seed)
        check(world)
        removed += len(world.written) - len(records_in(world.log))
        world.directory.close()
        world.restart(world.disk)
        check(world)
        world.write(5)
        world.clean()
        check(world)
    assert removed > 500, "nothing was cleaned, so nothing was shown"


def crash_points(seeds: range, every: int) -> list[tuple[int, int]]:
    points = []
    for seed in seeds:
        points += [(seed, call) for call in make_world(seed).calls_of_cleanings[seed % every :: every]]
    return points


def check_crash(seed: int, call: int) -> None:
    world = make_world(seed, crash_at=call)
    assert world.crash is not None
    world.restart(world.disk.survivor(Random(seed * 1000 + call)))
    check(world)
    world.clean()
    check(world)


def test_a_power_cut_at_any_moment_of_a_cleaning_loses_nothing():
    for seed, call in crash_points(range(10), every=13):
        try:
            check_crash(seed, call)
        except BaseException as problem:
            problem.add_note(f"seed {seed}, crash at call {call}")
            raise


@pytest.mark.long
def test_a_power_cut_at_any_moment_of_a_cleaning_loses_nothing_in_the_long_run():
    for seed, call in crash_points(range(400), every=1):
        try:
            check_crash(seed, call)
        except BaseException as problem:
            problem.add_note(f"seed {seed}, crash at call {call}")
            raise
