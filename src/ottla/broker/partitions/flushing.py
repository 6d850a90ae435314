"""Forcing a log to disk: what `flush.messages` makes producers wait for, and `flush.ms` does in the background.

One flush of a partition is under way at a time. What is appended meanwhile waits for the next one, which begins at
once: many producers share each turn of the disk.
"""

from typing import TYPE_CHECKING

from ottla.broker.partitions.partition import Partition
from ottla.log.flush import Flush

if TYPE_CHECKING:
    from ottla.broker.context import Broker


def flush(broker: "Broker", partition: Partition) -> None:
    """Begins to flush, unless a flush is under way, or waits until the partition has changed to another log."""
    if partition.is_flushing or partition.is_changing_log or broker.partitions.get(partition.name) is not partition:
        return
    work = partition.log.start_flush()
    partition.is_flushing = True
    partition.begin_job()
    broker.workers.run(
        work.run,
        lambda _: _on_flushed(broker, partition, work),
        lambda problem: _on_failed(broker, partition, problem),
    )


def _on_flushed(broker: "Broker", partition: Partition, work: Flush) -> None:
    partition.is_flushing = False
    partition.log.finish_flush(work)
    partition.flushed_ms = broker.clock.now_ms()
    broker.partitions.has_news_for_checkpoints = True
    partition.end_job()
    if broker.partitions.get(partition.name) is not partition:
        return  # Deleted, or its directory failed, meanwhile.
    partition.on_flushed(work.end_offset)
    broker.partitions.purgatory.wake(partition)
    if partition.held:
        flush(broker, partition)


def _on_failed(broker: "Broker", partition: Partition, problem: Exception) -> None:
    """Nothing of what was to be flushed is known to be safe: a disk that fails here is not asked again."""
    partition.is_flushing = False
    partition.end_job()
    if not isinstance(problem, OSError):
        raise problem
    if broker.partitions.get(partition.name) is partition:
        broker.partitions.fail_directory(partition.directory, problem)
