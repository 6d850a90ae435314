"""Records of several decisions in one batch, byte for byte as Kafka's coordinators write them.

In `__consumer_offsets` the base sequence is 0 and not -1 even though there is no producer: a quirk of Kafka's, kept so
that a log cannot tell who wrote it. Records that are written in a transaction have the batch to themselves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.machines.coordinator_machine import Answer, CoordinatorRecord, EncodedRecord, TransactionStamp
from ottla.records.builder import BatchBuilder
from ottla.records.header import HEADER_SIZE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BatchHeader
from ottla.runtime.attribution import Attributed
from ottla.wire.errors import ErrorCode

_NOBODY = TransactionStamp(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
_RECORD_OVERHEAD = 32
"""More than a record has beside its key and value: six varints and an attributes byte."""


class Waiting(NamedTuple):
    """A decision whose outcome is told once all that it has seen is committed, to the request that asked for it."""

    reply: Any
    answers: Sequence[Answer]
    then: Callable[[Any], None]
    failed: Callable[[ErrorCode], None]
    subject: str | None
    request: Attributed | None


def size_of(records: Iterable[EncodedRecord]) -> int:
    """At least what these take in a batch, before compression."""
    size = 0
    for key, value in records:
        size += len(key) + _RECORD_OVERHEAD
        if value is not None:
            size += len(value)
    return size


def in_parts(
    records: Sequence[CoordinatorRecord], encode: Callable[[CoordinatorRecord], EncodedRecord], limit: int
) -> Iterator[Sequence[CoordinatorRecord]]:
    """Divides records that need not stay together, so that each part fits into a batch, unless one alone does not."""
    first, size = 0, HEADER_SIZE
    for index, record in enumerate(records):
        takes = size_of((encode(record),))
        if size + takes > limit and index > first:
            yield records[first:index]
            first, size = index, HEADER_SIZE
        size += takes
    yield records[first:]


class GatheredBatch:
    """A batch that is still open, and the decisions that wait for it. `transaction` is None outside of transactions."""

    __slots__ = ("_builder", "_size", "transaction", "waiting")

    def __init__(self, transaction: TransactionStamp | None, *, base_sequence: int, compression: int) -> None:
        stamp = transaction or _NOBODY
        self.transaction = transaction
        self.waiting: list[Waiting] = []
        self._size = HEADER_SIZE
        self._builder = BatchBuilder(
            compression=compression,
            producer_id=stamp.producer_id,
            producer_epoch=stamp.producer_epoch,
            base_sequence=base_sequence,
            transactional=transaction is not None,
        )

    def has_room_for(self, size: int, limit: int) -> bool:
        return self._size + size <= limit

    def add(self, records: Sequence[EncodedRecord], size: int, now_ms: int) -> None:
        """`size` is that of the records, as `size_of` says."""
        append = self._builder.append
        for key, value in records:
            append(now_ms, key, value)
        self._size += size

    @property
    def record_count(self) -> int:
        return self._builder.record_count

    def build(self) -> tuple[bytearray, BatchHeader]:
        data = self._builder.build()
        return data, self._builder.header
