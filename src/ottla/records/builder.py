"""Builds record batches: one record per call for producers, whole sequences where they are at hand."""

from collections.abc import Sequence

from ottla.base.ports import Buffer
from ottla.records.batch import MAGIC, write_header
from ottla.records.columns import Header
from ottla.records.compression import compress
from ottla.records.header import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Compression,
)
from ottla.records.kernel import RecordWriter


class BatchBuilder(RecordWriter):
    """One batch in the making. Appending is the kernel's own method: nothing is between it and its caller.

    `limit` is a producer's `batch.size`, counted before compression: `append` returns False, and adds nothing,
    when the record would take the batch beyond it. A first record always fits. `size` is the batch so far. `header` is
    there once the batch is built, for an append that would read it again otherwise; it has no checksum.
    """

    header: BatchHeader

    def __init__(
        self,
        *,
        compression: int = Compression.NONE,
        level: int | None = None,
        limit: int = 0,
        base_offset: int = 0,
        leader_epoch: int = NO_LEADER_EPOCH,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        log_append_time_ms: int | None = None,
        delete_horizon_ms: int | None = None,
    ) -> None:
        super().__init__(HEADER_SIZE, limit, delete_horizon_ms)
        self.compression = compression
        self.level = level
        self.base_offset = base_offset
        self.leader_epoch = leader_epoch
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.log_append_time_ms = log_append_time_ms
        self._flags = (
            (TRANSACTIONAL_FLAG if transactional else 0)
            | (CONTROL_FLAG if control else 0)
            | (LOG_APPEND_TIME_FLAG if log_append_time_ms is not None else 0)
            | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0)
        )

    def build(self) -> bytearray:
        """The batch, mutable so that a leader can assign its offsets in place. The builder is of no more use."""
        if self.record_count == 0:
            raise ValueError("a batch needs at least one record")
        batch = self.finish()
        if self.compression != Compression.NONE:
            with memoryview(batch) as whole, whole[HEADER_SIZE:] as records:
                compressed = compress(self.compression, records, self.level)
            batch = bytearray(HEADER_SIZE)
            batch += compressed
        self.header = write_header(batch, self._header(len(batch) - LOG_OVERHEAD))
        return batch

    def _header(self, batch_length: int) -> BatchHeader:
        stamp = self.log_append_time_ms
        return BatchHeader._make(
            (
                self.base_offset,
                batch_length,
                self.leader_epoch,
                MAGIC,
                0,
                self.compression | self._flags,
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp if stamp is None else stamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.record_count,
            )
        )


def build_batch(
    timestamps: Sequence[int] | int,
    keys: Sequence[Buffer | None] | None,
    values: Sequence[Buffer | None],
    headers: Sequence[Sequence[Header]] | None = None,
    *,
    compression: int = Compression.NONE,
    level: int | None = None,
) -> bytearray:
    """One batch of all these records. `timestamps` may be one number for all, `keys` and `headers` None for none."""
    builder = BatchBuilder(compression=compression, level=level)
    builder.extend(timestamps, keys, values, headers)
    return builder.build()
