"""One cleaning: the map is filled, and the segments are written anew.

Every segment is reported as soon as its files, which have the suffix .cleaned, are on the disk; the broker
swaps it in. The old segments are opened by name when their turn comes, so those that have been swapped out by then must
be ones that have had theirs: groups are cleaned in the order of the log. A crash or an end half-way leaves .cleaned
files, which the next cleaning or the next start removes.
"""

from collections.abc import Callable, Iterator, Sequence

from ottla.base.ports import Disk
from ottla.log import file_names
from ottla.log.cleaning.cleaned_batches import BatchCleaner
from ottla.log.cleaning.grouping import group_segments
from ottla.log.cleaning.job import CleanedSegment, CleaningDone, CleaningJob, CleaningStats
from ottla.log.cleaning.offset_map import fill_offset_map
from ottla.log.cleaning.replacement import remove_unfinished
from ottla.log.cleaning.source import SegmentReader
from ottla.log.cleaning.transactions import CleanedTransactions
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.batch import BatchHeader, batches
from ottla.records.kernel import OffsetMap


def clean(
    disk: Disk, job: CleaningJob, on_bytes: Callable[[int], None] = lambda _count: None
) -> Iterator[CleanedSegment | CleaningDone]:
    """Does what the job says. `on_bytes` hears of all that is read and written, and may wait, or raise to end it.

    Raises `CorruptBatch` or `CorruptFile` for what cannot be cleaned, `OSError` when the disk does.
    """
    return _Cleaning(disk, job, on_bytes).run()


class _Cleaning:
    def __init__(self, disk: Disk, job: CleaningJob, on_bytes: Callable[[int], None]) -> None:
        self._disk = disk
        self._job = job
        self._on_bytes = on_bytes
        self._stats = CleaningStats()

    def run(self) -> Iterator[CleanedSegment | CleaningDone]:
        job = self._job
        remove_unfinished(self._disk, job.directory)
        segments = [self._segment(base_offset) for base_offset in job.base_offsets]
        aborted = self._aborted_transactions(segments)
        offsets = OffsetMap(job.map_slots, job.map_capacity, bytes.fromhex(job.seed))
        fill_offset_map(
            offsets, segments, job.first_dirty_offset, job.end_offset, aborted, job.buffer_bytes, self._on_map_read
        )
        clean_offset = max(offsets.latest_offset + 1, job.first_dirty_offset)
        self._stats.map_utilization = len(offsets) / job.map_slots
        transactions = CleanedTransactions(aborted)
        cleaner = BatchCleaner(job, offsets, transactions, self._stats)
        reached = [segment for segment in segments if segment.base_offset < clean_offset]
        old_tombstones_go_before_ms = self._old_horizon_ms(segments)
        for group in group_segments(reached, job.end_offset, job.segment_bytes, job.segment_index_bytes):
            self._clean_group(group, cleaner, transactions, old_tombstones_go_before_ms)
            yield CleanedSegment(tuple(segment.base_offset for segment in group))
        yield CleaningDone(clean_offset, self._stats)

    def _segment(self, base_offset: int, suffix: str = "") -> Segment:
        return Segment(
            self._disk,
            self._job.directory,
            base_offset,
            index_interval_bytes=self._job.index_interval_bytes,
            suffix=suffix,
        )

    def _aborted_transactions(self, segments: Sequence[Segment]) -> list[AbortedTransaction]:
        """All of them, and read before the first segment is swapped out with its index."""
        found = [entry for segment in segments for entry in segment.transaction_index.entries()]
        for segment in segments:
            segment.transaction_index.close()
        return [*found, *self._job.aborted]

    def _old_horizon_ms(self, segments: Sequence[Segment]) -> int:
        """For batches that have no delete horizon of their own: the age of the newest segment that was clean before."""
        clean = [segment for segment in segments if segment.base_offset < self._job.first_dirty_offset]
        return self._modified_ms(clean[-1]) - self._job.delete_retention_ms if clean else 0

    def _modified_ms(self, segment: Segment) -> int:
        return self._disk.modified_ms(segment.path(file_names.LOG))

    def _clean_group(
        self,
        group: Sequence[Segment],
        cleaner: BatchCleaner,
        transactions: CleanedTransactions,
        old_tombstones_go_before_ms: int,
    ) -> None:
        cleaned = self._segment(group[0].base_offset, file_names.CLEANED)
        cleaned.create()
        try:
            writer = _Writer(cleaned, self._job.buffer_bytes, self._on_written)
            for segment in group:
                keep_old_tombstones = self._modified_ms(segment) > old_tombstones_go_before_ms
                self._clean_segment(segment, cleaner, writer, keep_old_tombstones=keep_old_tombstones)
            writer.flush()
            self._write_transaction_index(group[0], cleaned, transactions.take_needed())
            cleaned.become_inactive()
            cleaned.flush()
        finally:
            cleaned.release()
        self._keep_times(group[-1], cleaned)

    def _clean_segment(
        self, segment: Segment, cleaner: BatchCleaner, writer: "_Writer", *, keep_old_tombstones: bool
    ) -> None:
        try:
            reader = SegmentReader(segment, self._job.buffer_bytes)
            while not reader.is_at_end:
                taken, data = cleaner.clean_run(reader)
                if taken:
                    self._on_read(taken)
                    for position, header in batches(data):
                        writer.add(data[position : position + header.size], header)
                    continue
                header, view = reader.take()
                self._on_read(header.size)
                left = cleaner.clean(header, view, keep_old_tombstones=keep_old_tombstones)
                if left is not None:
                    writer.add(left.data, left.header)
        finally:
            segment.release()

    def _write_transaction_index(self, first: Segment, cleaned: Segment, needed: list[AbortedTransaction]) -> None:
        for entry in needed:
            cleaned.transaction_index.append(entry)
        if not needed and self._disk.exists(first.path(file_names.TRANSACTION_INDEX)):
            # So that the swap replaces the old one. An entry whose marker is gone would hide all that its producer
            # wrote after it.
            self._disk.open(cleaned.path(file_names.TRANSACTION_INDEX), create=True).close()

    def _keep_times(self, last: Segment, cleaned: Segment) -> None:
        """Retention goes by a file's age where records have no time of their own."""
        modified_ms = self._modified_ms(last)
        for kind in (file_names.LOG, file_names.INDEX, file_names.TIME_INDEX):
            self._disk.set_modified_ms(cleaned.path(kind), modified_ms)

    def _on_map_read(self, count: int) -> None:
        self._stats.map_bytes_read += count
        self._on_bytes(count)

    def _on_read(self, count: int) -> None:
        self._stats.bytes_read += count
        self._on_bytes(count)

    def _on_written(self, count: int) -> None:
        self._stats.bytes_written += count
        self._on_bytes(count)


class _Writer:
    """Collects cleaned batches, and appends many at a time."""

    def __init__(self, segment: Segment, buffer_bytes: int, on_written: Callable[[int], None]) -> None:
        self._segment = segment
        self._buffer_bytes = buffer_bytes
        self._on_written = on_written
        self._data = bytearray()
        self._headers: list[BatchHeader] = []

    def add(self, data: bytes | bytearray | memoryview, header: BatchHeader) -> None:
        self._data += data
        self._headers.append(header)
        if len(self._data) >= self._buffer_bytes:
            self.flush()

    def flush(self) -> None:
        if self._headers:
            self._segment.append(self._data, self._headers)
            self._on_written(len(self._data))
            self._data = bytearray()
            self._headers = []
