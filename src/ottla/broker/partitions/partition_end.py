"""One owner of a partition's end: all that follows when batches are appended.

Produce, the coordinators and the writer of markers append in two steps. `append` writes: a disk that fails is dealt
with, the checkpoints have news, and the high watermark moves as far as it may. Then the appender takes its place among
the requests that wait, if it has to, and calls `announce`: what waits at the partition's end looks again, and what has
to be on the disk, as a segment that is full by now, is sent there.
"""

import logging
from typing import TYPE_CHECKING

from ottla.base.lent import Writable
from ottla.broker.partitions import quick_append
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.log.outcomes import Appended
from ottla.log.producer_state import AppendOrigin
from ottla.records.header import BatchHeader, ChecksumMismatch
from ottla.wire.errors import NO_ERROR, ErrorCode

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)

_CHANGED = Appended(ErrorCode.CORRUPT_MESSAGE)
_DISK_FAILED = Appended(ErrorCode.KAFKA_STORAGE_ERROR)


def append(
    partitions: "Partitions",
    partition: Partition,
    data: Writable,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    header: BatchHeader | None = None,
) -> Appended:
    """Appends a validated batch as the leader. A disk that fails is the error KAFKA_STORAGE_ERROR.

    So is any other exception: nobody knows how far the append came, so the partition goes offline, by name.
    """
    try:
        appended = partition.append_as_leader(data, origin, header)
    except Exception as problem:
        return on_failed(partitions, partition, problem)
    if not (appended.error or appended.repeated):
        partitions.has_news_for_checkpoints = True
    return appended


def append_made_here(
    partitions: "Partitions", partition: Partition, data: bytearray, record_count: int, max_timestamp: int
) -> ErrorCode:
    """The same for a batch that this node has made for the end of the log (`PartitionLog.append_made_here`)."""
    try:
        if quick_append.append_made_here(partition, data, record_count, max_timestamp) == quick_append.NOT_NOW:
            error = partition.append_made_here(data, record_count, max_timestamp).error
            if error:
                return error
    except Exception as problem:
        return on_failed(partitions, partition, problem).error
    partitions.has_news_for_checkpoints = True
    return NO_ERROR


def on_failed(partitions: "Partitions", partition: Partition, problem: Exception) -> Appended:
    """What an appender gets. A batch that has changed in memory since it was checked is the only one to suffer:
    nothing of it was written, and its client sends it again.
    """
    if isinstance(problem, ChecksumMismatch):
        _log.error("%s: a batch changed between its check and its write, and was refused: %s", partition.name, problem)
        return _CHANGED
    if isinstance(problem, STORAGE_PROBLEMS):
        partitions.on_storage_problem(partition, problem)
    else:
        partitions.on_broken(partition, problem)
    return _DISK_FAILED


def announce(partitions: "Partitions", partition: Partition) -> None:
    """Something has been appended. What must be on the disk first moves no high watermark before that."""
    if partition.awaits_flush:
        partitions.flushing.flush(partition)
    elif partition.waiting:
        partitions.purgatory.wake(partition)
    log = partition.log
    if log.recovery_point < log.segments[-1].base_offset:
        partitions.flushing.flush_rolled(partition)
