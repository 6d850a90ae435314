"""One segment of a partition's log: a file of batches, its sparse indexes, and the aborted transactions in it.

Only the newest segment of a log, the active one, is appended to. The others change only by being deleted or replaced,
so they may be read and synced from any thread.

What Kafka does to the byte, and so do we: an index entry is due when more than `index.interval.bytes` have been written
since the last one, and is written for the batch that comes next; the time index gets the largest timestamp so far at
the same moments, and once more when the segment stops being active.
"""

from collections.abc import Sequence
from contextlib import suppress

from ottla.base.lent import Seen
from ottla.base.ports import Disk, File
from ottla.log import file_names
from ottla.log.files import size_if_there
from ottla.log.index import MAX_RELATIVE_OFFSET
from ottla.log.log_config import LogConfig
from ottla.log.outcomes import FileSlice
from ottla.log.scan import Found, find_offset, scan_headers, start_after
from ottla.log.segment_files import SegmentFiles
from ottla.records.batch import MAGIC, NO_TIMESTAMP, BatchHeader, CorruptBatch, checksum_matches
from ottla.records.header import ChecksumMismatch
from ottla.records.kernel import is_sound
from ottla.records.reader import read_records

_MAX_FILE_SIZE = 0x7FFFFFFF
# A file of that size is likely to grow on. From there on room is reserved ahead: a part of its size, up to a limit.
_RESERVED_FROM = 1 << 20
_RESERVED_PART = 4
_MOST_RESERVED = 16 << 20
# As many consumers of a partition may read a batch at a time, each from its own place, without asking the index.
_MOST_STARTS = 64


class Segment(SegmentFiles):
    """A base offset and its batches. `size` is where the next batch goes."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_first_timestamp",
        "_index_interval_bytes",
        "_known_max_timestamp",
        "_reserved_to",
        "_room_config",
        "_room_size",
        "_room_timestamp",
        "_starts",
        "created_ms",
        "has_failed_write",
        "size",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        created_ms: int = 0,
        suffix: str = "",
    ) -> None:
        super().__init__(disk, directory, base_offset, suffix)
        self._index_interval_bytes = index_interval_bytes
        self._bytes_since_index_entry = 0
        # What surely goes into it without a roll, under that config: batches that end within a size, and are not later.
        self._room_config: LogConfig | None = None
        self._room_size = 0
        self._room_timestamp = 0
        self._reserved_to = _RESERVED_FROM
        self.created_ms = created_ms
        self.size = size_if_there(disk, self.path(file_names.LOG))
        self._known_max_timestamp: tuple[int, int] | None = None
        self._first_timestamp: int | None = None
        self._starts: dict[int, int] = {}
        """Where batches begin that small readers will ask for next: offset to position. Known for a few of them."""
        self.has_failed_write = False
        """Whether there may be bytes behind the end, or have been and are not durably gone: for a clean stop."""

    def __repr__(self) -> str:
        return f"Segment({self.path(file_names.LOG)}, {self.size} bytes)"

    # Appending

    def append(self, data: Seen, batches: Sequence[BatchHeader]) -> None:
        """Writes whole batches, whose headers these are. If the disk fails, the segment is as it was before.

        The checksum of each is computed again, right before it is written: what is stored is what was checked, whatever
        became of its memory since. Raises `ChecksumMismatch`, and nothing is written.
        """
        at, whole = 0, memoryview(data)  # A slice of bytes would be a copy of each batch.
        for header in batches:
            end = at + header.size
            if not (is_sound(whole[at:end]) if header.magic >= MAGIC else checksum_matches(whole, at, header)):
                raise self.mismatch(header.base_offset)
            at = end
        position, file = self.size, self._file or self.file
        try:
            file.write_at(position, data)
        except OSError:
            self.undo_write(file, position)
            raise
        if position > self._reserved_to:
            self.reserve(file, position + len(data))
        if position == 0:
            self._first_timestamp = batches[0].max_timestamp
        for header in batches:
            self.index(header, position)
            position += header.size
        self.size = position

    def append_one(self, data: Seen, size: int, last_offset: int, max_timestamp: int, crc: int = -1) -> None:
        """The same for one batch, of which the caller knows what the indexes need, and the `crc` that it was found to
        have.
        """
        if not is_sound(data, crc):
            raise self.mismatch(last_offset)
        position, file = self.size, self._file or self.file
        try:
            file.write_at(position, data)
        except OSError:
            self.undo_write(file, position)
            raise
        if position > self._reserved_to:
            self.reserve(file, position + size)
        if position == 0:
            self._first_timestamp = max_timestamp
        known = self._known_max_timestamp or self.max_timestamp
        if max_timestamp > known[0] or self._bytes_since_index_entry > self._index_interval_bytes:
            self.index_one(size, last_offset, max_timestamp, position)
        else:
            self._bytes_since_index_entry += size
        self.size = position + size

    def mismatch(self, offset: int) -> ChecksumMismatch:
        return ChecksumMismatch(
            f"{self.path(file_names.LOG)}: the batch for offset {offset} fails its checksum, and is not written"
        )

    def undo_write(self, file: File, position: int) -> None:
        """A write has failed, and may have written some of it."""
        self.has_failed_write = True
        with suppress(OSError):  # If this fails too, what was written is cut off when the segment is done with.
            file.truncate(position)

    def reserve(self, file: File, end: int) -> None:
        """Room ahead of the file, which makes an append a fifth cheaper (`block_reservation`).

        What is left of it is given back when the segment stops being active: at a roll, or a clean stop. After a crash
        it stays with the file until then.
        """
        size = min(end // _RESERVED_PART, _MOST_RESERVED)
        self._reserved_to = end + size if file.reserve(end, size) else _MAX_FILE_SIZE

    def index(self, header: BatchHeader, position: int) -> None:
        """Notes the batch at `position` in the indexes, if an entry is due."""
        self.index_one(header.size, header.last_offset, header.max_timestamp, position)

    def index_one(self, size: int, last_offset: int, max_timestamp: int, position: int) -> None:
        known = self._known_max_timestamp or self.max_timestamp
        if max_timestamp > known[0]:
            known = self._known_max_timestamp = max_timestamp, last_offset
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*known)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size

    def fits(self, last_offset: int) -> bool:
        """Whether an offset can be written relative to this segment's base."""
        return 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def has_room(self, config: LogConfig, incoming: int, last_offset: int, max_timestamp: int) -> bool:
        """Whether `incoming` more bytes surely belong into this segment; if not, `should_roll` takes a closer look."""
        return (
            self._room_config is config
            and self.size + incoming <= self._room_size
            and max_timestamp <= self._room_timestamp
            and last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def should_roll(
        self, config: LogConfig, incoming: int, last_offset: int, max_timestamp: int, now_ms: int, max_ms: int
    ) -> bool:
        """Whether `incoming` more bytes belong into a new segment (segment.bytes, segment.index.bytes, segment.ms).

        `max_ms` is what segment.ms comes to for this segment.
        """
        if self.size > min(config.segment_bytes, _MAX_FILE_SIZE) - incoming:
            return True
        if self.size > 0 and self.waited_ms(now_ms, max_timestamp) > max_ms:
            return True
        if not (self._entries_left(config) and self.fits(last_offset)):
            return True
        self._measure_room(config, max_ms)
        return False

    def _measure_room(self, config: LogConfig, max_ms: int) -> None:
        """How far this segment reaches, as far as sizes alone show it.

        An index gets an entry after every index.interval.bytes, and one may be due now: so its entries last at least
        for that many bytes.
        """
        first = self.first_timestamp
        if first < 0:
            self._room_config = None  # Then time is the clock's, and has to be asked for at every batch.
            return
        until_full = self.size + (self._entries_left(config) - 2) * self._index_interval_bytes
        self._room_config = config
        self._room_size = min(config.segment_bytes, _MAX_FILE_SIZE, until_full)
        self._room_timestamp = first + max_ms

    def _entries_left(self, config: LogConfig) -> int:
        """Of the index that is full first. The time index keeps one for when the segment stops being active."""
        max_bytes = config.segment_index_bytes
        return max(0, min(self.offset_index.entries_left(max_bytes), self.time_index.entries_left(max_bytes) - 1))

    def waited_ms(self, now_ms: int, max_timestamp: int) -> int:
        """How long the segment has been active, by the time of its records if they have one."""
        first = self.first_timestamp
        return max_timestamp - first if first >= 0 else now_ms - self.created_ms

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 if there is none, or it is damaged.

        Damage is for those to hear of who read it. It is no reason not to append, or not to roll.
        """
        if self._first_timestamp is None:
            if not self.size:
                return NO_TIMESTAMP
            try:
                _, first = next(scan_headers(self.file, 0, self.size))
                self._first_timestamp = first.max_timestamp
            except CorruptBatch:
                self._first_timestamp = NO_TIMESTAMP
        return self._first_timestamp

    # Reading

    def find(self, offset: int) -> Found | None:
        """The first batch that ends at or after `offset`."""
        start = self._starts.pop(offset, None)
        if start is None:
            start = self.offset_index.position_before(offset)
        return find_offset(self.file, start, self.size, offset)

    def slice(self, found: Found, size: int) -> FileSlice:
        """So many bytes from a batch on. If they have been read already, where a reader of them continues is noted."""
        data = found.window[found.at : found.at + size]
        if len(data) < size:
            return FileSlice(self.file, found.position, size)
        following = start_after(data)
        if following is not None:
            if len(self._starts) >= _MOST_STARTS:
                self._starts.pop(next(iter(self._starts)), None)
            self._starts[following[0]] = found.position + following[1]
        return FileSlice(self.file, found.position, size, data)

    def find_timestamp(self, timestamp: int, from_offset: int, end: int) -> tuple[int, int] | None:
        """Timestamp and offset of the first record at or after both `timestamp` and `from_offset`, before `end`.

        On any thread; `end` is a position in the file.
        """
        start = self.offset_index.position_before(max(self.time_index.offset_before(timestamp), from_offset))
        for position, header in scan_headers(self.file, start, end):
            if header.max_timestamp >= timestamp and header.last_offset >= from_offset:
                for record in read_records(self.file.read_at(position, header.size)):
                    if record.timestamp >= timestamp and record.offset >= from_offset:
                        return record.timestamp, record.offset
        return None

    def position_of_end(self, offset: int) -> int:
        """Where the batches before `offset` end; `offset` is where a batch begins, or beyond the end."""
        found = self.find(offset)
        return found.position if found else self.size

    def next_offset(self) -> int:
        """The offset after the last batch."""
        offset = self.base_offset
        start = self.offset_index.position_before(self.offset_index.last_offset)
        for _, header in scan_headers(self.file, start, self.size):
            offset = header.next_offset
        return offset

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The largest timestamp and the last offset of the batch that has it; (-1, base offset) if there is none."""
        if self._known_max_timestamp is None:
            self._known_max_timestamp = self.time_index.last_entry
        return self._known_max_timestamp

    @property
    def known_max_timestamp(self) -> tuple[int, int] | None:
        """The same, if it is known without asking the disk. It is as soon as something has been appended."""
        return self._known_max_timestamp

    def largest_timestamp(self) -> int:
        """What retention by time goes by: the records' time, or the file's if they have none."""
        return self.newest_time(self.max_timestamp)

    def newest_time(self, max_timestamp: tuple[int, int] | None) -> int:
        """The same on any thread, which is given what was known and leaves that as it is."""
        timestamp, _ = max_timestamp or self.time_index.last_entry
        return timestamp if timestamp >= 0 else self._disk.modified_ms(self.path(file_names.LOG))

    # Changing what is there

    def become_inactive(self) -> None:
        """The last entry of the time index, so that a lookup sees the largest timestamp. May be called again."""
        self.cut(self.size)
        if _RESERVED_FROM < self._reserved_to < _MAX_FILE_SIZE:
            self.file.truncate(self.size)
            self._reserved_to = _MAX_FILE_SIZE
        if self.max_timestamp[0] >= 0:
            self.time_index.maybe_append(*self.max_timestamp)

    def truncate_to(self, offset: int) -> None:
        """Drops the batch that holds `offset` and all after it. It is for the log to sync that: see decision 4.

        If the disk fails it is to be called again, even if the file is as short as it should be by then.
        """
        found = self.find(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if found:
            self._shorten(found.position)
        self._bytes_since_index_entry = 0
        self._first_timestamp = None
        self._read_max_timestamp()

    def cut(self, size: int) -> None:
        """Ends the file at `size`, durably: what is appended next must never meet the old bytes after a crash."""
        is_longer = size < self.file.size()
        self._shorten(size)
        if is_longer:
            self.file.sync()

    def _shorten(self, size: int) -> None:
        if size < self.file.size():
            self.file.truncate(size)
        self.size = size
        self._room_config = None
        self._starts = {}

    def reset_indexes(self) -> None:
        """Forgets all that the indexes say, before they are rebuilt from the log."""
        self.offset_index.clear()
        self.time_index.clear()
        self.transaction_index.clear()
        self._bytes_since_index_entry = 0
        self._known_max_timestamp = NO_TIMESTAMP, self.base_offset

    def _read_max_timestamp(self) -> None:
        """The largest timestamp, from the time index and the batches after its last entry."""
        latest = self.time_index.last_entry
        for _, header in scan_headers(self.file, self.offset_index.position_before(latest[1]), self.size):
            if header.max_timestamp > latest[0]:
                latest = header.max_timestamp, header.last_offset
        self._known_max_timestamp = latest
