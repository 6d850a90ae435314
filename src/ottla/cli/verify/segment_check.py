"""One segment: its batches in one pass, and its three indexes held against them as they go by.

A piece of a file is in memory at a time: a megabyte of the log (or its largest batch), some kilobytes of an index. The
look ends where the log's file ended when it began: behind that a running node may be writing.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from struct import Struct
from typing import NamedTuple, TypeAlias

from ottla.base.errors import ProtocolError
from ottla.base.ports import File
from ottla.cli.dump.disk import ReadOnlyDisk
from ottla.cli.verify.batch_order import Aborted, BatchOrder
from ottla.cli.verify.problems import BY_ITSELF, DAMAGE, NOTE, REBUILD, RESTORE, Problem, Tell
from ottla.log import file_names
from ottla.log.errors import CorruptFile
from ottla.log.scan import scan_batches
from ottla.log.transaction_index import AbortedTransaction, parse_entries
from ottla.records.batch import checksum_matches
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.records.reader import read_records

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_READ_BYTES = 48 << 10

_IndexFile: TypeAlias = File | None
"""None for one that is not there."""


class Segment(NamedTuple):
    """`path` is that of its log. `next_base` is the first offset of the segment after it, or None for the last.

    `may_be_torn`: a crash may have left its end, and its indexes, as they are; `is_live`: a node is writing to it.
    """

    partition: str
    path: str
    base_offset: int
    next_base: int | None
    may_be_torn: bool
    is_live: bool


def check_segment(
    segment: Segment,
    order: BatchOrder,
    tell: Tell,
    progress: Callable[[int], None],
    *,
    deep: bool = False,
    epoch_at: Callable[[BatchHeader], str | None] = lambda _header: None,
) -> None:
    """Tells all that is wrong with it. Raises `OSError` if a file cannot be read."""
    _Check(segment, order, tell, progress, deep=deep, epoch_at=epoch_at).run()


class _Check:
    def __init__(
        self,
        segment: Segment,
        order: BatchOrder,
        tell: Tell,
        progress: Callable[[int], None],
        *,
        deep: bool,
        epoch_at: Callable[[BatchHeader], str | None],
    ) -> None:
        self._segment = segment
        self._order = order
        self._tell = tell
        self._progress = progress
        self._deep = deep
        self._epoch_at = epoch_at
        stem = segment.path.removesuffix(file_names.LOG)
        self._index_path = stem + file_names.INDEX
        self._time_path = stem + file_names.TIME_INDEX
        self._transactions_path = stem + file_names.TRANSACTION_INDEX
        self._aborted: list[Aborted] = []
        self._is_readable = True

    def run(self) -> None:
        # The indexes are opened first: what they say of records that come meanwhile is behind the end of the log.
        disk = ReadOnlyDisk()
        with ExitStack() as opened:
            index = self._opened(disk, self._index_path, opened)
            times = self._opened(disk, self._time_path, opened)
            listed = self._read_transactions()
            log = disk.open(self._segment.path)
            opened.callback(log.close)
            self._check_log(log, _Offsets(self, index), _Times(self, times))
        if self._is_readable:
            self._check_transactions(listed)

    def _opened(self, disk: ReadOnlyDisk, path: str, opened: ExitStack) -> "_IndexFile":
        try:
            file = disk.open(path)
        except FileNotFoundError:
            if self._segment.next_base is not None and not self._segment.is_live:
                what = "a closed segment has no such index"
                self._tell(Problem(NOTE, self._segment.partition, path, -1, self._segment.base_offset, what, BY_ITSELF))
            return None
        opened.callback(file.close)
        return file

    def _check_log(self, log: File, offsets: "_Offsets", times: "_Times") -> None:
        segment, order = self._segment, self._order
        end = log.size()
        position = 0
        try:
            for position, header, batch in scan_batches(log, 0, end):
                self._progress(header.size)
                offsets.pass_by(position, header)
                if not checksum_matches(batch, 0, header):
                    self._damage(position, header.base_offset, "the checksum does not match", RESTORE)
                    order.skip(header)
                else:
                    self._check_batch(position, header, batch)
                times.pass_by(header)
                position += header.size
        except CorruptBatch as problem:
            self._tell_torn(position, end, str(problem))
            self._is_readable = segment.may_be_torn or segment.is_live
        offsets.finish(position)
        times.finish()

    def _check_batch(self, position: int, header: BatchHeader, batch: memoryview) -> None:
        segment = self._segment
        if header.base_offset < segment.base_offset:
            what = f"it begins at offset {header.base_offset}, and its segment at {segment.base_offset}"
            self._damage(position, header.base_offset, what, RESTORE)
        if segment.next_base is not None and header.last_offset >= segment.next_base:
            what = f"it ends at offset {header.last_offset}, and the next segment begins at {segment.next_base}"
            self._damage(position, header.base_offset, what, RESTORE)
        for what in self._order.take(header, batch):
            self._damage(position, header.base_offset, what, RESTORE)
        if self._order.last_aborted is not None:
            self._aborted.append(self._order.last_aborted)
        what_of_epoch = self._epoch_at(header)
        if what_of_epoch is not None:
            self._damage(position, header.base_offset, what_of_epoch, RESTORE)
        if self._deep:
            self._check_records(position, header, batch)

    def _check_records(self, position: int, header: BatchHeader, batch: memoryview) -> None:
        count, before = 0, header.base_offset - 1
        try:
            for record in read_records(batch, 0, header):
                count += 1
                if not before < record.offset <= header.last_offset:
                    self._damage(position, record.offset, f"record {count} is not after offset {before}", RESTORE)
                before = record.offset
        except ProtocolError as problem:
            self._damage(position, header.base_offset, f"record {count + 1} cannot be read: {problem}", RESTORE)
            return
        if header.magic == 2 and count != header.record_count:
            what = f"it says it has {header.record_count} records, and has {count}"
            self._damage(position, header.base_offset, what, RESTORE)

    def _tell_torn(self, position: int, end: int, reason: str) -> None:
        """Bytes that are not a batch. At the end of a log that was not closed it is what a crash or a running write
        leaves."""
        segment = self._segment
        is_last = segment.next_base is None
        if is_last and segment.is_live:
            return
        next_offset = -1 if self._order.next_offset is None else self._order.next_offset
        if is_last and segment.may_be_torn:
            what = f"the last {end - position} bytes are not a whole batch ({reason})"
            self._tell(Problem(NOTE, segment.partition, segment.path, position, next_offset, what, BY_ITSELF))
        else:
            what = f"there is no batch, and {end - position} bytes from here on cannot be read: {reason}"
            self._damage(position, next_offset, what, RESTORE)
            if segment.next_base is not None:
                self._order.lose(segment.next_base)

    def _damage(self, position: int, offset: int, what: str, advice: str, path: str = "") -> None:
        segment = self._segment
        self._tell(Problem(DAMAGE, segment.partition, path or segment.path, position, offset, what, advice))

    @property
    def has_holes(self) -> bool:
        """Whether something is missing that was there, taken by a cleaner or by damage."""
        return self._order.has_holes

    def wrong_index(self, path: str, position: int, offset: int, what: str) -> None:
        """An index of a segment that is recovered anyway is built anew then."""
        segment = self._segment
        level, advice = (NOTE, BY_ITSELF) if segment.may_be_torn else (DAMAGE, REBUILD)
        self._tell(Problem(level, segment.partition, path, position, offset, what, advice))

    # Transactions

    def _read_transactions(self) -> list[AbortedTransaction]:
        path = self._transactions_path
        try:
            with open(path, "rb") as file:
                return list(parse_entries(file.read(), path))
        except FileNotFoundError:
            return []
        except CorruptFile as problem:
            self.wrong_index(path, 0, -1, str(problem).removeprefix(f"{path}: "))
            return []

    def _check_transactions(self, listed: list[AbortedTransaction]) -> None:
        path = self._transactions_path
        markers = {(one.producer_id, one.last_offset): one for one in self._aborted}
        for number, entry in enumerate(listed):
            marker = markers.pop((entry.producer_id, entry.last_offset), None)
            entry_text = f"producer {entry.producer_id} aborted offsets {entry.first_offset} to {entry.last_offset}"
            if marker is None:
                is_new = self._order.next_offset is not None and entry.last_offset >= self._order.next_offset
                if not (self._order.has_holes or (is_new and self._segment.is_live)):
                    self.wrong_index(path, number, entry.last_offset, f"{entry_text}: the log has no such marker")
            elif marker.first_offset >= 0 and marker.first_offset != entry.first_offset and not self._order.has_holes:
                what = f"{entry_text}: in the log the transaction begins at {marker.first_offset}"
                self.wrong_index(path, number, entry.first_offset, what)
            elif entry.last_stable_offset > marker.last_stable_offset and not self._order.has_holes:
                what = f"{entry_text}, and all was stable up to {entry.last_stable_offset}: it was up to"
                what = f"{what} {marker.last_stable_offset}, and readers would miss what was aborted behind that"
                self.wrong_index(path, number, entry.last_offset, what)
        for marker in markers.values():
            if marker.first_offset >= 0:
                what = (
                    f"the transaction of producer {marker.producer_id} from offset {marker.first_offset} is not in it"
                )
                self.wrong_index(path, -1, marker.last_offset, f"{what}: consumers would be shown what was aborted")


def _entries(file: _IndexFile, layout: Struct) -> Iterator[tuple[int, int]]:
    """Entries of a sparse index. One that was not closed ends in zeros, or is all zeros: those are no entries."""
    if file is None:
        return
    position, at_once = 0, _READ_BYTES // layout.size * layout.size
    while data := file.read_at(position, at_once):
        whole = len(data) // layout.size * layout.size
        for first, second in layout.iter_unpack(data[:whole]):
            if first == second == 0:
                return
            yield first, second
        if whole < len(data):
            return
        position += whole


class _Offsets:
    """The offset index: each entry names a batch by its position, and an offset that is not before it."""

    def __init__(self, check: _Check, file: _IndexFile) -> None:
        self._check = check
        self._segment = check._segment
        self._path = check._index_path
        self._entries = _entries(file, _OFFSET_ENTRY)
        self._number = -1
        self._has_entry = False
        self._position = -1
        self._last_offset = -1
        if file is not None and file.size() % _OFFSET_ENTRY.size:
            check.wrong_index(self._path, file.size(), -1, f"its size is not a multiple of {_OFFSET_ENTRY.size}")
        self._next()

    def pass_by(self, position: int, header: BatchHeader) -> None:
        while self._has_entry and self._position <= position:
            if self._position < position:
                self._wrong(f"there is no batch at position {self._position} of the log")
            elif self._offset < header.base_offset:
                self._wrong(f"the batch at position {position} begins after it, at offset {header.base_offset}")
            self._next()

    def finish(self, end: int) -> None:
        """Entries behind the end are those of batches that came meanwhile."""
        if self._has_entry and not self._segment.is_live:
            self._wrong(f"it names position {self._position}, and the log's batches end at {end}")

    def _next(self) -> None:
        entry = next(self._entries, None)
        self._number += 1
        self._has_entry = entry is not None
        if entry is None:
            return
        relative, self._position = entry
        self._offset = self._segment.base_offset + relative
        if relative <= self._last_offset and self._number and relative >= 0:
            self._wrong(f"it comes after offset {self._segment.base_offset + self._last_offset}")
        self._last_offset = relative

    def _wrong(self, what: str) -> None:
        self._check.wrong_index(self._path, self._number * _OFFSET_ENTRY.size, self._offset, what)


class _Times:
    """The time index: no record up to an entry's offset is later than the entry's time, and that one is as late."""

    def __init__(self, check: _Check, file: _IndexFile) -> None:
        self._check = check
        self._segment = check._segment
        self._path = check._time_path
        self._entries = _entries(file, _TIME_ENTRY)
        self._number = -1
        self._latest = -1
        self._last_offset = -1
        self._time = -1
        # A segment that is closed ends its index with its latest record: retention goes by that.
        self._is_complete = file is not None and check._segment.next_base is not None
        if file is not None and file.size() % _TIME_ENTRY.size:
            check.wrong_index(self._path, file.size(), -1, f"its size is not a multiple of {_TIME_ENTRY.size}")
        self._next()

    def pass_by(self, header: BatchHeader) -> None:
        while self._offset >= 0 and self._offset < header.base_offset:
            self._compare()
        self._latest = max(self._latest, header.max_timestamp)
        self._last_offset = header.last_offset

    def finish(self) -> None:
        while self._offset >= 0:
            if self._offset > self._last_offset:
                # Of a batch that came meanwhile; or of an empty log, which has one entry of its own.
                if not self._segment.is_live and self._last_offset >= 0:
                    self._wrong(f"it names offset {self._offset}, and the segment ends at {self._last_offset}")
                return
            self._compare()
        if self._is_complete and self._time < self._latest and not self._check.has_holes:
            self._wrong(f"it ends with {self._time}, and the segment's latest record is of {self._latest}")

    def _compare(self) -> None:
        """All batches that begin up to the entry's offset have gone by."""
        if self._time < self._latest:
            self._wrong(f"it says that no record up to there is later than {self._time}, and one is of {self._latest}")
        elif self._time > self._latest and not self._check.has_holes:
            self._wrong(f"it says that a record up to there is of {self._time}, and the latest is of {self._latest}")
        self._next()

    def _next(self) -> None:
        before = self._time
        time_and_offset = next(self._entries, None)
        self._number += 1
        if time_and_offset is None:
            self._offset = -1
            return
        self._time, relative = time_and_offset
        self._offset = self._segment.base_offset + relative
        if relative < 0 or (self._number and self._time <= before):
            self._wrong(f"its time {self._time} comes after {before}")

    def _wrong(self, what: str) -> None:
        self._check.wrong_index(self._path, self._number * _TIME_ENTRY.size, self._offset, what)
