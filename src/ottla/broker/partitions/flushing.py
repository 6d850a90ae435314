"""Forcing a log to disk: what `flush.messages` makes producers wait for, `flush.ms` does in the background, and a roll
does for the segments that are full, as in Apache Kafka.

One flush of a partition is under way at a time. What is appended meanwhile waits for the next one, which begins at
once: many producers share each turn of the disk. The recovery point follows what is flushed, and the checkpoint after
it: a crash scans little more than the active segment, and takes all before it as it is.

A disk that fails to sync has lost data, nobody knows which: its directory goes offline. That there is no descriptor to
sync a file with, or no room for the end of an index, is no such failure: nothing was asked of the disk. It is tried
again a little later.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.partitions.held_partitions import DISK_IS_FULL, OUT_OF_DESCRIPTORS
from ottla.broker.partitions.partition import Partition
from ottla.log.flush import Flush

if TYPE_CHECKING:
    from ottla.broker.context import Broker

_TRY_AGAIN_S = 1.0


def flush(broker: "Broker", partition: Partition) -> None:
    """Begins to flush all of the log, unless a flush is under way.

    A partition that is changing to another log is flushed when it has.
    """
    if not _must_wait(broker, partition):
        _start(broker, partition, partition.log.start_flush)


def flush_rolled(broker: "Broker", partition: Partition) -> None:
    """The same for the segments that are not active, if one of them is not flushed."""
    if partition.log.has_unflushed_segments and not _must_wait(broker, partition):
        _start(broker, partition, partition.log.start_flush_of_rolled)


def flush_what_waits(broker: "Broker", partition: Partition) -> None:
    """After something that flushes had to wait for."""
    if partition.held:
        flush(broker, partition)
    else:
        flush_rolled(broker, partition)


def _must_wait(broker: "Broker", partition: Partition) -> bool:
    return partition.is_flushing or partition.is_changing_log or not broker.partitions.holds(partition)


def _start(broker: "Broker", partition: Partition, start: Callable[[], Flush]) -> None:
    partition.is_flushing = True
    try:
        work = start()
    except OSError as problem:
        if problem.errno in DISK_IS_FULL | OUT_OF_DESCRIPTORS:
            _put_off(broker, partition, problem)
        else:
            partition.is_flushing = False
            broker.partitions.fail_directory(partition.directory, problem)
        return
    partition.begin_job()
    broker.workers.run(
        work.run,
        lambda _: _on_flushed(broker, partition, work),
        lambda problem: _on_failed(broker, partition, work, problem),
    )


def _on_flushed(broker: "Broker", partition: Partition, work: Flush) -> None:
    partition.is_flushing = False
    partition.log.finish_flush(work)
    partition.flushed_ms = broker.clock.now_ms()
    broker.partitions.has_news_for_checkpoints = True
    partition.end_job()
    if not broker.partitions.holds(partition):
        return  # Deleted, or its directory failed, meanwhile.
    partition.on_flushed(work.end_offset)
    broker.partitions.purgatory.wake(partition)
    flush_what_waits(broker, partition)


def _on_failed(broker: "Broker", partition: Partition, work: Flush, problem: Exception) -> None:
    """Nothing of what was to be flushed is known to be safe: a disk that fails here is not asked again."""
    partition.is_flushing = False
    work.end()
    partition.end_job()
    if not isinstance(problem, OSError):
        raise problem
    if not broker.partitions.holds(partition):
        return
    if problem.errno in OUT_OF_DESCRIPTORS:
        _put_off(broker, partition, problem)
    else:
        broker.partitions.fail_directory(partition.directory, problem)


def _put_off(broker: "Broker", partition: Partition, problem: OSError) -> None:
    """No other flush of the partition begins before it is tried again."""
    broker.partitions.on_disk_error(partition.directory, problem)
    partition.is_flushing = True

    def try_again() -> None:
        partition.is_flushing = False
        flush_what_waits(broker, partition)

    broker.timers.after(_TRY_AGAIN_S, try_again)
