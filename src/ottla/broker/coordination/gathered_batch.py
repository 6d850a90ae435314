"""Records of several decisions in one batch, byte for byte as Kafka's coordinators write them.

In `__consumer_offsets` the base sequence is 0 and not -1 even though there is no producer: a quirk of Kafka's, kept so
that a log cannot tell who wrote it. Records that are written in a transaction have the batch to themselves.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ottla.machines.coordinator_machine import Answer, CoordinatorRecord, EncodedRecord, TransactionStamp
from ottla.records.builder import BatchBuilder
from ottla.records.header import HEADER_SIZE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BatchHeader
from ottla.records.kernel import RecordWriter
from ottla.runtime.attribution import Attributed, work_for
from ottla.wire.errors import ErrorCode

_log = logging.getLogger(__name__)
_NOBODY = TransactionStamp(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
_RECORD_OVERHEAD = 32
"""More than a record has beside its key and value: six varints and an attributes byte."""


class Outcome(Protocol):
    """What somebody is told once all that a decision has seen is committed, or cannot be any more. Neither raises."""

    def tell(self) -> None: ...
    def refuse(self, error: ErrorCode, /) -> None: ...


class Waiting(NamedTuple):
    """A decision whose outcome is told to the request that asked for it, and to those whom it answers."""

    reply: Any
    answers: Sequence[Answer]
    then: Callable[[Any], None]
    failed: Callable[[ErrorCode], None]
    subject: str | None
    request: Attributed | None

    def tell(self) -> None:
        self._call(self.request, self.then, self.reply)
        for waiter, answer in self.answers:
            self._call(None, waiter.failed if isinstance(answer, ErrorCode) else waiter.then, answer)

    def refuse(self, error: ErrorCode, /) -> None:
        self._call(self.request, self.failed, error)
        for waiter, _ in self.answers:
            self._call(None, waiter.failed, error)

    def _call(self, request: Attributed | None, callback: Callable[[Any], None], outcome: object) -> None:
        """What goes wrong is the request's that is told; a waiter has its own request. It keeps no other from being
        told.
        """
        try:
            work_for(request, callback, outcome)
        except Exception:
            _log.exception("the outcome of a decision about %s could not be told", self.subject)


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
    """A batch that is still open, and who waits for it. `transaction` is None outside of transactions. `size` is at
    least what it takes so far, before compression.
    """

    __slots__ = ("_base_sequence", "size", "transaction", "waiting", "writer")

    def __init__(self, transaction: TransactionStamp | None, base_sequence: int, compression: int) -> None:
        self.transaction = transaction
        self.waiting: list[Outcome] = []
        self.size = HEADER_SIZE
        self._base_sequence = base_sequence
        self.writer: RecordWriter
        if transaction is None and not compression:
            self.writer = RecordWriter(HEADER_SIZE)
        else:
            stamp = transaction or _NOBODY
            self.writer = BatchBuilder(
                compression=compression,
                producer_id=stamp.producer_id,
                producer_epoch=stamp.producer_epoch,
                base_sequence=base_sequence,
                transactional=transaction is not None,
            )

    def add(self, records: Iterable[EncodedRecord], size: int, now_ms: int) -> None:
        """`size` is that of the records, as `size_of` says."""
        append = self.writer.append
        for key, value in records:
            append(now_ms, key, value)
        self.size += size

    def build(self, base_offset: int, leader_epoch: int) -> bytearray:
        """The batch, for that place in the log."""
        writer = self.writer
        if not isinstance(writer, BatchBuilder):
            return writer.finish_batch(base_offset, leader_epoch, self._base_sequence)
        writer.base_offset, writer.leader_epoch = base_offset, leader_epoch
        return writer.build()

    @property
    def header(self) -> BatchHeader | None:
        """Of a batch that is built, if it is known without being read again."""
        return self.writer.header if isinstance(self.writer, BatchBuilder) else None
