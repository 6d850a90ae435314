"""The copy that a move makes of a replica's log: part by part, on disk threads, and the last part on the loop.

What is copied in between belongs to one thread at a time: to a disk thread while `copy` runs, and to the loop's
otherwise. Problems of the log that is read are distinguished from those of the copy by their class, `CannotRead`.

The log may be cut at any time, also while a part of it is copied: a follower must agree with its leader. Then what was
copied of the part is anything. All of the copy is right again when it has been cut where the log was: what is written
after a cut has offsets from there on.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.errors import OttlaError, ProtocolError, StorageError
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import CorruptFile
from ottla.log.future_logs import bytes_left, contradiction, copy_batches, follow_offsets, is_part_of, reach_end
from ottla.log.outcomes import FileSlice
from ottla.log.partition_log import PartitionLog

# What the loop copies itself, right before the swap, so that nothing can be appended in between.
LAST_PART_BYTES = 128 << 10
# Small batches keep the interpreter busy, and the loop waits for it after each call to the system. So parts get smaller
# until one takes so long, and as much time is the loop's alone before the next. Large batches cost next to nothing.
_BUSY_S = 0.01
_LEAST_PART_BYTES = 128 << 10
# So that the sync at the end is a short one.
_SYNC_EVERY_BYTES = 64 << 20

PROBLEMS = (OSError, StorageError, ProtocolError)


class CannotRead(OttlaError):
    """The current log's disk is to blame, or what is on it."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Copied(NamedTuple):
    size: int
    busy_s: float
    """For how long it kept the interpreter busy."""


class ReplicaCopy:
    """`future` is the copy of `partition`'s log; `thread_s` tells how long the calling thread has been busy.

    `followed_cuts`: so many cuts of the log were before the copy was begun.
    """

    def __init__(
        self, partition: Partition, future: PartitionLog, thread_s: Callable[[], float], followed_cuts: int
    ) -> None:
        self.future = future
        self._thread_s = thread_s
        self._partition = partition
        self._part_bytes = _LEAST_PART_BYTES
        self._unsynced_bytes = 0
        self._followed_cuts = followed_cuts

    @property
    def must_be_cut(self) -> bool:
        """The log has been cut, and the copy has not."""
        return self._partition.log.cut_count != self._followed_cuts

    def cutting(self) -> Callable[[], None]:
        """What a disk thread has to do for the copy to be cut as the log is now."""
        log, future = self._partition.log, self.future
        offset, self._followed_cuts = log.take_lowest_cut(), log.cut_count

        def cut() -> None:
            future.truncate_to(offset)
            future.remove_deleted(at_once=True)  # Nobody reads what was cut away.

        return cut

    @property
    def is_as_durable(self) -> bool:
        return self.future.recovery_point >= self._partition.log.recovery_point

    def bytes_left(self) -> int | None:
        """How much there is to copy. None: what was copied is no part of the log any more."""
        current = self._partition.log
        try:
            return bytes_left(self.future, current) if is_part_of(self.future, current) else None
        except PROBLEMS as problem:
            raise CannotRead(problem) from problem

    def next_part(self, most_bytes: int) -> FileSlice:
        """What comes next in the log."""
        current, future = self._partition.log, self.future
        future.config = current.config
        offset = max(future.log_end_offset, current.log_start_offset)
        wanted_bytes = min(self._part_bytes, most_bytes, current.config.segment_bytes)
        try:
            return current.read(offset, wanted_bytes, current.log_end_offset, min_one_batch=True)
        except PROBLEMS as problem:
            raise CannotRead(problem) from problem

    def copy(self, part: FileSlice) -> Copied:
        """For a disk thread."""
        began_s = self._thread_s()
        size = self._append(part)
        busy_s = self._thread_s() - began_s
        if self._unsynced_bytes >= _SYNC_EVERY_BYTES:
            self.sync()
        return Copied(size, busy_s)

    def _append(self, part: FileSlice) -> int:
        try:
            data = part.read()
        except OSError as problem:
            raise CannotRead(problem) from problem
        try:
            size = copy_batches(self.future, data)
        except ProtocolError as problem:
            raise CannotRead(problem) from problem
        self._unsynced_bytes += size
        return size

    def sync(self) -> None:
        """For a disk thread."""
        self._unsynced_bytes = 0
        self.future.flush()

    def on_copied(self, copied: Copied, most_bytes: int) -> float:
        """Returns how many seconds belong to the loop now."""
        follow_offsets(self.future, self._partition.log)
        wanted_bytes = self._part_bytes // 2 if copied.busy_s > _BUSY_S else self._part_bytes * 2
        self._part_bytes = max(min(wanted_bytes, most_bytes), _LEAST_PART_BYTES)
        return copied.busy_s

    def copy_last_part(self) -> bool:
        """On the loop's thread. Returns whether the copy is whole now."""
        if self.bytes_left():
            self._append(self.next_part(LAST_PART_BYTES))
        if self.bytes_left():
            return False
        reach_end(self.future, self._partition.log)
        if problem := contradiction(self.future, self._partition.log):
            raise CorruptFile(problem)
        return True
