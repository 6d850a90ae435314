"""Making a log durable, in a step that any thread can take.

The log's owner starts it and is told when it is over (`PartitionLog.start_flush`, `finish_flush`); `run` is the part
that waits for the disk. It may run beside appends, reads, rolls and retention: all that it does is to sync.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.segment import Segment


@dataclass(frozen=True, slots=True)
class Flush:
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
