"""Sparse indexes of a segment: from offset to file position, and from timestamp to offset.

Theory of operation: every `index.interval.bytes` of log get one entry in each. Entries are fixed in width and
sorted, so a lookup is a bisection, and everything they say can be rebuilt by scanning the segment. That is why an
index is not durable entry by entry: the newest entries live in memory and are written a few kilobytes at a time. After
a crash the segments past the recovery point get their indexes rebuilt; before the recovery point moves past the end
of a segment, its indexes are written and synced (`write`, `sync`).

Threads: the log's owner alone changes an index. Others may look things up meanwhile, and sync it. So whatever a lookup
goes by is replaced in one step: the pair of what is in the file and what is in memory, and the last entry with the
number of entries that it is the last of.

Both kinds keep Kafka's rules to the byte: relative offsets in 32 bits, an offset entry carries the *last* offset of a
batch and the position where that batch begins, time entries rise strictly in timestamp.
"""

from contextlib import suppress
from struct import Struct

from ottla.base.ports import Disk, File
from ottla.log.errors import CorruptFile
from ottla.log.files import size_if_there, sync_file

MAX_RELATIVE_OFFSET = 0x7FFFFFFF
_TAIL_BYTES = 4096
_BLOCK = 64  # entries that are read at once when one is looked for


class _SparseIndex:
    """Fixed-width entries, sorted. `_parts`: so many bytes are in the file, and the rest is here.

    Opening costs no more than a look at the file's size: most segments are never read again.
    """

    __slots__ = ("_base_offset", "_disk", "_file", "_is_made", "_known_last", "_needs_trimming", "_parts", "_path")
    _entry: Struct

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self._disk = disk
        self._path = path
        self._base_offset = base_offset
        self._file: File | None = None
        stored = size_if_there(disk, path)
        self._parts = stored, bytearray()
        self._needs_trimming = False
        self._is_made = stored > 0
        if stored % self._entry.size:
            raise CorruptFile(f"{path}: {stored} bytes are not a whole number of {self._entry.size}-byte entries")
        self._known_last: tuple[int, tuple[int, ...]] | None = None

    def __len__(self) -> int:
        return self.size // self._entry.size

    @property
    def size(self) -> int:
        stored, tail = self._parts
        return stored + len(tail)

    def entries_left(self, max_bytes: int) -> int:
        """How many more entries go into `max_bytes`; not more than none when it is full."""
        return max_bytes // self._entry.size - len(self)

    def flush(self) -> None:
        """Writes what is only in memory and syncs the file, creating it if need be."""
        self.write()
        self.sync()

    @property
    def is_written(self) -> bool:
        """Whether the file is there, and holds every entry and nothing else."""
        return self._is_made and not self._parts[1] and not self._needs_trimming

    def write(self) -> None:
        """Makes the file hold every entry and nothing else, creating it if need be. It is not synced."""
        file = self._opened()
        if self._parts[1]:
            self._spill()
        if file.size() > self._parts[0]:
            file.truncate(self._parts[0])  # What a write that failed has left.
        self._needs_trimming = False

    def sync(self) -> None:
        """Syncs the file, which has been written. On any thread."""
        if self._file is not None:
            self._file.sync()
        else:
            sync_file(self._disk, self._path)

    def create(self) -> None:
        """Makes the file exist, empty if it is new."""
        self._opened()

    def close(self) -> None:
        if self._parts[1]:
            self._spill()
        if self._file is not None:
            self._file.close()
            self._file = None

    def forget(self) -> None:
        """Closes without writing: the segment is on its way out."""
        self._parts = self._parts[0], bytearray()
        self.close()

    def moved(self, path: str) -> None:
        self._path = path

    def clear(self) -> None:
        self._keep(0)

    @property
    def _last(self) -> tuple[int, ...] | None:
        known = self._known_last
        stored, tail = self._parts
        size = stored + len(tail)
        if known is not None and known[0] == size:
            return known[1]
        if not size:
            return None
        last = self._raw(size // self._entry.size - 1)
        self._known_last = size, last
        return last

    def _append_raw(self, *fields: int) -> None:
        stored, tail = self._parts
        tail += self._entry.pack(*fields)
        self._known_last = stored + len(tail), fields
        if len(tail) >= _TAIL_BYTES:
            with suppress(OSError):  # A full disk does not lose entries: they wait here for `flush`, which insists.
                self._spill()

    def _raw(self, slot: int) -> tuple[int, ...]:
        position = slot * self._entry.size
        stored, tail = self._parts
        if position >= stored:
            return self._entry.unpack_from(tail, position - stored)
        data = self._opened().read_at(position, self._entry.size)
        if len(data) < self._entry.size:
            raise CorruptFile(f"{self._path}: entry {slot} is beyond the end of the file")
        return self._entry.unpack(data)

    def _floor_slot(self, target: int, field: int) -> int:
        """The last slot whose `field` is at most `target`; -1 when there is none."""
        return self._floor(target, field)[0]

    def _floor(self, target: int, field: int) -> tuple[int, tuple[int, ...]]:
        """The last slot whose `field` is at most `target`, and its entry; -1 and nothing when there is none."""
        count, last = len(self), self._last  # In this order: an entry may be added in between.
        if last is None or last[field] <= target:
            return count - 1, last or ()
        low, high = -1, count  # The slot is `low` or after it, and before `high`.
        is_guess = True
        while high - low > _BLOCK:
            middle = self._guess(target, field, low, high) if is_guess else (low + high) // 2
            is_guess = not is_guess
            first = max(min(middle - _BLOCK // 2, high - _BLOCK), low + 1)
            block = self._block(first, _BLOCK)
            if target < self._entry.unpack_from(block)[field]:
                high = first
            elif target >= self._entry.unpack_from(block, len(block) - self._entry.size)[field]:
                low = first + _BLOCK - 1
            else:
                return self._floor_in(first, block, target, field)
        if low >= 0:
            return self._floor_in(low, self._block(low, high - low), target, field)
        return self._floor_in(0, self._block(0, high), target, field)

    def _guess(self, target: int, field: int, low: int, high: int) -> int:
        """Where the slot would be if entries rose evenly, which they often nearly do."""
        start = 0 if low < 0 else self._raw(low)[field]
        end = self._raw(high if high < len(self) else high - 1)[field]
        if not start <= target < end:
            return (low + high) // 2
        return low + (target - start) * (high - low) // (end - start)

    def _block(self, first: int, count: int) -> bytes:
        """Entries that follow each other, in one read."""
        width = self._entry.size
        start, end = first * width, (first + count) * width
        stored, tail = self._parts
        block = self._opened().read_at(start, min(end, stored) - start) if start < stored else b""
        block += tail[max(start - stored, 0) : max(end - stored, 0)]
        if len(block) < end - start:
            raise CorruptFile(f"{self._path}: entry {first + count - 1} is beyond the end of the file")
        return block

    def _floor_in(self, first: int, block: bytes, target: int, field: int) -> tuple[int, tuple[int, ...]]:
        """As `_floor`, among the entries of a block that begins with the slot `first`."""
        width, unpack_from = self._entry.size, self._entry.unpack_from
        low, high = 0, len(block) // width
        found: tuple[int, ...] = ()
        while low < high:
            middle = (low + high) // 2
            entry = unpack_from(block, middle * width)
            if entry[field] <= target:
                low, found = middle + 1, entry
            else:
                high = middle
        return (first + low - 1, found) if found else (-1, found)

    def _keep(self, entries: int) -> None:
        size = entries * self._entry.size
        stored, tail = self._parts
        if size < stored:
            self._opened().truncate(size)
            self._parts = size, bytearray()
        else:
            self._parts = stored, tail[: size - stored]
        self._known_last = None

    def _spill(self) -> None:
        stored, tail = self._parts
        try:
            self._opened().write_at(stored, tail)
        except OSError:
            self._needs_trimming = True
            raise
        self._parts = stored + len(tail), bytearray()

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self._path, create=True)
            self._is_made = True
        return self._file


class OffsetIndex(_SparseIndex):
    """From offset to the position of a batch at or before it."""

    __slots__ = ()
    _entry = Struct(">ii")

    @property
    def last_offset(self) -> int:
        last = self._last
        return self._base_offset + (last[0] if last else 0)

    def append(self, offset: int, position: int) -> None:
        relative = offset - self._base_offset
        assert 0 <= relative <= MAX_RELATIVE_OFFSET, f"offset {offset} does not fit the segment {self._base_offset}"
        last = self._last
        assert last is None or relative > last[0], f"{self._path}: offset {offset} is not after the last"
        self._append_raw(relative, position)

    def entry(self, slot: int) -> tuple[int, int]:
        relative, position = self._raw(slot)
        return self._base_offset + relative, position

    def position_before(self, offset: int) -> int:
        """A position from which a scan forward meets `offset`."""
        entry = self._floor(offset - self._base_offset, 0)[1]
        return entry[1] if entry else 0

    def offset_past(self, position: int) -> int | None:
        """An offset that no batch before `position` in the file has; None if only the end of the segment is one."""
        slot = self._floor_slot(position - 1, 1) + 1
        return self.entry(slot)[0] if slot < len(self) else None

    def truncate_to(self, offset: int) -> None:
        """Drops the entries of `offset` and after."""
        self._keep(self._floor_slot(offset - self._base_offset - 1, 0) + 1)


class TimeIndex(_SparseIndex):
    """From timestamp to the last offset of the batch that first reached it."""

    __slots__ = ()
    _entry = Struct(">qi")

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        timestamp, relative = self._last or (-1, 0)
        return timestamp, self._base_offset + relative

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Adds an entry if it tells of a later time than the last one does."""
        relative = offset - self._base_offset
        last_timestamp, last_relative = self._last or (-1, 0)
        assert relative >= last_relative, f"{self._path}: offset {offset} is before the last"
        if timestamp > last_timestamp:
            self._append_raw(timestamp, relative)

    def entry(self, slot: int) -> tuple[int, int]:
        timestamp, relative = self._raw(slot)
        return timestamp, self._base_offset + relative

    def offset_before(self, timestamp: int) -> int:
        """An offset from which a scan forward meets the first record at or after `timestamp`."""
        entry = self._floor(timestamp, 0)[1]
        return self._base_offset + (entry[1] if entry else 0)

    def truncate_to(self, offset: int) -> None:
        """Drops the entries of `offset` and after."""
        self._keep(self._floor_slot(offset - self._base_offset - 1, 1) + 1)
