"""The aborted transactions of a segment, for readers at `isolation.level=read_committed` (KIP-98).

34 bytes an entry, in the order in which the abort markers were written. The file exists only once there is an entry.
Each entry carries the last stable offset at the time: a reader whose range ends below it needs to look no further.

Like the sparse indexes this one can be rebuilt from the log. So an entry that a full disk refuses stays in memory for
now, and `write` is what insists.
"""

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import NamedTuple

from ottla.base.ports import Disk, File
from ottla.log.errors import CorruptFile
from ottla.log.files import size_if_there, sync_file

_ENTRY = Struct(">hqqqq")
_VERSION = 0
_READ_ENTRIES = 256


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def parse_entries(data: bytes, path: str) -> Iterator[AbortedTransaction]:
    if len(data) % _ENTRY.size:
        raise CorruptFile(f"{path}: {len(data)} bytes are not a whole number of {_ENTRY.size}-byte entries")
    for version, *fields in _ENTRY.iter_unpack(data):
        if version > _VERSION:
            raise CorruptFile(f"{path}: an entry has version {version}, newer than {_VERSION}")
        yield AbortedTransaction._make(fields)


class TransactionIndex:
    """The `.txnindex` of one segment. Its entries are read from the file when they are asked for."""

    __slots__ = ("_disk", "_file", "_needs_trimming", "_path", "_size", "_unwritten")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._file: File | None = None
        self._unwritten = bytearray()
        self._needs_trimming = False
        self._size = size_if_there(disk, path)
        if self._size % _ENTRY.size:
            raise CorruptFile(f"{path}: {self._size} bytes are not a whole number of {_ENTRY.size}-byte entries")

    def append(self, aborted: AbortedTransaction) -> None:
        self._unwritten += _ENTRY.pack(_VERSION, *aborted)
        with suppress(OSError):
            self._write()

    def __len__(self) -> int:
        return (self._size + len(self._unwritten)) // _ENTRY.size

    def entries(self) -> list[AbortedTransaction]:
        return self._read(0, len(self))

    def _entries_from(self, slot: int) -> Iterator[AbortedTransaction]:
        while some := self._read(slot, _READ_ENTRIES):
            yield from some
            slot += len(some)

    def _read(self, slot: int, count: int) -> list[AbortedTransaction]:
        """Up to so many entries from a slot on."""
        start, end = slot * _ENTRY.size, (slot + count) * _ENTRY.size
        written = self._opened().read_at(start, min(end, self._size) - start) if start < self._size else b""
        unwritten = self._unwritten[max(start - self._size, 0) : max(end - self._size, 0)]
        return list(parse_entries(written + unwritten, self._path))

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """The aborted transactions that touch [fetch_offset, upper_bound), and whether later segments can have none.

        Entries come in the order of their markers, so that those of transactions that ended before are not even read.
        """
        found = []
        ended_before = bisect_left(range(len(self)), fetch_offset, key=lambda slot: self._read(slot, 1)[0].last_offset)
        for aborted in self._entries_from(ended_before):
            if aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drops the transactions whose marker is at `offset` or after."""
        kept = sum(_ENTRY.size for aborted in self.entries() if aborted.last_offset < offset)
        del self._unwritten[max(kept - self._size, 0) :]
        self._cut(min(kept, self._size))

    def clear(self) -> None:
        self._unwritten.clear()
        self._cut(0)

    def check(self, base_offset: int) -> None:
        """Raises `CorruptFile` if an entry cannot be one of the segment that begins at `base_offset`."""
        for aborted in self.entries():
            if aborted.last_offset < base_offset:
                raise CorruptFile(f"{self._path}: {aborted} ends before the segment begins")

    def flush(self) -> None:
        """Writes what is only in memory and syncs the file, if there is one."""
        if self.write():
            self.sync()

    @property
    def is_written(self) -> bool:
        """Whether the file, if there is one, holds every entry and nothing else."""
        return not self._unwritten and not self._needs_trimming

    def write(self) -> bool:
        """Makes the file hold every entry and nothing else; returns whether there is one. It is not synced."""
        self._write()
        if not self._is_there():
            return False
        file = self._opened()
        if file.size() > self._size:
            file.truncate(self._size)
        self._needs_trimming = False
        return True

    def sync(self) -> None:
        """Syncs the file, if there is one, which has been written. On any thread."""
        if self._file is not None:
            self._file.sync()
        elif self._is_there():
            sync_file(self._disk, self._path)

    def _is_there(self) -> bool:
        return self._size > 0 or self._disk.exists(self._path)  # One that is empty may have been cut.

    def forget(self) -> None:
        """Closes without writing: the segment is on its way out."""
        self._unwritten.clear()
        self.close()

    def close(self) -> None:
        self._write()
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved(self, path: str) -> None:
        self._path = path

    def _cut(self, size: int) -> None:
        if size < self._size:
            self._opened().truncate(size)
            self._size = size

    def _write(self) -> None:
        if self._unwritten:
            file = self._opened()
            try:
                file.write_at(self._size, self._unwritten)
            except OSError:
                self._needs_trimming = True  # What it has left would be read as entries.
                with suppress(OSError):
                    file.truncate(self._size)
                    self._needs_trimming = False
                raise
            self._size += len(self._unwritten)
            self._unwritten.clear()

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self._path, create=True)
        return self._file
