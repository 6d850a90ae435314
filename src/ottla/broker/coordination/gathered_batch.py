"""Records of several decisions in one batch, byte for byte as Kafka's coordinators write them.

In `__consumer_offsets` the base sequence is 0 and not -1 even though there is no producer: a quirk of Kafka's, kept so
that a log cannot tell who wrote it. Records that are written in a transaction have the batch to themselves.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.broker.partitions.purgatory import Operation, Place
from ottla.machines.coordinator_machine import Answer, CoordinatorRecord, EncodedRecord, TransactionStamp, size_of
from ottla.records.builder import BatchBuilder
from ottla.records.header import HEADER_SIZE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BatchHeader
from ottla.records.kernel import RecordWriter
from ottla.runtime.attribution import WORK, Attributed
from ottla.runtime.request import ClientConnection
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.coordination.coordinator_log import CoordinatorLog

_log = logging.getLogger(__name__)
_NOBODY = TransactionStamp(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class Outcome(Protocol):
    """What somebody gets once all that a decision has seen is committed, or cannot be any more. Neither raises."""

    def tell(self) -> None: ...
    def refuse(self, error: ErrorCode, /) -> None: ...


class PendingOutcome(NamedTuple):
    """A decision whose outcome goes to the request that asked for it, and to those whom it answers."""

    reply: Any
    answers: Sequence[Answer]
    then: Callable[[Any], None]
    failed: Callable[[ErrorCode], None]
    subject: str | None
    request: Attributed | None

    def tell(self) -> None:
        reply, answers, then, _, _, request = self
        self._call(request, then, reply)
        for waiter, answer in answers:
            self._call(None, waiter.failed if isinstance(answer, ErrorCode) else waiter.then, answer)

    def refuse(self, error: ErrorCode, /) -> None:
        self._call(self.request, self.failed, error)
        for waiter, _ in self.answers:
            self._call(None, waiter.failed, error)

    def _call(self, request: Attributed | None, callback: Callable[[Any], None], outcome: object) -> None:
        """What goes wrong belongs to the request that is answered; a waiter has its own request. It keeps no other from
        being answered.
        """
        before, WORK.request = WORK.request, request
        try:
            callback(outcome)
        except Exception as problem:
            if request is None:
                _log.exception("answering a request about %s failed", self.subject)
            else:
                request.fail(problem)
        finally:
            WORK.request = before


as_waiting = partial(tuple.__new__, PendingOutcome)
"""All fields as one tuple: half the time of the constructor, for every decision."""


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


# Decisions that are written and whose outcome waits for the high watermark.

_NOBODY_YET = ClientConnection(-1, "", "")


class Uncommitted(Operation):
    """All decisions of one batch: they are committed together."""

    __slots__ = ("_end_offset", "_log", "_waiting")

    def __init__(self, log: "CoordinatorLog", end_offset: int, waiting: Sequence[Outcome]) -> None:
        super().__init__(_NOBODY_YET)
        self._log = log
        self._end_offset = end_offset
        self._waiting = waiting

    def is_done(self, place: Place) -> bool:
        return self._log.is_closed or self._is_committed()

    def _is_committed(self) -> bool:
        return self._log.partition.log.high_watermark >= self._end_offset

    def complete(self) -> None:
        if self._log.is_closed or self._log.partition.state is None:
            fail(self._waiting, ErrorCode.NOT_COORDINATOR)
        elif self._is_committed():
            give_out(self._waiting)
        else:
            fail(self._waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def give_out(waiting: Sequence[Outcome]) -> None:
    for outcome in waiting:
        outcome.tell()


def fail(waiting: Sequence[Outcome], error: ErrorCode) -> None:
    for outcome in waiting:
        outcome.refuse(error)
