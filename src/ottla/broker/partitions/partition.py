"""A partition that this node holds: its log, its place in the cluster, and who waits for it.

The pure part (who is in sync, where the high watermark is) is `machines.partition`; this joins it to the log.
What is appended counts as the leader's at once, unless `flush.messages` says that it has to be on the disk first: then
the partition is `awaits_flush`, the high watermark stays, and a flush has to follow (`partitions.flushing`).
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.lent import Writable
from ottla.broker.partitions.purgatory import Operation
from ottla.broker.partitions.topic_settings import TopicSettings
from ottla.broker.partitions.traffic import TopicTraffic
from ottla.log.outcomes import Appended, FileSlice
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import AppendOrigin
from ottla.log.segment import Segment
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.partition.leader import Brokers, LeaderState
from ottla.records.header import BatchHeader
from ottla.wire.errors import ErrorCode

NO_EPOCH = -1
_FRESH_BATCHES = 8


class Surroundings(NamedTuple):
    """What leaders go by that is the same for all partitions of a node."""

    node_id: int
    brokers: Brokers
    max_lag_ms: int
    """`replica.lag.time.max.ms`"""


class Partition:
    """`state` is None while another node leads, or none. `waiting` belongs to the purgatory."""

    __slots__ = (
        "_fresh",
        "_fresh_segment",
        "_jobs",
        "_when_idle",
        "awaits_flush",
        "flushed_ms",
        "is_changing_log",
        "is_flushing",
        "is_removing",
        "kept_s",
        "kept_until_s",
        "leader_epoch",
        "leader_id",
        "log",
        "name",
        "settings",
        "state",
        "topic_id",
        "traffic",
        "waiting",
    )

    def __init__(
        self, name: TopicPartition, topic_id: Uuid, log: PartitionLog, settings: TopicSettings, traffic: TopicTraffic
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.settings = settings
        self.traffic = traffic
        self.leader_id = NO_EPOCH
        self.leader_epoch = NO_EPOCH
        self.state: LeaderState | None = None
        self.waiting: dict[Operation, None] | None = None
        self.awaits_flush = False
        self.is_flushing = False
        self.is_changing_log = False
        self.is_removing = False
        self.flushed_ms = 0
        self.kept_s = 0.0
        self.kept_until_s = 0.0
        """Until then it is not given up again (`Partitions.give_up`), for `kept_s` since the last time."""
        self._fresh: dict[int, int] = {}
        self._fresh_segment: Segment | None = None
        self._jobs = 0
        self._when_idle: tuple[Callable[[], None], ...] = ()

    def __repr__(self) -> str:
        return f"Partition({self.name}, leader epoch {self.leader_epoch})"

    @property
    def is_leader(self) -> bool:
        return self.state is not None

    @property
    def directory(self) -> str:
        """The log directory that holds it."""
        return self.log.directory.rpartition("/")[0]

    # From metadata

    def on_image(self, image: PartitionImage, here: Surroundings, now_ms: int) -> None:
        """Takes up what the cluster has decided. May raise `OSError`: a leader writes down where its epoch begins."""
        if image.leader_epoch < self.leader_epoch:
            return
        if image.leader != here.node_id:
            self.leader_id, self.leader_epoch, self.state = image.leader, image.leader_epoch, None
            self._fresh.clear()
        elif self.state is not None and image.leader_epoch == self.leader_epoch:
            self.apply_high_watermark(self.state.on_image(image.replicas, image.isr, image.partition_epoch))
        else:
            self._become_leader(image, here, now_ms)

    def _become_leader(self, image: PartitionImage, here: Surroundings, now_ms: int) -> None:
        self.log.begin_leader_epoch(image.leader_epoch)
        self.leader_id, self.leader_epoch = here.node_id, image.leader_epoch
        self.state = LeaderState(
            here.node_id,
            leader_epoch=image.leader_epoch,
            partition_epoch=image.partition_epoch,
            replicas=image.replicas,
            isr=image.isr,
            log_end_offset=self.log.log_end_offset,
            local_end_offset=self.local_end_offset,
            high_watermark=self.log.high_watermark,
            min_insync_replicas=self.settings.min_insync_replicas,
            max_lag_ms=here.max_lag_ms,
            brokers=here.brokers,
            now_ms=now_ms,
        )
        self.log.advance_high_watermark(self.state.high_watermark)

    def apply_high_watermark(self, has_moved: bool) -> bool:
        """What the leader's state says, if that has moved; returns whether it has."""
        if has_moved:
            assert self.state is not None
            self.log.advance_high_watermark(self.state.high_watermark)
        return has_moved

    def on_settings(self, settings: TopicSettings) -> bool:
        """Returns whether the high watermark moved, as it may with another `min.insync.replicas`."""
        self.settings = settings
        self.log.config = settings.log
        state = self.state
        if state is None or state.min_insync_replicas == settings.min_insync_replicas:
            return False
        return self.apply_high_watermark(state.on_min_insync_replicas(settings.min_insync_replicas))

    def change_log(self, log: PartitionLog) -> None:
        """Goes on with a log that has the same records, in another directory. Nothing works on the old one by now."""
        assert not self._jobs, "a disk thread works on the log"
        assert log.log_end_offset == self.log.log_end_offset, "the logs do not end alike"
        self.log = log
        self.is_changing_log = False
        self._fresh.clear()
        self._fresh_segment = None

    # Asking

    def check_leader(self, current_leader_epoch: int) -> ErrorCode:
        """Whether a client that takes this node for the leader in that epoch (-1: any) is right (KIP-320)."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            fenced = current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.state is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def check_replica(self, current_leader_epoch: int) -> ErrorCode:
        """The same for a client that reads from whom it likes (KIP-392): a follower will do, if there is a leader."""
        error = self.check_leader(current_leader_epoch)
        is_follower = error is ErrorCode.NOT_LEADER_OR_FOLLOWER and self.leader_id >= 0
        return ErrorCode.NONE if is_follower else error

    def end_for_readers(self, isolation_level: int) -> int:
        """The offset before which consumers may read: the high watermark, or what is decided below it."""
        return self.log.last_stable_offset if isolation_level else self.log.high_watermark

    @property
    def local_end_offset(self) -> int:
        """Where the log ends as far as this node answers for it: on the disk, where `flush.messages` asks for that."""
        return self.log.recovery_point if self.awaits_flush else self.log.log_end_offset

    @property
    def must_be_flushed(self) -> bool:
        """What was appended, or cut away, has to be on the disk before anything more is fetched."""
        return self.awaits_flush or self.log.has_unsynced_cut

    # Writing

    def append_as_leader(
        self,
        data: Writable,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        header: BatchHeader | None = None,
    ) -> Appended:
        """Appends a validated batch. Raises `OSError` when the disk does."""
        assert self.state is not None, "only a leader appends"
        appended = self.log.append_as_leader(data, self.leader_epoch, origin, header)
        if not (appended.error or appended.repeated):
            self._on_grown(appended.base_offset, len(data))
        return appended

    def append_made_here(self, data: bytearray, record_count: int, max_timestamp: int) -> Appended:
        """As `PartitionLog.append_made_here`. Raises `OSError` when the disk does."""
        assert self.state is not None, "only a leader appends"
        appended = self.log.append_made_here(data, self.leader_epoch, record_count - 1, max_timestamp)
        if not appended.error:
            self._on_grown(appended.base_offset, len(data))
        return appended

    def append_as_follower(self, data: memoryview) -> Appended:
        """Appends batches as the leader has them. Raises `OSError` when the disk does."""
        assert self.state is None, "a leader does not follow"
        appended = self.log.append_as_follower(data)
        if self.log.log_end_offset - self.log.recovery_point >= self.settings.flush_messages:
            self.awaits_flush = True
        return appended

    def _on_grown(self, base_offset: int, size: int) -> None:
        """A batch has been appended: where it is is remembered, and the high watermark moves, if it may."""
        state, log, fresh = self.state, self.log, self._fresh
        segment, end_offset = log.segments[-1], log.log_end_offset
        if segment is not self._fresh_segment or len(fresh) >= _FRESH_BATCHES:
            fresh.clear()
            self._fresh_segment = segment
        fresh[base_offset] = segment.size - size
        if end_offset - log.recovery_point >= self.settings.flush_messages:
            self.awaits_flush = True
        elif state is not None and not self.awaits_flush and state.on_local_end(end_offset):
            log.advance_high_watermark(state.high_watermark)

    def on_flushed(self, end_offset: int) -> bool:
        """All before `end_offset` is on the disk. Returns whether the high watermark moved."""
        if not self.awaits_flush:
            return False
        log_end_offset = self.log.log_end_offset
        if log_end_offset - self.log.recovery_point < self.settings.flush_messages:
            self.awaits_flush = False
            end_offset = log_end_offset
        if self.state is None or end_offset <= self.state.local_end_offset:
            return False  # It began before the records that had to wait.
        return self.apply_high_watermark(self.state.on_local_end(end_offset))

    # Reading

    def read(self, offset: int, max_bytes: int, end_offset: int, *, min_one_batch: bool) -> FileSlice:
        """As `PartitionLog.read`, and quicker for who follows the end: where the newest batches are is remembered."""
        log, segment = self.log, self._fresh_segment
        position = self._fresh.get(offset)
        if position is not None and segment is log.segments[-1] and end_offset == log.log_end_offset:
            size = segment.size - position
            if size <= max_bytes and offset >= log.log_start_offset:
                return FileSlice(segment.file, position, size)
        return log.read(offset, max_bytes, end_offset, min_one_batch=min_one_batch)

    # Work on other threads

    @property
    def is_idle(self) -> bool:
        return not self._jobs

    def begin_job(self) -> None:
        """A disk thread is about to work on the log's files, which must stay."""
        self._jobs += 1

    def end_job(self) -> None:
        self._jobs -= 1
        if not self._jobs:
            callbacks, self._when_idle = self._when_idle, ()
            problems: list[Exception] = []
            for callback in callbacks:
                try:
                    callback()
                except Exception as problem:
                    problems.append(problem)
            if problems:
                raise problems[0]  # When all of them have been called.

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Calls back, now or later, when no disk thread works on the log. The broker asks by `Partitions.when_idle`."""
        if self._jobs:
            self._when_idle += (callback,)
        else:
            callback()
