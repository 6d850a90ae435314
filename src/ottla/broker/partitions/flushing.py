"""Forcing a log to disk: what `flush.messages` makes producers wait for, `flush.ms` does in the background, a roll does
for the segments that are full, as in Apache Kafka, and a follower for a log that it has cut.

One flush of a partition is under way at a time. What is appended meanwhile waits for the next one, which begins at
once: many producers share each turn of the disk. The recovery point follows what is flushed, and the checkpoint after
it: a crash scans little more than the active segment, and takes all before it as it is.

A disk that fails to sync has lost data, nobody knows which: its directory goes offline. That there is no descriptor to
sync a file with, or no room for the end of an index, is no such failure: nothing was asked of the disk. It is tried
again a little later.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.log.errors import PASSING
from ottla.log.flush import Flush
from ottla.runtime.apart import later
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_TRY_AGAIN_S = 1.0


class Flushing:
    """Of the partitions that a node holds."""

    def __init__(self, partitions: "Partitions", world: World, events: PartitionEvents) -> None:
        self._partitions = partitions
        self._world = world
        self._events = events

    def flush(self, partition: Partition) -> None:
        """Begins to flush all of the log, unless a flush is under way.

        A partition that is changing to another log is flushed when it has.
        """
        if not self._must_wait(partition):
            self._start(partition, partition.log.start_flush)

    def flush_rolled(self, partition: Partition) -> None:
        """The same for the segments that are not active, if one of them is not flushed."""
        if partition.log.has_unflushed_segments and not self._must_wait(partition):
            self._start(partition, partition.log.start_flush_of_rolled)

    def flush_what_waits(self, partition: Partition) -> None:
        """After something that flushes had to wait for."""
        if partition.must_be_flushed:
            self.flush(partition)
        else:
            self.flush_rolled(partition)

    def on_log_changed(self, partition: Partition) -> None:
        """The partition has another log, which is as durable. A follower may have waited for a flush of the old one."""
        self._events.on_flushed(partition)
        self.flush_what_waits(partition)

    def _must_wait(self, partition: Partition) -> bool:
        return partition.is_flushing or partition.is_changing_log or not self._partitions.holds(partition)

    def _start(self, partition: Partition, start: Callable[[], Flush]) -> None:
        partition.is_flushing = True
        try:
            work = start()
        except OSError as problem:
            if problem.errno in PASSING:
                self._put_off(partition, problem)
            else:
                partition.is_flushing = False
                self._partitions.fail_directory(partition.directory, problem)
            return
        partition.begin_job()
        self._world.workers.run(
            work.run,
            lambda _: self._on_flushed(partition, work),
            lambda problem: self._on_failed(partition, work, problem),
        )

    def _on_flushed(self, partition: Partition, work: Flush) -> None:
        partitions = self._partitions
        partition.is_flushing = False
        try:
            flushed_offset = partition.log.finish_flush(work)
        except Exception as problem:
            partition.end_job()
            partitions.on_broken(partition, problem)
            return
        partition.flushed_ms = self._world.clock.now_ms()
        partitions.has_news_for_checkpoints = True
        partition.end_job()
        if not partitions.holds(partition):
            return  # Deleted, or its directory failed, meanwhile.
        partition.on_flushed(flushed_offset)
        self._events.on_flushed(partition)
        partitions.purgatory.wake(partition)
        self.flush_what_waits(partition)

    def _on_failed(self, partition: Partition, work: Flush, problem: Exception) -> None:
        """Nothing of what was to be flushed is known to be safe: a disk that fails here is not asked again.

        One that has no room for leader epochs or a snapshot is: a sync that fails never says that (`SyncFailed`).
        """
        partition.is_flushing = False
        work.end()
        partition.end_job()
        if not self._partitions.holds(partition):
            return
        if not isinstance(problem, OSError):
            # A fault of this node's own. Without another flush a follower would fetch nothing more.
            self._try_later(partition)
            raise problem
        if problem.errno in PASSING:
            self._put_off(partition, problem)
        else:
            self._partitions.fail_directory(partition.directory, problem)

    def _put_off(self, partition: Partition, problem: OSError) -> None:
        """No other flush of the partition begins before it is tried again."""
        self._partitions.on_disk_error(partition.directory, problem)
        self._try_later(partition)

    def _try_later(self, partition: Partition) -> None:
        partition.is_flushing = True

        def try_again() -> None:
            partition.is_flushing = False
            self.flush_what_waits(partition)

        later(self._world.timers, _TRY_AGAIN_S, try_again)
