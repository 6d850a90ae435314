"""A batch of records on its way to one partition: filled, sealed, sent (perhaps again), settled.

Theory of operation. A batch is a `RecordWriter`, so that appending is the kernel's own method. When it is drained for
the first time it is sealed: no record comes in any more, and its records are compressed. Then it is stamped with a
producer's id, epoch and sequence, which writes the header; it is stamped anew when these change, into a copy, because
the old bytes may still be in a socket's queue. It is settled once, with an offset or an error, and that settles every
`Delivery` made of it.

A batch that a broker finds too large is split: its parts are batches of their own, and settle it when all of them are.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.client.errors import InvalidRecord
from ottla.client.producer.append import Delivery
from ottla.client.promise import Promise
from ottla.client.topic_partition import RecordMetadata
from ottla.records.batch import MAGIC, write_header
from ottla.records.compression import compress, decompress
from ottla.records.header import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Compression,
)
from ottla.records.kernel import RecordReader, RecordWriter
from ottla.wire.errors import ErrorCode

FATE_UNKNOWN: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
"""After these nobody knows whether a batch was written."""
ABOUT_SEQUENCES: Final = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)

if TYPE_CHECKING:
    from ottla.client.producer.partition_queue import PartitionQueue


class Waiter(Protocol):
    """How a caller waits for a promise: with threads, or in asyncio."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """To be held by a caller who looks whether a batch is settled, and does something about it."""
        ...

    def wait(self, promise: Promise[Any], timeout_s: float | None) -> None:
        """Returns when it is settled; raises `TimeoutError`."""
        ...

    async def awaited(self, promise: Promise[Any]) -> None: ...

    def call_back(self, callback: Callable[[Any], None], argument: Any) -> None:
        """Runs a user's callback, in order, later and without the lock. What it raises goes no further."""
        ...

    def nudge(self) -> None:
        """Something was settled other than by an answer: who waits for that, or for callbacks, is to look."""
        ...


class Stamp:
    """Who wrote a batch, and which of its producer's batches it is."""

    __slots__ = ("base_sequence", "is_transactional", "producer_epoch", "producer_id")

    def __init__(self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional


NO_STAMP = Stamp(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, False)


class ProducerBatch(RecordWriter):
    """`limit` is what it may hold, in bytes before compression. `held_bytes` is what it takes of `buffer.memory`."""

    __slots__ = (
        "_base_offset",
        "_error",
        "_is_unanswered",
        "_log_append_time_ms",
        "_parts",
        "_record_errors",
        "_waiting_parts",
        "_was_perhaps_written",
        "attempts",
        "callbacks",
        "codec",
        "created_s",
        "encoded",
        "held_bytes",
        "is_behind_a_gap",
        "is_closed",
        "is_done",
        "is_due",
        "is_in_flight",
        "is_out_of_order",
        "is_retried",
        "last_leader_epoch",
        "not_before_s",
        "partition",
        "queue",
        "raw_bytes",
        "sequence_was_reset",
        "settled",
        "stamp",
        "topic",
        "waiting",
        "whole",
    )

    def __init__(self, queue: "PartitionQueue", limit: int, held_bytes: int, created_s: float, waiting: Waiter) -> None:
        super().__init__(HEADER_SIZE, limit)
        self.queue = queue
        self.topic = queue.topic
        self.partition = queue.partition
        self.held_bytes = held_bytes
        self.created_s = created_s
        self.waiting = waiting
        self.callbacks: list[tuple[Delivery, Callable[[Delivery], None]]] = []
        self.is_closed = False
        """Takes no more records."""
        self.is_due = False
        """Has waited for more records for as long as it may."""
        self.encoded: bytearray | memoryview | None = None
        """With its header, once it is stamped."""
        self.raw_bytes = 0
        """Its size before compression, once it is sealed."""
        self.codec: int = Compression.NONE
        self.stamp = NO_STAMP
        self.attempts = 0
        self.is_in_flight = False
        self._was_perhaps_written = False
        self._is_unanswered = False
        self.is_behind_a_gap = False
        """A batch before it is not written, and never will be in this epoch: so neither will this one."""
        self.is_out_of_order = False
        """A broker has said that a batch before it is missing: then neither this one is written nor any behind it."""
        self.is_retried = False
        self.not_before_s = 0.0
        self.last_leader_epoch = -1
        self.sequence_was_reset = False
        self.is_done = False
        self.settled: Promise[None] | None = None
        self._base_offset = -1
        self._log_append_time_ms = -1
        self._error: Exception | None = None
        self._record_errors: Mapping[int, str | None] = {}
        self.whole: ProducerBatch | None = None
        """Of which this is a part."""
        self._parts: list[tuple[int, ProducerBatch]] = []
        self._waiting_parts = 0

    # --- making bytes ---

    @property
    def has_sequence(self) -> bool:
        return self.stamp.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return (self.stamp.base_sequence + self.record_count - 1) & 0x7FFFFFFF

    @property
    def may_be_written(self) -> bool:
        """Whether a broker may have it, as far as answers have reported; also as part of the whole that was split."""
        return self.is_in_flight or self._was_perhaps_written or self.is_perhaps_written_whole

    @property
    def is_perhaps_written_whole(self) -> bool:
        """Whether it is a part of a batch that may have been written before a broker found that too large."""
        return self.whole is not None and self.whole.may_be_written

    @property
    def may_come_late(self) -> bool:
        """Whether a broker may still have an attempt before it that nobody waits for any more, and write it then.

        What a broker answers to a later attempt tells nothing about that.
        """
        if self.is_behind_a_gap:
            return False
        return self._is_unanswered or (self.whole is not None and self.whole.may_come_late)

    def note_unanswered(self) -> None:
        """An attempt was sent, and its connection has ended without an answer."""
        self._is_unanswered = True

    def forget_attempts(self) -> None:
        """None of those before can be carried out any more, nor one of the whole that it is a part of."""
        self._is_unanswered = self.is_behind_a_gap = False
        if self.whole is not None:
            self.whole.forget_attempts()

    def note_refusal(self, code: int) -> None:
        """An attempt has failed. Only what is said about its sequence tells of the attempts before it, too."""
        if code in FATE_UNKNOWN:
            self._was_perhaps_written = True
        elif code in ABOUT_SEQUENCES:
            self.note_not_written()
            self.is_out_of_order = True

    def note_not_written(self) -> None:
        """Neither it is written nor the whole that it is a part of."""
        self._was_perhaps_written = False
        if self.whole is not None:
            self.whole.note_not_written()

    def seal(self, codec: int, level: int | None) -> float:
        """Closes the batch and compresses its records. Returns to which part of their size."""
        self.is_closed = True
        self.codec = codec
        batch = self.finish()
        self.raw_bytes = len(batch)
        if codec == Compression.NONE:
            self.encoded = batch
            return 1.0
        with memoryview(batch) as whole, whole[HEADER_SIZE:] as records:
            compressed = compress(codec, records, level)
        sealed = bytearray(HEADER_SIZE)
        sealed += compressed
        self.encoded = sealed
        return len(sealed) / len(batch)

    def put_stamp(self, stamp: Stamp) -> None:
        """Writes the header. Needs `seal`."""
        encoded = self.encoded
        assert encoded is not None, "a batch is sealed before it is stamped"
        if self.stamp is not NO_STAMP:
            encoded = self.encoded = bytearray(encoded)
        self.stamp = stamp
        write_header(
            encoded,
            BatchHeader(
                0,
                len(encoded) - LOG_OVERHEAD,
                NO_LEADER_EPOCH,
                MAGIC,
                0,
                self.codec | (TRANSACTIONAL_FLAG if stamp.is_transactional else 0),
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                stamp.producer_id,
                stamp.producer_epoch,
                stamp.base_sequence,
                self.record_count,
            ),
        )

    # --- splitting ---

    def split(self, limit: int) -> list["ProducerBatch"]:
        """Batches of at most `limit` bytes with the same records, which settle this one when they all are."""
        assert self.encoded is not None, "only what was sent can be too large"
        records = decompress(self.codec, memoryview(self.encoded)[HEADER_SIZE:])
        part: ProducerBatch | None = None
        for index, record in enumerate(RecordReader(records, 0, self.base_timestamp, None, self.record_count)):
            if part is None or not part.append(record.timestamp, record.key, record.value, record.headers):
                part = ProducerBatch(self.queue, limit, 0, self.created_s, self.waiting)
                part.append(record.timestamp, record.key, record.value, record.headers)
                self._parts.append((index, part))
        self._waiting_parts = len(self._parts)
        for _, part in self._parts:
            part.is_closed = part.is_retried = True
            part.whole = self
            part.attempts = self.attempts
            part.last_leader_epoch = self.last_leader_epoch
            part.when_settled().on_done(self._on_part_settled)
        self.encoded = None
        self._is_unanswered |= self.may_be_written  # what a broker answers about a part tells nothing of the whole
        return [part for _, part in self._parts]

    def _on_part_settled(self, _: Promise[None]) -> None:
        self._waiting_parts -= 1
        if not self._waiting_parts:
            self._settle()

    def parts(self) -> list["ProducerBatch"]:
        """What it was split into in the end; itself if it was not."""
        return [last for _, part in self._parts for last in part.parts()] or [self]

    def _part_of(self, index: int) -> tuple["ProducerBatch", int]:
        """The batch that a record went with in the end, and its index there."""
        for first, part in reversed(self._parts):
            if index >= first:
                return part._part_of(index - first)
        return self, index

    # --- settling ---

    def complete(self, base_offset: int, log_append_time_ms: int) -> None:
        if self.whole is not None and base_offset >= 0:
            # A broker that has the whole takes no part of it, and one that has a part does not take the whole.
            self.whole.note_not_written()
            self.whole.forget_attempts()
        self._base_offset = base_offset
        self._log_append_time_ms = log_append_time_ms
        self._settle()

    def fail(self, error: Exception, record_errors: Mapping[int, str | None] | None = None) -> None:
        """`record_errors`: what a broker had against single records, by their index (KIP-467)."""
        self._error = error
        self._record_errors = record_errors or {}
        self._settle()

    def _settle(self) -> None:
        assert not self.is_done, "a batch is settled once"
        self.is_done = True
        self.encoded = None
        self.whole = None
        callbacks, self.callbacks = self.callbacks, []
        for delivery, callback in callbacks:
            self.waiting.call_back(callback, delivery)
        if self.settled is not None:
            self.settled.resolve(None)

    def when_settled(self) -> Promise[None]:
        if self.settled is None:
            self.settled = Promise.resolved(None) if self.is_done else Promise()
        return self.settled

    @property
    def error(self) -> Exception | None:
        """Of the batch as a whole."""
        return self._error

    # --- what deliveries ask ---

    def wait(self, timeout_s: float | None) -> None:
        with self.waiting.lock:  # another thread may settle it just now
            settled = self.when_settled()
        self.waiting.wait(settled, timeout_s)

    async def awaited(self, delivery: Delivery) -> RecordMetadata:
        if not self.is_done:
            await self.waiting.awaited(self.when_settled())
        return self.outcome(delivery)

    def call_when_done(self, delivery: Delivery, callback: Callable[[Delivery], None]) -> None:
        with self.waiting.lock:
            if not self.is_done:
                self.callbacks.append((delivery, callback))
                return
        self.waiting.call_back(callback, delivery)
        self.waiting.nudge()

    def outcome(self, delivery: Delivery) -> RecordMetadata:
        """Where a record is; raises why it is not."""
        error = self.error_of(delivery.index)
        if error is not None:
            raise error
        part, index = self._part_of(delivery.index)
        return RecordMetadata(
            self.topic,
            self.partition,
            part._base_offset + index if part._base_offset >= 0 else None,
            part._log_append_time_ms if part._log_append_time_ms >= 0 else delivery.timestamp_ms,
            delivery.key_size,
            delivery.value_size,
        )

    def first_record(self) -> RecordMetadata:
        """Where the first record is, of which nothing else is known; raises why it is not."""
        return self.outcome(Delivery(self, 0, self.base_timestamp, -1, -1))

    def written(self) -> list[tuple[int, int]]:
        """First offset and number of records of each batch that this one was written as: several if it was split.

        An offset is -1 where a broker acknowledged the batch without saying where it is.
        """
        if self._parts:
            return [place for _, part in self._parts for place in part.written()]
        return [(self._base_offset, self.record_count)]

    def error_of(self, index: int) -> Exception | None:
        part, index = self._part_of(index)
        error = part._error
        if error is None or not part._record_errors:
            return error
        if index in part._record_errors:
            return InvalidRecord(part._record_errors[index] or str(error))
        return type(error)(f"not written, because its batch was refused for other records: {error}")

    def describe(self, index: int) -> str:
        state = "waiting" if not self.is_done else "failed" if self.error_of(index) is not None else "delivered"
        return f"<Delivery to {self.topic}-{self.partition}: {state}>"
