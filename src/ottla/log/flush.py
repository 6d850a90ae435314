"""Making a log durable, in a step that any thread can take.

The log's owner starts it and learns when it is over (`PartitionLog.start_flush`, `finish_flush`); `run` is the part
that waits for the disk. It may run beside appends, reads, rolls and retention: all that it does is to sync.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ports import Disk
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.segment import Segment

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog


class Flush(NamedTuple):
    """All of `segments` up to `end_offset`; `active` is the newest of them, if that was the active one at the start."""

    segments: list[Segment]
    active: Segment | None
    end_offset: int
    snapshots: ProducerSnapshots
    epochs: LeaderEpochs
    sync_names: Callable[[], None]
    names_changed: int
    """How many changes of names this makes durable; 0 when there are none to sync."""
    truncations: int

    def run(self) -> None:
        """Syncs. The active segment's indexes are left out: after a crash it is always scanned, so they are rebuilt."""
        for segment in self.segments:
            try:
                segment.sync(indexes=segment is not self.active)
            except OSError:
                if not segment.has_left:  # Retention, or the cleaner, may take it out of the log meanwhile.
                    raise
        self.snapshots.flush()
        self.epochs.flush()
        if self.names_changed:
            self.sync_names()

    def end(self) -> None:
        """It has run, or failed: the log's owner lets go of the segments."""
        for segment in self.segments:
            segment.in_use -= 1


# The clean stop of many logs at once: thousands of partitions cost a few syncs, and not a few each.
#
# Theory of operation. A log that is as a clean stop left it needs nothing; neither does one that never held a record,
# which a power cut may take: the broker makes it again from the metadata. Of the others everything is written that is
# only in memory, the leader epochs to a temporary file, and all those files are synced together. Then the temporary
# files take their names, and the directories are synced together. The marker of a clean stop (`.kafka_cleanshutdown`)
# comes after that: up to there a crash is a crash like any other, and recovery goes by the recovery points of before.


def close_logs(disk: Disk, logs: Collection["PartitionLog"]) -> None:
    """Makes all of these logs durable, and lets go of their files. If the disk fails, the caller releases them."""
    changed = [log for log in logs if log.has_changed]
    files: list[str] = []
    for log in changed:
        files += log.finish_writing()
    if changed:
        disk.sync_all(files)
        for log in changed:
            log.epochs.put_in_place()
        directories = [log.directory for log in changed]
        disk.sync_all(list(dict.fromkeys((*directories, *(one.rpartition("/")[0] for one in directories)))))
    for log in changed:
        log.recovery_point = log.log_end_offset
        log.remove_deleted(at_once=True)
    for log in logs:
        log.release()
