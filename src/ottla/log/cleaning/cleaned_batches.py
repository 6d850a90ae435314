"""What a cleaning leaves of one batch: all of it, some of its records, its header alone, or nothing.

Kafka keeps the header of a batch without records where something depends on it: the last sequence of a producer, the
epoch in its last marker, or the end of the cleaned part.

Entries of the older formats stay as they are, or go. A compressed one that loses some of its records is written
anew in the current format, which every client of today reads.
"""

from typing import NamedTuple

from ottla.base.ports import Buffer
from ottla.log.cleaning.job import CleaningJob, CleaningStats
from ottla.log.cleaning.source import SegmentReader
from ottla.log.cleaning.transactions import CleanedTransactions
from ottla.records.batch import MAGIC, BatchHeader, write_header
from ottla.records.builder import BatchBuilder
from ottla.records.compression import compress
from ottla.records.header import (
    COMPRESSION_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    Compression,
)
from ottla.records.kernel import OffsetMap
from ottla.records.reader import read_records, record_bytes


class CleanedBatch(NamedTuple):
    data: Buffer
    header: BatchHeader


class BatchCleaner:
    """Cleans the batches of one cleaning, in order. The map is filled; `stats` is added to."""

    def __init__(
        self, job: CleaningJob, offsets: OffsetMap, transactions: CleanedTransactions, stats: CleaningStats
    ) -> None:
        self._job = job
        self._now_ms = job.now_ms
        self._horizon_ms = job.now_ms + job.delete_retention_ms
        self._offsets = offsets
        self._transactions = transactions
        self._stats = stats
        self._needed = {id: last.last_data_offset for id, last in job.producers.items()}
        self._needed[NO_PRODUCER_ID] = job.end_offset - 1

    def clean_run(self, reader: SegmentReader) -> tuple[int, bytearray]:
        """Cleans batches that are simple, those that stay as they are or go altogether, as many as come in a row.

        Returns how many bytes were gone through, and what is left of them. All that is special is left to `clean`.
        """
        left = bytearray()
        run = self._offsets.retain_run(reader.window(), reader.next_offset, reader.limit, self._needed, left)
        reader.skip(run.size, run.next_offset)
        self._stats.records_read += run.records_read
        self._stats.records_written += run.records_written
        self._stats.keyless_records += run.keyless
        return run.size, left

    def clean(self, header: BatchHeader, data: memoryview, *, keep_old_tombstones: bool) -> CleanedBatch | None:
        """What is left of a batch. `keep_old_tombstones` is for formats whose batches cannot carry a horizon."""
        self._stats.records_read += header.record_count
        if header.is_control:
            cleaned = self._clean_control(header, data)
        elif self._transactions.on_data(header):
            cleaned = None
        elif header.magic == MAGIC:
            cleaned = self._clean_data(header, data)
        else:
            cleaned = self._clean_old(header, data, keep_old_tombstones)
        if cleaned is not None:
            self._stats.records_written += cleaned.header.record_count
        elif self._is_needed(header):
            cleaned = _without_records(header)
        return cleaned

    def _clean_control(self, header: BatchHeader, data: memoryview) -> CleanedBatch | None:
        is_done_with = self._transactions.on_control(header, data)
        if header.record_count == 0 or (
            is_done_with and header.has_delete_horizon and header.base_timestamp <= self._now_ms
        ):
            return None
        if is_done_with and not header.has_delete_horizon:
            return self._with_horizon(header, data)
        return CleanedBatch(data, header)

    def _with_horizon(self, header: BatchHeader, data: memoryview) -> CleanedBatch:
        builder = BatchBuilder(delete_horizon_ms=self._horizon_ms)
        for record in read_records(data, 0, header):
            delta = record.offset - header.base_offset
            builder.append(record.timestamp, record.key, record.value, record.headers, delta)
        return _rebuilt(
            header,
            builder.finish(),
            attributes=header.attributes | DELETE_HORIZON_FLAG,
            base_timestamp=self._horizon_ms,
        )

    def _clean_data(self, header: BatchHeader, data: memoryview) -> CleanedBatch | None:
        has_horizon = header.has_delete_horizon
        left = self._offsets.retain(
            record_bytes(data, 0, header),
            header.base_offset,
            header.base_timestamp,
            header.log_append_time,
            header.record_count,
            not has_horizon or self._now_ms < header.base_timestamp,
            has_horizon,
            self._horizon_ms,
            HEADER_SIZE,
        )
        self._stats.keyless_records += left.keyless
        if left.record_count == 0:
            return None
        if left.records is None:
            return CleanedBatch(data, header)
        return _rebuilt(
            header,
            left.records,
            attributes=header.attributes | DELETE_HORIZON_FLAG if left.has_tombstones else header.attributes,
            base_timestamp=left.base_timestamp,
            max_timestamp=header.max_timestamp if header.is_log_append_time else left.max_timestamp,
            record_count=left.record_count,
        )

    def _clean_old(self, header: BatchHeader, data: memoryview, keep_tombstones: bool) -> CleanedBatch | None:
        records = list(read_records(data, 0, header))
        left = [
            record
            for record in records
            if record.offset > self._offsets.latest_offset
            or (
                record.key is not None
                and record.offset >= self._offsets.get(record.key)
                and (record.value is not None or keep_tombstones)
            )
        ]
        if not left or len(left) == len(records):
            return CleanedBatch(data, header) if left else None
        has_tombstones = any(record.value is None for record in left)
        builder = BatchBuilder(delete_horizon_ms=self._horizon_ms if has_tombstones else None)
        for record in left:
            builder.append(record.timestamp, record.key, record.value, (), record.offset - header.base_offset)
        count, base_timestamp, max_timestamp = builder.record_count, builder.base_timestamp, builder.max_timestamp
        return _rebuilt(
            header,
            builder.finish(),
            attributes=header.attributes | DELETE_HORIZON_FLAG if has_tombstones else header.attributes,
            base_timestamp=base_timestamp,
            max_timestamp=header.max_timestamp if header.is_log_append_time else max_timestamp,
            record_count=count,
        )

    def _is_needed(self, header: BatchHeader) -> bool:
        """Whether something depends on the batch even without its records."""
        if header.next_offset == self._job.end_offset:
            return True
        last = self._job.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.epoch


def _rebuilt(header: BatchHeader, batch: bytearray, **changes: int) -> CleanedBatch:
    """The batch of these records, which stand behind room for a header, with a header like the one it had.

    Its last offset stays, and with it the producer's last sequence.
    """
    if header.compression != Compression.NONE:
        with memoryview(batch) as whole, whole[HEADER_SIZE:] as records:
            compressed = compress(header.compression, records)
        batch = bytearray(HEADER_SIZE)
        batch += compressed
    header = header._replace(batch_length=len(batch) - LOG_OVERHEAD, magic=MAGIC, **changes)
    write_header(batch, header)
    return CleanedBatch(batch, header)


def _without_records(header: BatchHeader) -> CleanedBatch:
    batch = bytearray(HEADER_SIZE)
    header = header._replace(
        batch_length=HEADER_SIZE - LOG_OVERHEAD,
        magic=MAGIC,
        attributes=header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_FLAG),
        base_timestamp=header.max_timestamp,
        record_count=0,
    )
    write_header(batch, header)
    return CleanedBatch(batch, header)
