"""Which leader wrote which part of the log: epochs and the offsets at which they began (KIP-101, KIP-279).

Kept in memory, sorted in both epoch and offset; the file is rewritten when the log is flushed. What a crash takes away
is found again in the headers of the batches, and entries beyond the end of the log are dropped when it is opened.

Two threads may want to write the file: a disk thread that flushes the log, and the owner of a log who cuts it
durably. They take turns, as both write to the same temporary file first.
"""

from bisect import bisect_right
from threading import Lock

from ottla.base.ports import Disk
from ottla.log import file_names
from ottla.log.checkpoint import format_leader_epochs, parse_leader_epochs
from ottla.log.files import put_in_place, read_file, replace_file, write_beside

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """The leader epochs of one partition."""

    __slots__ = ("_disk", "_entries", "_path", "_writing", "_written")

    def __init__(self, disk: Disk, directory: str, *, is_lost: bool = False) -> None:
        """Of a file that `is_lost` nothing is read; the next flush replaces it."""
        self._disk = disk
        self._path = f"{directory}/{file_names.LEADER_EPOCHS}"
        self._entries: list[tuple[int, int]] = []
        # What the file tells; None when there is no file.
        self._written: list[tuple[int, int]] | None = None
        self._writing = Lock()
        if not is_lost and disk.exists(self._path):
            for epoch, start in parse_leader_epochs(read_file(disk, self._path), self._path):
                self.assign(epoch, start)
            self._written = self.entries

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset) pairs, rising in both."""
        return list(self._entries)

    @property
    def latest(self) -> int:
        return self._entries[-1][0] if self._entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Notes that `epoch` begins at `start_offset`; entries that contradict it were never committed, and go."""
        assert epoch >= 0 and start_offset >= 0, f"epoch {epoch} at {start_offset}"
        entries = self._entries
        if entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
            return
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and the offset at which the next one began.

        What OffsetForLeaderEpoch answers; (-1, -1) when this log knows nothing of that time.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        above = bisect_right(self._entries, epoch, key=_epoch)
        if above == len(self._entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        return (self._entries[above - 1][0] if above else epoch), self._entries[above][1]

    def epoch_at(self, offset: int) -> int:
        slot = bisect_right(self._entries, offset, key=_start) - 1
        return self._entries[slot][0] if slot >= 0 else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drops epochs that begin at or after `end_offset`."""
        kept = bisect_right(self._entries, end_offset - 1, key=_start)
        if kept < len(self._entries):
            del self._entries[kept:]

    def truncate_from_start(self, start_offset: int) -> None:
        """Drops epochs that ended before `start_offset`; the one that spans it now begins there."""
        slot = bisect_right(self._entries, start_offset, key=_start) - 1
        if slot >= 0 and self._entries[0] != (self._entries[slot][0], start_offset):
            self._entries[: slot + 1] = [(self._entries[slot][0], start_offset)]

    def clear(self) -> None:
        self._entries.clear()

    def flush(self) -> None:
        """Makes the file tell what memory knows, durably. May run beside the other methods, and beside itself."""
        with self._writing:
            entries = self.entries
            if entries != self._written:
                replace_file(self._disk, self._path, format_leader_epochs(entries))
                self._written = entries

    def are_written_before(self, end_offset: int) -> bool:
        """Whether the file tells all that an opening keeps: it drops an epoch that begins where the log ends."""
        before = [entry for entry in self._written or () if entry[1] < end_offset]
        return before == [entry for entry in self._entries if entry[1] < end_offset]

    def write_beside(self) -> str:
        """The first half of a `flush` of many logs at once; returns the path that is to be synced before the second.

        Nothing else works on the log by then: it is being closed.
        """
        return write_beside(self._disk, self._path, format_leader_epochs(self._entries))

    def put_in_place(self) -> None:
        """The second half: durable when the directory is synced."""
        put_in_place(self._disk, self._path)
        self._written = self.entries

    def moved(self, directory: str) -> None:
        self._path = f"{directory}/{file_names.LEADER_EPOCHS}"


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start(entry: tuple[int, int]) -> int:
    return entry[1]
