"""Random histories of one partition through several lives of its node, and what must have become of them.

A life is a start, some operations, and an end: a crash at any call to the disk, a clean stop, or just the last
operation. Between two lives lies a power cut (`cut_power`: what was not synced is lost or not, as chance has it) or no
more than the death of the process (`kill`). Each start checks what it finds against the history.

What the history knows is of three kinds. `written` is what the log holds. `doubtful` is what it may hold instead:
batches that the disk refused, but perhaps not wholly, and batches that a truncation has cut away, but perhaps not yet
durably. Up to `kept` there must be no doubt: all of that was flushed, or, if only the process died, acknowledged.

A disk that fails is treated as the broker does it: full, the history goes on, and what was refused is tried again or
given up; broken, the directory is abandoned and opened anew.
"""

import errno
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from random import Random

from sound_logs import check_sound

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Disk
from ottla.log.directory import LogDirectory
from ottla.log.log_config import LogConfig
from ottla.log.scan import scan_batches
from ottla.records.batch import assign, batches, checksum_matches
from ottla.testing.clock import FixedClock
from ottla.testing.history import BatchSource
from ottla.testing.memory_disk import MemoryDisk

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = Uuid(bytes(range(16)))
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_index_bytes=80, file_delete_delay_ms=5)
COMPACTED = replace(CONFIG, cleanup_policy=("compact",))
# A disk that fails for a while does so for fewer calls than this.
_MOST_FAILURES = 20


class LogHistory:
    """A leader's log, or, with a compacted topic, a follower's: what it is sent leaps over offsets."""

    def __init__(self, seed: int, disk: MemoryDisk, config: LogConfig = CONFIG) -> None:
        self.random = Random(seed)
        self.disk = disk
        disk.make_dirs("/data")  # Formatting the storage has made it, before anything is counted.
        disk.sync_dir("/")
        disk.calls = 0
        self.config = config
        self.clock = FixedClock()
        self.source = BatchSource(self.random)
        self.written: dict[int, bytes] = {}
        self.doubtful: dict[int, set[bytes]] = {}
        self.flushed = self.acknowledged = self.kept = 0
        self.log_start_offset = self.deleted_before = 0
        self.epoch = 0
        self.refused: bytearray | None = None

    # Lives

    def live(self, operations: int) -> None:
        """One life. Raises `Crashed` if it ends within."""
        self.insist(self.start)
        for _ in range(operations):
            operation = self.random.choice(FOLLOWER if self.config.is_compacted else LEADER)
            try:
                operation(self)
            except OSError as problem:
                self.on_disk_error(problem)
        if self.random.random() < 0.5:
            self.stop()

    def cut_power(self, chance: Random) -> None:
        self.disk = self.disk.survivor(chance)
        self.kept = self.acknowledged = self.flushed
        self.is_settled = True

    def kill(self) -> None:
        self.disk = self.disk.survivor_of_kill()
        self.kept = self.acknowledged
        self.is_settled = False

    is_settled = True
    """Whether nothing can be lost any more, or come back, of what the next start finds."""

    def start(self) -> None:
        self.directory = LogDirectory(self.port(), "/data", self.clock, config_of=lambda topic: self.config)
        try:
            self.directory.open_all()
            log = self.directory.logs.get(PARTITION)
            if log is None:
                assert self.kept == 0, "the partition is gone, and records with it that were to be kept"
                log = self.directory.create(PARTITION, TOPIC_ID)
        except OSError:
            self.directory.abandon()
            raise
        self.log = log
        self.check()
        self.take_up()

    def port(self) -> Disk:
        """The disk as the log is given it."""
        return self.disk

    def take_up(self) -> None:
        """What was found is what the log holds from now on."""
        older = {} if self.is_settled else {base: data for base, data in self.written.items() if base < self.base}
        self.written = older | self.found
        if self.is_settled:
            self.doubtful = {}
        self.acknowledged = self.log.log_end_offset
        self.flushed = min(self.flushed, self.acknowledged)
        self.log_start_offset = self.log.log_start_offset
        self.source.forget_producers()
        self.refused = None
        self.log.advance_high_watermark(self.log.log_end_offset)
        self.lead_again()

    def stop(self) -> None:
        """A clean stop. One that fails leaves what an abandoned directory leaves."""
        try:
            self.directory.close()
        except OSError:
            self.directory.abandon()
        else:
            self.flushed = self.acknowledged
        assert self.disk.open_files == 0

    def on_disk_error(self, problem: OSError) -> None:
        if problem.errno != errno.ENOSPC:
            self.directory.abandon()
            self.kept, self.is_settled = self.acknowledged, False
            self.insist(self.start)

    def insist(self, operation: Callable[[], object]) -> None:
        """Repeats what a disk that is failing for a while refuses."""
        for _ in range(_MOST_FAILURES):
            with suppress(OSError):
                operation()
                return
        operation()

    # Operations

    def append(self) -> None:
        batch = self.refused or self.source.next_batch()
        end = self.log.log_end_offset
        assign(batch, 0, end, self.epoch)
        self.note([batch])
        try:
            appended = self.log.append_as_leader(batch, self.epoch)
        except OSError:
            self.on_refused([batch], end)
            raise
        assert not appended.error
        assert not appended.repeated
        assert appended.base_offset == end
        self.on_appended()

    def follow(self) -> None:
        """A few batches as a leader has them whose log is compacted: some offsets are nobody's."""
        end = offset = self.log.log_end_offset
        fetched: list[bytearray] = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            batch = self.source.next_batch()
            offset += self.random.choice([0, 0, 1, 5])
            assign(batch, 0, offset, self.epoch)
            [(_, header)] = batches(batch)
            offset = header.next_offset
            fetched.append(batch)
        self.note(fetched)
        try:
            appended = self.log.append_as_follower(b"".join(fetched))
        except OSError:
            self.on_refused(fetched, end)
            raise
        if appended.error:  # Too much for one segment.
            self.on_refused(fetched, end)
            return
        self.on_appended()

    def note(self, appending: Iterable[bytearray]) -> None:
        for batch in appending:
            [(_, header)] = batches(batch)
            self.written[header.base_offset] = bytes(batch)

    def on_appended(self) -> None:
        self.refused = None
        self.acknowledged = self.log.log_end_offset
        self.log.advance_high_watermark(self.acknowledged)

    def on_refused(self, appending: list[bytearray], end: int) -> None:
        """It has not happened, as far as the log tells. Its producer sends it again, or has given up."""
        assert self.log.log_end_offset == end
        self.no_longer_sure_of(end)
        if len(appending) == 1 and not self.config.is_compacted and self.random.random() < 0.7:
            self.refused = appending[0]
        else:
            self.refused = None
            self.source.forget_producers()

    def no_longer_sure_of(self, offset: int) -> None:
        """What is at `offset` or after may or may not be there."""
        for base in [base for base in self.written if base >= offset]:
            self.doubtful.setdefault(base, set()).add(self.written.pop(base))

    def end_of_written(self) -> int:
        last = max(self.written, default=None)
        if last is None:
            return self.log.segments[0].base_offset
        [(_, header)] = batches(self.written[last])
        return header.next_offset

    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.acknowledged
        self.doubtful = {}

    def checkpoint(self) -> None:
        self.directory.checkpoint()

    def roll(self) -> None:
        self.log.roll()

    def lead_again(self) -> None:
        """Another epoch; its leader is this node, or with a compacted topic another one."""
        self.epoch += 1
        if not self.config.is_compacted:
            self.log.begin_leader_epoch(self.epoch)

    def truncate(self) -> None:
        ends = [offset for offset in self.written if offset >= self.log.log_start_offset]
        if not ends:
            return
        offset = self.random.choice(ends)
        self.no_longer_sure_of(offset)
        end = self.end_of_written()
        self.flushed = min(self.flushed, end)
        self.acknowledged = min(self.acknowledged, end)
        self.source.forget_producers()
        self.refused = None
        self.insist(lambda: self.log.truncate_to(offset))
        assert self.log.log_end_offset <= offset
        self.acknowledged = self.log.log_end_offset
        self.doubtful = {base: data for base, data in self.doubtful.items() if base < offset}
        self.lead_again()

    def begin_anew(self) -> None:
        """A follower whose leader has nothing older than some offset, mostly one that this log has not reached."""
        offset = self.random.randint(self.log.log_start_offset, self.log.log_end_offset + 10)
        self.no_longer_sure_of(0)
        self.flushed = self.acknowledged = 0
        self.log_start_offset = self.deleted_before = max(self.log_start_offset, self.deleted_before, offset)
        self.source.forget_producers()
        self.refused = None
        self.insist(lambda: self.log.truncate_fully(offset))
        assert self.log.log_start_offset == self.log.log_end_offset == offset
        self.flushed = self.acknowledged = self.log_start_offset = offset
        self.doubtful = {}
        self.lead_again()

    def delete_records(self) -> None:
        self.log_start_offset = self.random.randint(self.log.log_start_offset, self.log.high_watermark)
        self.deleted_before = max(self.deleted_before, self.log_start_offset)
        self.log.advance_log_start_offset(self.log_start_offset)
        self.log.apply_retention()

    def remove_deleted(self) -> None:
        self.clock.advance(10)
        self.log.remove_deleted()

    def restart(self) -> None:
        log_start_offset = self.log.log_start_offset
        self.stop()
        self.kept, self.is_settled = self.acknowledged, False
        self.insist(self.start)
        assert self.log.log_start_offset == log_start_offset or not self.directory.was_clean

    # Checks

    def check(self) -> None:
        """What a start finds must be a log that someone could trust."""
        log = self.log
        self.base = log.segments[0].base_offset
        assert log.log_end_offset >= self.kept, "records are gone that were to be kept"
        assert self.base <= self.log_start_offset, "records were deleted that nobody asked to delete"
        assert log.log_start_offset <= self.log_start_offset
        self.found: dict[int, bytes] = {}
        offset = self.base
        for segment in log.segments:
            if segment.base_offset != offset:
                self.check_leap(offset, segment.base_offset, between_segments=True)
                offset = segment.base_offset
            for _, header, data in scan_batches(segment.file, 0, segment.size):
                assert checksum_matches(data, 0, header)
                self.check_batch(header.base_offset, bytes(data))
                if header.base_offset != offset:
                    self.check_leap(offset, header.base_offset, between_segments=segment.base_offset == offset)
                offset = header.next_offset
        assert offset == log.log_end_offset
        check_sound(log, self.deleted_before)

    def check_batch(self, base: int, data: bytes) -> None:
        self.found[base] = data
        written = data == self.written.get(base)
        assert written or (base >= self.kept and data in self.doubtful.get(base, ())), "not what was written"

    def check_leap(self, end: int, base: int, *, between_segments: bool) -> None:
        """A hole in the offsets: of a compacted topic, and with nothing in it that was written."""
        assert self.config.is_compacted, "a hole"
        assert base > end, "a repetition"
        missing = [offset for offset in self.written if end <= offset < base]
        # A power cut can take the end of a segment and leave the next: a hole like any other, to a compacted topic.
        assert not missing or (between_segments and missing[0] >= self.kept), "a hole where something was written"


_USUAL = (
    *(LogHistory.flush,) * 3,
    *(LogHistory.checkpoint,) * 3,
    LogHistory.roll,
    LogHistory.truncate,
    LogHistory.begin_anew,
    LogHistory.delete_records,
    LogHistory.remove_deleted,
    LogHistory.restart,
)
LEADER = (*(LogHistory.append,) * 14, LogHistory.lead_again, *_USUAL)
FOLLOWER = (*(LogHistory.follow,) * 10, *_USUAL)
