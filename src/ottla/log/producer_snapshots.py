"""The snapshot files of a partition: taking them, finding the newest that is sound, throwing them away."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from contextlib import suppress

from ottla.base.ports import Disk
from ottla.log import file_names
from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, sync_file
from ottla.log.producer_state import ProducerState, format_snapshot, parse_snapshot


class ProducerSnapshots:
    """Which snapshots there are. Those taken since the last `flush` may not survive a power cut; none is needed to."""

    __slots__ = ("_directory", "_disk", "_offsets", "_unsynced")

    def __init__(self, disk: Disk, directory: str, found: Sequence[str] | None = None) -> None:
        """`found` are the names in the directory, if somebody has looked already."""
        self._disk = disk
        self._directory = directory
        offsets = (
            file_names.offset_of(name, file_names.PRODUCER_SNAPSHOT)
            for name in (disk.list_dir(directory) if found is None else found)
        )
        self._offsets = sorted(offset for offset in offsets if offset is not None)
        self._unsynced: list[int] = []

    @property
    def offsets(self) -> list[int]:
        return list(self._offsets)

    @property
    def latest(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    def path(self, offset: int) -> str:
        return f"{self._directory}/{file_names.file_name(offset, file_names.PRODUCER_SNAPSHOT)}"

    def take(self, offset: int, state: ProducerState, log_start_offset: int) -> None:
        """Saves the state as of `offset`, unless a snapshot tells it already or the log begins there."""
        if offset <= max(log_start_offset, self.latest or 0):
            return
        file = self._disk.open(self.path(offset), create=True)
        try:
            file.truncate(0)
            file.write_at(0, format_snapshot(state.records()))
        finally:
            file.close()
        insort(self._offsets, offset)
        self._unsynced.append(offset)

    def flush(self) -> None:
        """Makes the snapshots' content durable; their names need the directory's sync."""
        while self._unsynced:
            with suppress(FileNotFoundError):  # It may go at any moment.
                sync_file(self._disk, self.path(self._unsynced[0]))
            del self._unsynced[0]

    def unsynced_paths(self) -> list[str]:
        """The snapshots that the next `flush` would sync."""
        return [path for path in map(self.path, self._unsynced) if self._disk.exists(path)]

    def load(self, state: ProducerState, log_start_offset: int, up_to: int, silent_since_ms: int) -> int:
        """Loads the newest sound snapshot within (log_start_offset, up_to]; returns the offset that `state` is of.

        Snapshots outside of that range speak of what is no longer in the log, and go; so do damaged ones.
        """
        found = self.read(state, log_start_offset, up_to, silent_since_ms)
        for offset in self.offsets:
            if not log_start_offset < offset <= found:
                self.remove(offset)
        return found

    def read(self, state: ProducerState, log_start_offset: int, up_to: int, silent_since_ms: int) -> int:
        """As `load`, and leaves the snapshots as they are."""
        for offset in reversed(self._offsets):
            if log_start_offset < offset <= up_to:
                path = self.path(offset)
                with suppress(CorruptFile):
                    state.load(parse_snapshot(read_file(self._disk, path), path), silent_since_ms)
                    return offset
        state.clear()
        return log_start_offset

    def drop_strays(self, segment_bases: list[int]) -> None:
        """Removes snapshots that belong to no segment, but for the newest: that one was taken at a clean stop."""
        wanted = {*segment_bases, *self._offsets[-1:]}
        for offset in self.offsets:
            if offset not in wanted:
                self.remove(offset)

    def remove(self, offset: int) -> None:
        """Removes the snapshot at `offset`, if there is one."""
        if self._forget(offset):
            self._disk.remove(self.path(offset))

    def retire(self, offset: int) -> str | None:
        """Marks the snapshot at `offset` as deleted, if there is one; returns the path of the file to remove later."""
        if not self._forget(offset):
            return None
        retired = self.path(offset) + file_names.DELETED
        self._disk.rename(self.path(offset), retired)
        return retired

    def _forget(self, offset: int) -> bool:
        slot = bisect_left(self._offsets, offset)
        if slot == len(self._offsets) or self._offsets[slot] != offset:
            return False
        del self._offsets[slot]
        return self._disk.exists(self.path(offset))

    def moved(self, directory: str) -> None:
        self._directory = directory
