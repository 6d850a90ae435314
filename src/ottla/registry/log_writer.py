"""Writes to the topic, as the one registry that may: the one that took the next epoch has ended all before.

Theory of operation. All registries of a group share a transactional id, and no transaction is ever begun with it. It
is there for its epoch: InitProducerId gives the next one, and a broker refuses batches of an older epoch as soon as it
has seen one of a newer. So a new leader takes the next epoch and writes a NOOP in it. When that is acknowledged, a
former leader's batches can no longer be written; those that were are in the log before the NOOP. The batches themselves
are plain idempotent ones: no markers, no control records, for Karapace waits for the last offset to arrive as a record.

One batch is on its way at a time. What is given meanwhile goes together in the next one, up to `most_bytes`; what is
larger is given in `parts`. A batch is sent again, the same, until it is answered: what became of it is known before the
next one goes. One that the topic does not take (`max.message.bytes`) is divided, if it is more than one record.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import CoordinatorKind, Coordinators
from ottla.client.errors import ClientClosed, KafkaError, error_for
from ottla.client.network.connections import Purpose
from ottla.client.promise import Promise
from ottla.records.builder import BatchBuilder
from ottla.registry.records import Record
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import InitProducerIdRequest, ProduceRequest

_log = logging.getLogger(__name__)

_LAST_WITH_NAMES: Final = 12
_TRANSACTION_TIMEOUT_MS: Final = 60_000
_MOST_BATCH_BYTES: Final = 512 << 10
_RECORD_OVERHEAD: Final = 64
_REFUSED_S: Final = 60.0
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
_NEXT_EPOCH: Final = (*_FENCED, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)


class WritingEnded(OttlaError):
    """What was given is not written, and will not be by this writer. `is_uncertain`: it may be in the log after all."""

    def __init__(self, why: str, *, is_uncertain: bool) -> None:
        super().__init__(why)
        self.is_uncertain = is_uncertain


class WriterSettings(NamedTuple):
    topic: str = "_schemas"
    transactional_id: str = "schema-registry"
    request_timeout_ms: int = 5_000


class _Entry(NamedTuple):
    """Records that go together, and what becomes of them."""

    records: tuple[Record, ...]
    timestamp_ms: int
    size: int
    written: Promise[int]


class LogWriter:
    """`may_write` is asked before each attempt: a leader whose lease is over waits."""

    def __init__(
        self,
        cluster: Cluster,
        coordinators: Coordinators,
        settings: WriterSettings,
        may_write: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._settings = settings
        self._may_write = may_write
        self._partition = TopicPartition(settings.topic, 0)
        self._producer_id = -1
        self._epoch = -1
        self._sequence = 0
        self._waiting: deque[_Entry] = deque()
        self._under_way: list[_Entry] = []
        self._number = 0
        """Of the term that is on. Whatever belongs to another has no more to say."""
        self._is_uncertain = False
        """Whether an earlier attempt at the batch that is under way may have written it."""
        self._is_flush_due = False
        self._refused_bytes = 0
        """The size of a record that the topic did not take, until `_refused_until_s`."""
        self._most_bytes = _MOST_BATCH_BYTES
        """Less once the topic has not taken so much, until `_refused_until_s`."""
        self._refused_until_s = 0.0
        self.batches = 0
        self.on_ended: Callable[[str], None] = lambda why: None
        """Called when a term ends because it cannot continue."""

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def last(self) -> Promise[int] | None:
        """What becomes of the last that was given; None if all is written."""
        entries = self._waiting or self._under_way
        return entries[-1].written if entries else None

    # --- a term ---

    async def begin(self, noop: Record) -> int:
        """Takes the next epoch, and writes the NOOP: its offset. Goes on until that has succeeded, or `end`. Raises
        `WritingEnded`."""
        self._number += 1
        number = self._number
        self._waiting.clear()
        self._under_way.clear()
        await self._take_epoch(number)
        entry = _Entry((noop,), self._cluster.world.clock.now_ms(), 0, Promise())
        self._waiting.append(entry)
        self._cluster.world.start(self._write(number))
        return await entry.written

    def end(self, why: str = "another registry leads") -> None:
        """Nothing more is written. What is under way may still be."""
        self._number += 1
        under_way, self._under_way = self._under_way, []
        waiting, self._waiting = self._waiting, deque()
        for entry in under_way:
            entry.written.reject_if_waiting(WritingEnded(why, is_uncertain=True))
        for entry in waiting:
            entry.written.reject_if_waiting(WritingEnded(why, is_uncertain=False))

    def is_under_way(self, key: bytes | None, value: bytes | None) -> bool:
        """Whether a record that was read is one that is being written."""
        return any((key, value) in entry.records for entry in self._under_way)

    def is_too_large(self, records: Iterable[Record]) -> bool:
        """Whether the topic has refused a record that was no larger than one of these, not long ago. Such a refusal
        ends the term, since what was decided meanwhile may rest on it: a client must not be able to do that again and
        again."""
        if not self._refused_bytes or self._cluster.world.now_s() >= self._refused_until_s:
            return False
        return any(_size((record,)) >= self._refused_bytes for record in records)

    def parts(self, records: Iterable[Record]) -> list[tuple[Record, ...]]:
        """The records in order, divided so that each part fits into a batch, unless it is one record."""
        if self._cluster.world.now_s() >= self._refused_until_s:
            self._most_bytes, self._refused_bytes = _MOST_BATCH_BYTES, 0
        found: list[list[Record]] = [[]]
        left = self._most_bytes
        for record in records:
            size = _size((record,))
            if size > left and found[-1]:
                found.append([])
                left = self._most_bytes
            found[-1].append(record)
            left -= size
        return [tuple(part) for part in found]

    def append(self, records: Iterable[Record], timestamp_ms: int) -> Promise[int]:
        """The offset of the last one, when all are committed. Rejected with `WritingEnded`."""
        given = tuple(records)
        entry = _Entry(given, timestamp_ms, _size(given), Promise())
        self._waiting.append(entry)
        if not self._is_flush_due and not self._under_way:
            self._is_flush_due = True  # What comes in one turn goes together.
            self._cluster.world.timers.after(0, self._flush)
        return entry.written

    def _flush(self) -> None:
        self._is_flush_due = False
        if not self._under_way and self._waiting:
            self._cluster.world.start(self._write(self._number))

    async def _take_epoch(self, number: int) -> None:
        settings, world = self._settings, self._cluster.world
        failures = 0
        while True:
            self._check(number)
            try:
                request = InitProducerIdRequest(
                    transactional_id=settings.transactional_id, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
                )
                deadline_s = world.now_s() + settings.request_timeout_ms / 1000
                response = await self._coordinators.ask(
                    CoordinatorKind.TRANSACTION,
                    settings.transactional_id,
                    request,
                    deadline_s,
                    line=Purpose.MAIN,
                )
                self._check(number)
                if not response.error_code:
                    self._producer_id, self._epoch = response.producer_id, response.producer_epoch
                    self._sequence = 0
                    return
                raise error_for(response.error_code)
            except ClientClosed:
                raise WritingEnded("the client was closed", is_uncertain=False) from None
            except KafkaError as problem:
                if problem.code in _MOVED:
                    self._coordinators.forget(CoordinatorKind.TRANSACTION, settings.transactional_id)
                if not problem.retriable and failures == 0:
                    _log.error(
                        "cannot lead: a producer id for the transactional id %s is refused: %s",
                        settings.transactional_id,
                        problem,
                    )
            await world.sleep(self._cluster.backoff.after(failures, world.entropy))
            failures += 1

    def _check(self, number: int) -> None:
        if number != self._number:
            raise WritingEnded("another registry leads", is_uncertain=False)

    # --- batches ---

    async def _write(self, number: int) -> None:
        while number == self._number and self._waiting and not self._under_way:
            self._under_way = self._next_entries()
            entries = self._under_way
            records = [record for entry in entries for record in entry.records]
            try:
                base_offset = await self._send(number, self._batch(entries))
            except WritingEnded:
                return
            except KafkaError as problem:
                if number != self._number:
                    return
                if problem.code in _TOO_LARGE and len(entries) > 1 and not self._is_uncertain:
                    self._take_less(sum(entry.size for entry in entries))
                    self._waiting.extendleft(reversed(entries))
                    self._under_way = []
                    continue
                self._fail(problem)
                return
            if number != self._number:
                return
            self.batches += 1
            self._sequence = (self._sequence + len(records)) & 0x7FFFFFFF
            self._under_way = []
            offset = base_offset
            for entry in entries:
                offset += len(entry.records)
                entry.written.resolve_if_waiting(offset - 1)

    def _next_entries(self) -> list[_Entry]:
        entries = [self._waiting.popleft()]
        size = entries[0].size
        while self._waiting and size + self._waiting[0].size <= self._most_bytes:
            size += self._waiting[0].size
            entries.append(self._waiting.popleft())
        return entries

    def _take_less(self, refused: int) -> None:
        """A batch of several records was not taken: half as much goes into the next ones."""
        self._most_bytes = refused // 2
        self._refused_until_s = self._cluster.world.now_s() + _REFUSED_S

    def _fail(self, problem: KafkaError) -> None:
        """The term cannot continue: it was fenced, or the log is not as it should be."""
        uncertain = self._is_uncertain
        why = str(problem)
        if problem.code in _TOO_LARGE and len(self._under_way) == 1:
            entry = self._under_way[0]
            if len(entry.records) > 1:
                self._take_less(entry.size)
            else:
                self._refused_bytes = entry.size
                self._refused_until_s = self._cluster.world.now_s() + _REFUSED_S
        self._number += 1
        under_way, self._under_way = self._under_way, []
        waiting, self._waiting = self._waiting, deque()
        self.on_ended(why)  # First: who waits for these must find the term over, and not decide by it once more.
        for entry in under_way:
            entry.written.reject_if_waiting(_ended(problem, uncertain))
        for entry in waiting:
            entry.written.reject_if_waiting(WritingEnded(why, is_uncertain=False))

    def _batch(self, entries: Iterable[_Entry]) -> bytes:
        builder = BatchBuilder(producer_id=self._producer_id, producer_epoch=self._epoch, base_sequence=self._sequence)
        for entry in entries:
            keys = [record.key for record in entry.records]
            builder.extend(entry.timestamp_ms, keys, [record.value for record in entry.records], None)
        return bytes(builder.build())

    async def _send(self, number: int, batch: bytes) -> int:
        """The base offset of the batch, which is sent until it is answered. Raises `KafkaError` if that is final."""
        world = self._cluster.world
        failures = 0
        self._is_uncertain = False
        while True:
            while not self._may_write():
                self._check(number)
                await world.sleep(100)
            self._check(number)
            try:
                return await self._send_once(batch)
            except ClientClosed:
                raise WritingEnded("the client was closed", is_uncertain=True) from None
            except KafkaError as problem:
                if not problem.retriable or problem.code in _NEXT_EPOCH:
                    raise
                self._is_uncertain = True
                self._cluster.refresh()
            await world.sleep(self._cluster.backoff.after(failures, world.entropy))
            failures += 1

    async def _send_once(self, batch: bytes) -> int:
        timeout_ms = self._settings.request_timeout_ms
        deadline_s = self._cluster.world.now_s() + timeout_ms / 1000
        leader = await self._cluster.leader_of(self._partition, deadline_s)
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=self._partition.topic,
                    partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)],
                )
            ],
        )
        response: Any = await self._cluster.ask(leader.node_id, request, timeout_ms=timeout_ms, newest=_LAST_WITH_NAMES)
        answered = response.responses[0].partition_responses[0]
        if answered.error_code:
            raise error_for(answered.error_code, answered.error_message)
        return int(answered.base_offset)


class TooLarge(WritingEnded):
    """A record is larger than the topic takes."""


def _size(records: Iterable[Record]) -> int:
    return sum(len(one.key) + len(one.value or b"") + _RECORD_OVERHEAD for one in records)


def _ended(problem: KafkaError, uncertain: bool) -> WritingEnded:
    if problem.code in _TOO_LARGE:
        return TooLarge(str(problem), is_uncertain=False)
    return WritingEnded(str(problem), is_uncertain=uncertain)
