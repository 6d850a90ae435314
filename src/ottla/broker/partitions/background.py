"""What a broker does without being asked: flushing, retention, checkpoints, forgetting producers and dead clients.

Theory of operation. A timer for each; none of them waits. What can take long is cut up: retention looks at a few
partitions at a time and continues in the next turn of the loop, so that requests come in between. Files are synced,
removed and checkpointed on disk threads. A round that is still under way when the next is due is not doubled.
What raises over one partition is logged, and the others have their turn (`runtime.apart`).
"""

from collections.abc import Callable, Iterator
from itertools import chain

from ottla.base.ports import Timer
from ottla.broker.partitions.held_partitions import LOG_DIRS, Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.removing import remove_later
from ottla.log.directory import LogDirectory
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.runtime.apart import apart
from ottla.runtime.world import World

_NEVER = (1 << 63) - 1
_SLICE_S = 0.005
_SEGMENTS_AT_ONCE = 16
_PRODUCER_CHECK_MS = 600_000  # producer.id.expiration.check.interval.ms, which Kafka keeps to itself
_CLIENT_CHECK_MS = 10_000


class Background:
    """Begins with `start`; `stop` lets go of the timers. What is on a disk thread by then still finishes."""

    def __init__(self, partitions: Partitions, world: World) -> None:
        self._partitions = partitions
        self._world = world
        self._elapsed_s = world.clock.elapsed_s
        self._timers: list[Timer] = []
        self._is_checkpointing = False
        self._retention: Iterator[Partition] | None = None
        self._is_going_on = False

    def start(self) -> None:
        config = self._partitions.node_settings.effective
        self._every(config.integer("log.retention.check.interval.ms"), self.apply_retention)
        self._every(config.integer("log.flush.scheduler.interval.ms"), self.flush_due)
        self._every(self._checkpoint_interval_ms(), self.checkpoint)
        self._every(_PRODUCER_CHECK_MS, self.expire_producers)
        self._every(_CLIENT_CHECK_MS, self._partitions.purgatory.drop_closed)

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._retention = None

    def _every(self, interval_ms: int, work: Callable[[], None]) -> None:
        if 0 < interval_ms < _NEVER:
            self._timers.append(self._world.timers.every(interval_ms / 1000, work))

    def _checkpoint_interval_ms(self) -> int:
        """The three checkpoints are written together, as often as the one that is wanted most often."""
        config = self._partitions.node_settings.effective
        return min(
            config.integer("replica.high.watermark.checkpoint.interval.ms"),
            config.integer("log.flush.offset.checkpoint.interval.ms") or _NEVER,
            config.integer("log.flush.start.offset.checkpoint.interval.ms") or _NEVER,
        )

    # Retention

    def apply_retention(self) -> None:
        """Begins a round over all partitions, unless one is under way."""
        if self._retention is None:
            self._retention = iter(list(self._partitions.values()))
            self._continue_retention()

    def _continue_retention(self) -> None:
        if self._retention is None:
            return  # Stopped.
        stop_s = self._elapsed_s() + _SLICE_S
        for partition in self._retention:
            while self._may_have_more(partition):
                if self._elapsed_s() >= stop_s:
                    self._retention = chain((partition,), self._retention)
                    break
            if self._elapsed_s() >= stop_s:
                self._world.timers.after(0, self._continue_retention)
                return
        self._retention = None

    def _may_have_more(self, partition: Partition) -> bool:
        """Takes some out of the partition's log, if it is time, and returns whether there may be more."""
        if not apart(self._world.timers, self._retain, partition):
            self._is_going_on = False
        return self._is_going_on

    def _retain(self, partition: Partition) -> None:
        """`_is_going_on` then says whether there may be more."""
        was_going_on, self._is_going_on = self._is_going_on, False
        partitions = self._partitions
        if not partitions.holds(partition) or partition.is_removing:
            return
        try:
            count = partition.log.apply_retention(_SEGMENTS_AT_ONCE)
        except STORAGE_PROBLEMS as problem:
            partitions.on_storage_problem(partition, problem)
            return
        if count:
            partitions.has_news_for_checkpoints = True
        self._is_going_on = count == _SEGMENTS_AT_ONCE
        if (count or was_going_on) and not self._is_going_on:
            remove_later(partitions, self._world, partition)
            partitions.flushing.flush_rolled(partition)

    # Flushing

    def flush_due(self) -> None:
        """Flushes what has been waiting for `flush.ms`."""
        now_ms = self._world.clock.now_ms()
        for partition in list(self._partitions.values()):
            log = partition.log
            is_due = now_ms - partition.flushed_ms >= partition.settings.flush_ms
            if is_due and log.recovery_point < log.log_end_offset:
                apart(self._world.timers, self._partitions.flushing.flush, partition)

    # Checkpoints

    def checkpoint(self) -> None:
        """Writes recovery points, log start offsets and high watermarks, if any has moved since the last time."""
        partitions = self._partitions
        if self._is_checkpointing or not partitions.has_news_for_checkpoints:
            return
        self._is_checkpointing = True
        partitions.has_news_for_checkpoints = False
        directories = list(partitions.logs.online.values())
        self._world.workers.run(
            lambda: _checkpoint(directories), self._on_checkpointed, self._on_not_checkpointed, key=LOG_DIRS
        )

    def _on_not_checkpointed(self, problem: Exception) -> None:
        """A fault of our own: it is logged on the loop, and the next time tries again."""
        self._is_checkpointing = False
        self._partitions.has_news_for_checkpoints = True
        raise problem

    def _on_checkpointed(self, problems: dict[str, OSError]) -> None:
        self._is_checkpointing = False
        for path, problem in problems.items():
            self._partitions.has_news_for_checkpoints = True
            self._partitions.on_disk_error(path, problem)

    # Producers

    def expire_producers(self) -> None:
        """Forgets producers that have been silent for `producer.id.expiration.ms`."""
        silent_since_ms = self._world.clock.now_ms() - self._partitions.node_settings.effective.integer(
            "producer.id.expiration.ms"
        )
        for partition in self._partitions.values():
            if len(partition.log.producers):
                apart(self._world.timers, partition.log.producers.expire, silent_since_ms)


def _checkpoint(directories: list[LogDirectory]) -> dict[str, OSError]:
    """For a disk thread, with the key of all that changes a directory's set of logs."""
    problems: dict[str, OSError] = {}
    for directory in directories:
        try:
            directory.checkpoint()
        except OSError as problem:
            problems[directory.path] = problem
    return problems
