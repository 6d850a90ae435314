"""The aborted transactions of a segment, for readers at `isolation.level=read_committed` (KIP-98).

34 bytes an entry, in the order in which the abort markers were written. The file exists only once there is an entry.
Each entry carries the last stable offset at the time: a reader whose range ends below it needs to look no further.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ottla.base.ports import Disk, File
from ottla.log.errors import CorruptFile

_ENTRY = Struct(">hqqqq")
_VERSION = 0


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
    """The `.txnindex` of one segment. Entries are few, so they are read from the file when asked for."""

    __slots__ = ("_disk", "_file", "_path", "_size")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._file: File | None = None
        self._size = disk.size(path) if disk.exists(path) else 0
        if self._size % _ENTRY.size:
            raise CorruptFile(f"{path}: {self._size} bytes are not a whole number of {_ENTRY.size}-byte entries")

    def __bool__(self) -> bool:
        return self._size > 0

    def append(self, aborted: AbortedTransaction) -> None:
        self._opened().write_at(self._size, _ENTRY.pack(_VERSION, *aborted))
        self._size += _ENTRY.size

    def entries(self) -> list[AbortedTransaction]:
        if not self._size:
            return []
        return list(parse_entries(self._opened().read_at(0, self._size), self._path))

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """The aborted transactions that touch [fetch_offset, upper_bound), and whether later segments can have none."""
        found = []
        for aborted in self.entries():
            if aborted.last_offset >= fetch_offset and aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drops the transactions whose marker is at `offset` or after."""
        kept = sum(1 for aborted in self.entries() if aborted.last_offset < offset)
        if kept * _ENTRY.size < self._size:
            self._size = kept * _ENTRY.size
            self._opened().truncate(self._size)

    def clear(self) -> None:
        if self._size:
            self._opened().truncate(0)
            self._size = 0

    def flush(self) -> None:
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved(self, path: str) -> None:
        self._path = path

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self._path, create=True)
        return self._file
