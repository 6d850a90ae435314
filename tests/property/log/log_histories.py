"""Random histories of one partition through several lives of its node.

A life is a start, some operations, and an end: a crash at any call to the disk, a clean stop, or just the last
operation. Between two lives lies a power cut (`cut_power`: what was not synced is lost or not, as chance has it) or no
more than the death of the process (`kill`). Each start checks what it finds against the model of the log, which is
carried through all lives.

A disk that fails is treated as the broker does it: full, the history goes on, and what was refused is tried again or
given up; broken, the directory is abandoned and opened anew.
"""

import errno
from collections.abc import Callable
from random import Random

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Disk, SyncFailed
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.quick_append import NOT_NOW, append_produced
from ottla.broker.partitions.topic_settings import topic_settings
from ottla.broker.partitions.traffic import TopicTraffic
from ottla.log.directory import LogDirectory
from ottla.log.flush import Flush
from ottla.log.log_config import LogConfig
from ottla.machines.partition.leader import LeaderState
from ottla.records.batch import assign, batches, read_header
from ottla.testing.clock import FixedClock
from ottla.testing.history import BatchSource
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.property.log.log_model import LogModel

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = Uuid(bytes(range(16)))
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_index_bytes=80, file_delete_delay_ms=5)
COMPACTED = CONFIG._replace(cleanup_policy=("compact",))
# A disk that fails for a while does so for fewer calls than this.
_MOST_FAILURES = 20


_SETTINGS = topic_settings({})


class _Brokers:
    def active_epoch(self, broker_id: int) -> int | None:
        return None

    def is_alive(self, broker_id: int) -> bool:
        return True


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
        self.model = LogModel(may_leap=config.is_compacted)
        self.epoch = 0
        self.refused: bytearray | None = None
        self.flushing: Flush | None = None

    # Lives

    def live(self, operations: int) -> None:
        """One life. Raises `Crashed` if it ends within.

        Where a sync that fails loses what was to be synced, that is the end too: a machine that goes on with what it
        has in memory would take it for durable. The next life has what the disk has.
        """
        self.insist(self.start)
        for _ in range(operations):
            operation = self.random.choice(FOLLOWER if self.config.is_compacted else LEADER)
            try:
                operation(self)
            except OSError as problem:
                self.on_disk_error(problem)
            if not self.log.has_unsynced_cut:
                self.model.on_cut_synced()
        if self.random.random() < 0.5:
            self.stop()

    def cut_power(self, chance: Random) -> None:
        self.disk = self.disk.survivor(chance)
        self.model.on_power_cut()

    def kill(self) -> None:
        self.disk = self.disk.survivor_of_kill()
        self.model.on_process_gone()

    def start(self) -> None:
        self.directory = LogDirectory(self.port(), "/data", self.clock, config_of=lambda topic: self.config)
        try:
            self.directory.open_all()
            log = self.directory.logs.get(PARTITION)
            if log is None:
                assert self.model.kept == 0, "the partition is gone, and records with it that were to be kept"
                log = self.directory.create(PARTITION, TOPIC_ID)
        except OSError as problem:
            self.directory.abandon()
            self._end_if_lost(problem)
            raise
        self.log = log
        self.flushing = None
        self.model.meet(log)
        self.forget_producers()
        log.advance_high_watermark(log.log_end_offset)
        self.lead_again()

    def port(self) -> Disk:
        """The disk as the log is given it."""
        return self.disk

    def stop(self) -> None:
        """A clean stop. One that fails leaves what an abandoned directory leaves."""
        try:
            self.directory.close()
        except OSError as problem:
            self.directory.abandon()
            self._end_if_lost(problem)
        else:
            self.model.on_flushed()
        assert self.disk.open_files == 0

    def _end_if_lost(self, problem: OSError) -> None:
        """Raises what `insist` does not take for a disk that is failing for a while."""
        if self.disk.syncs_lose_pages and isinstance(problem, SyncFailed):
            raise Crashed(str(problem)) from problem

    def on_disk_error(self, problem: OSError) -> None:
        self._end_if_lost(problem)
        if problem.errno != errno.ENOSPC:
            self.directory.abandon()
            self.model.on_process_gone()
            self.insist(self.start)

    def insist(self, operation: Callable[[], object]) -> None:
        """Repeats what a disk that is failing for a while refuses."""
        for _ in range(_MOST_FAILURES):
            try:
                operation()
                return
            except OSError as problem:
                self._end_if_lost(problem)
        operation()

    # Operations

    def append(self) -> None:
        batch = self.refused or self.source.next_batch()
        end = self.log.log_end_offset
        assign(batch, 0, end, self.epoch)
        self.model.on_appending([batch])
        try:
            base_offset = append_produced(self.partition(), batch, read_header(batch))
            if base_offset == NOT_NOW:  # As a broker does it: the usual way is for what is not as simple as that.
                appended = self.log.append_as_leader(batch, self.epoch)
                assert not appended.error
                assert not appended.repeated
                base_offset = appended.base_offset
        except OSError:
            self.on_refused([batch], end)
            raise
        assert base_offset == end
        self.on_appended()

    def partition(self) -> Partition:
        """The log as a leader's, whose follower is behind: the high watermark is not moved by an append."""
        partition = Partition(PARTITION, TOPIC_ID, self.log, _SETTINGS, TopicTraffic())
        end = self.log.log_end_offset
        partition.leader_epoch = self.epoch
        partition.state = LeaderState(
            1,
            leader_epoch=self.epoch,
            partition_epoch=0,
            replicas=(1, 2),
            isr=(1, 2),
            log_end_offset=end,
            local_end_offset=end,
            high_watermark=self.log.high_watermark,
            min_insync_replicas=1,
            max_lag_ms=1000,
            brokers=_Brokers(),
            now_ms=self.clock.now_ms(),
        )
        return partition

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
        self.model.on_appending(fetched)
        try:
            appended = self.log.append_as_follower(b"".join(fetched))
        except OSError:
            self.on_refused(fetched, end)
            raise
        if appended.error:  # Too much for one segment.
            self.on_refused(fetched, end)
            return
        self.on_appended()

    def on_appended(self) -> None:
        self.refused = None
        self.model.on_appended(self.log.log_end_offset)
        self.log.advance_high_watermark(self.log.log_end_offset)

    def on_refused(self, appending: list[bytearray], end: int) -> None:
        """Its producer sends it again, or has given up."""
        assert self.log.log_end_offset == end
        self.model.on_refused(end)
        if len(appending) == 1 and not self.config.is_compacted and self.random.random() < 0.7:
            self.refused = appending[0]
        else:
            self.forget_producers()

    def forget_producers(self) -> None:
        self.source.forget_producers()
        self.refused = None

    def flush(self) -> None:
        self.log.flush()
        self.model.on_flushed()

    def flush_rolled(self) -> None:
        """Begins a flush of the segments that are full, or ends the one that is under way: much can happen between."""
        if self.flushing is None:
            if self.log.has_unflushed_segments:
                self.flushing = self.log.start_flush_of_rolled()
            return
        flushing, self.flushing = self.flushing, None
        try:
            flushing.run()
        except OSError:
            flushing.end()
            raise
        self.log.finish_flush(flushing)
        self.model.on_flushed_before(self.log.recovery_point)

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
        ends = [offset for offset in self.model.written if offset >= self.log.log_start_offset]
        if not ends:
            return
        offset = self.random.choice(ends)
        self.model.on_truncating(offset)
        durably = self.random.random() < 0.5  # Else a flush, or the next append, makes it so.
        self.insist(lambda: self.log.truncate_to(offset, durably=durably))
        assert self.log.log_end_offset <= offset
        self.model.on_truncated(offset, self.log.log_end_offset, durably=durably)
        self.forget_producers()
        self.lead_again()

    def begin_anew(self) -> None:
        """A follower whose leader has nothing older than some offset, mostly one that this log has not reached."""
        offset = self.random.randint(self.log.log_start_offset, self.log.log_end_offset + 10)
        self.model.on_beginning_anew(offset)
        durably = self.random.random() < 0.5
        self.insist(lambda: self.log.truncate_fully(offset, durably=durably))
        assert self.log.log_start_offset == self.log.log_end_offset == offset
        self.model.on_begun_anew(offset, durably=durably)
        self.forget_producers()
        self.lead_again()

    def delete_records(self) -> None:
        offset = self.random.randint(self.log.log_start_offset, self.log.high_watermark)
        self.model.on_deleting(offset)
        self.log.advance_log_start_offset(offset)
        self.log.apply_retention()

    def remove_deleted(self) -> None:
        self.clock.advance(10)
        self.log.remove_deleted()

    def restart(self) -> None:
        log_start_offset = self.log.log_start_offset
        self.stop()
        self.model.on_process_gone()
        self.insist(self.start)
        assert self.log.log_start_offset == log_start_offset or not self.directory.was_clean


_USUAL = (
    *(LogHistory.flush,) * 2,
    *(LogHistory.flush_rolled,) * 4,
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
