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

from ottla.broker.partitions.held_partitions import PASSING
from ottla.broker.partitions.partition import Partition
from ottla.log.flush import Flush
from ottla.runtime.apart import later

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_TRY_AGAIN_S = 1.0


def flush(partitions: "Partitions", partition: Partition) -> None:
    """Begins to flush all of the log, unless a flush is under way.

    A partition that is changing to another log is flushed when it has.
    """
    if not _must_wait(partitions, partition):
        _start(partitions, partition, partition.log.start_flush)


def flush_rolled(partitions: "Partitions", partition: Partition) -> None:
    """The same for the segments that are not active, if one of them is not flushed."""
    if partition.log.has_unflushed_segments and not _must_wait(partitions, partition):
        _start(partitions, partition, partition.log.start_flush_of_rolled)


def flush_what_waits(partitions: "Partitions", partition: Partition) -> None:
    """After something that flushes had to wait for."""
    if partition.must_be_flushed:
        flush(partitions, partition)
    else:
        flush_rolled(partitions, partition)


def _must_wait(partitions: "Partitions", partition: Partition) -> bool:
    return partition.is_flushing or partition.is_changing_log or not partitions.holds(partition)


def _start(partitions: "Partitions", partition: Partition, start: Callable[[], Flush]) -> None:
    partition.is_flushing = True
    try:
        work = start()
    except OSError as problem:
        if problem.errno in PASSING:
            _put_off(partitions, partition, problem)
        else:
            partition.is_flushing = False
            partitions.fail_directory(partition.directory, problem)
        return
    partition.begin_job()
    partitions.world.workers.run(
        work.run,
        lambda _: _on_flushed(partitions, partition, work),
        lambda problem: _on_failed(partitions, partition, work, problem),
    )


def _on_flushed(partitions: "Partitions", partition: Partition, work: Flush) -> None:
    partition.is_flushing = False
    try:
        flushed_offset = partition.log.finish_flush(work)
    except Exception as problem:
        partition.end_job()
        partitions.on_broken(partition, problem)
        return
    partition.flushed_ms = partitions.clock.now_ms()
    partitions.has_news_for_checkpoints = True
    partition.end_job()
    if not partitions.holds(partition):
        return  # Deleted, or its directory failed, meanwhile.
    partition.on_flushed(flushed_offset)
    partitions.on_flushed(partition)
    partitions.purgatory.wake(partition)
    flush_what_waits(partitions, partition)


def _on_failed(partitions: "Partitions", partition: Partition, work: Flush, problem: Exception) -> None:
    """Nothing of what was to be flushed is known to be safe: a disk that fails here is not asked again.

    One that has no room for leader epochs or a snapshot is: a sync that fails never says that (`SyncFailed`).
    """
    partition.is_flushing = False
    work.end()
    partition.end_job()
    if not partitions.holds(partition):
        return
    if not isinstance(problem, OSError):
        # A fault of this node's own. Without another flush a follower would fetch nothing more.
        _try_later(partitions, partition)
        raise problem
    if problem.errno in PASSING:
        _put_off(partitions, partition, problem)
    else:
        partitions.fail_directory(partition.directory, problem)


def _put_off(partitions: "Partitions", partition: Partition, problem: OSError) -> None:
    """No other flush of the partition begins before it is tried again."""
    partitions.on_disk_error(partition.directory, problem)
    _try_later(partitions, partition)


def _try_later(partitions: "Partitions", partition: Partition) -> None:
    partition.is_flushing = True

    def try_again() -> None:
        partition.is_flushing = False
        flush_what_waits(partitions, partition)

    later(partitions.world.timers, _TRY_AGAIN_S, try_again)
