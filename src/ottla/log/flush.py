"""Making a log durable, in a step that any thread can take.

The log's owner starts it and is told when it is over (`PartitionLog.start_flush`, `finish_flush`); `run` is the part
that waits for the disk. It may run beside appends, reads and rolls: it touches only what those leave alone.
"""

from collections.abc import Callable

from ottla.base.dataclass import dataclass
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.segment import Segment


@dataclass(frozen=True, slots=True)
class Flush:
    """All of `segments` up to `end_offset`, the newest of which was active when this was started."""

    segments: list[Segment]
    end_offset: int
    snapshots: ProducerSnapshots
    epochs: LeaderEpochs
    sync_names: Callable[[], None]
    names_changed: int
    """How many changes of names this makes durable; 0 when there are none to sync."""
    truncations: int

    def run(self) -> None:
        """Syncs. The active segment's indexes are left out: after a crash it is always scanned, so they are rebuilt."""
        newest = self.segments[-1]
        for segment in self.segments:
            segment.flush(indexes=segment is not newest)
        self.snapshots.flush()
        self.epochs.flush()
        if self.names_changed:
            self.sync_names()
