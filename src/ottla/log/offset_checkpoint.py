"""One checkpoint of a log directory: an offset for each of its partitions, in memory as in the file.

Two threads change it: a disk thread, which writes down how far all logs are, and the owner of a log that is about to be
cut, who lowers what is said of it. They take turns, since both write to the same temporary file first, and since each
goes by what the other has written.

A lowered offset wins. Who writes down how far logs are reads it from them while nobody else writes (`change`), and the
owner of a log lowers it there before it is lowered here (`PartitionLog.truncate_to`). So whichever of the two comes
last, the file says nothing of what has been cut away.
"""

from collections.abc import Callable
from threading import Lock

from ottla.base.ids import TopicPartition
from ottla.base.ports import Disk
from ottla.log.checkpoint import read_offsets, write_offsets

Offsets = dict[TopicPartition, int]


class OffsetCheckpoint:
    """A failing write raises `OSError`, and leaves memory as it was. Any thread may call anything."""

    __slots__ = ("_disk", "_offsets", "_path", "_writing")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._offsets: Offsets = {}
        self._writing = Lock()

    def read(self) -> None:
        """Takes up what the file says; `CorruptFile` if that cannot be read."""
        self._offsets = read_offsets(self._disk, self._path)

    def get(self, partition: TopicPartition) -> int | None:
        return self._offsets.get(partition)

    def change(self, changed: Callable[[Offsets], Offsets]) -> None:
        """Makes durable what `changed` makes of the offsets. It is called while nobody else writes."""
        with self._writing:
            self._write(changed(self._offsets))

    def lower(self, limits: Offsets) -> None:
        """Nothing said of these partitions is beyond these offsets when this returns, durably."""
        with self._writing:
            saved = self._offsets
            lowered = {name: offset for name, offset in limits.items() if offset < saved.get(name, 0)}
            if lowered:
                self._write({**saved, **lowered})

    def forget(self, *partitions: TopicPartition) -> None:
        """Nothing is said of these partitions when this returns, durably."""
        with self._writing:
            if not self._offsets.keys().isdisjoint(partitions):
                self._write({name: offset for name, offset in self._offsets.items() if name not in partitions})

    def _write(self, offsets: Offsets) -> None:
        write_offsets(self._disk, self._path, offsets)
        self._offsets = offsets
