"""A fetch like one before it on its connection, from another offset: answered without being decoded.

Theory of operation. A consumer of one partition that has no session sends the same fetch over and over, each from where
the one before has ended. After an ordinary one (`ordinary_fetch`) was answered, it is known where in such a frame the
offset is and what is around it, and so is the reply, but for its numbers and its records. A frame of that size with the
same around its offset is the same fetch: if what it asks for is a little, and in memory, the reply is put together from
bytes. If it asks for what comes next at the end of its partition, it waits there, and keeps its frame. Whatever
turns out to be another matter is decoded after all.
"""

from struct import Struct
from typing import NamedTuple

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.lent import Lent
from ottla.broker.data.fetch_replies import numbered_data, reply_of_one
from ottla.broker.data.ordinary_fetch import USES_TOPIC_IDS, read_in_memory
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import NO_EPOCH, Partition
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.broker.partitions.repeated_requests import LearnedNumbers
from ottla.runtime.outbox import LITTLE_BYTES, read_from_memory
from ottla.runtime.pending_request import LateReply
from ottla.runtime.request import ClientConnection, Handler, RequestContext
from ottla.wire.apis import ApiKey
from ottla.wire.around_numbers import A_NUMBER, CORRELATION_END, START, layout_around
from ottla.wire.frame import decode_request, encode_request, encode_response_parts
from ottla.wire.messages import FetchRequest
from ottla.wire.varint import encode_varint

_API_KEY = ApiKey.FETCH.value
_FIRST_WITH_LOG_STARTS = 5
_SIZE, _CORRELATION_ID, _LENGTH = 4, 4, 4
_INT64, _NUMBERS = Struct(">q"), Struct(">qqq")
# Where these are in a reply, the offsets and the records of another belong.
_SOME_NUMBERS = A_NUMBER, A_NUMBER + 1, A_NUMBER + 2
_SOME_RECORDS = _INT64.pack(A_NUMBER + 3)


class _Known(NamedTuple):
    """A fetch that was answered: what it asks for, and the reply around its numbers and its records.

    `topic_id` is None if the request names its topic. There may be another topic of that name by now.
    """

    start: bytes
    name: TopicPartition
    topic_id: Uuid | None
    api_version: int
    leader_epoch: int
    max_bytes: int
    min_bytes: int
    max_wait_ms: int
    isolation_level: int
    head: Struct
    before: bytes
    between: bytes
    after: bytes
    has_compact_length: bool

    def suits(self, partition: Partition) -> bool:
        """Whether there is nothing to say about the partition but what is in it."""
        return (
            partition.state is not None
            and (self.topic_id is None or self.topic_id == partition.topic_id)
            and (self.leader_epoch == NO_EPOCH or self.leader_epoch == partition.leader_epoch)
        )

    def read(self, partitions: Partitions, partition: Partition, offset: int, correlation_id: bytes) -> bytes | None:
        """The reply; None if there is nothing, too little or too much to read, or something that is not in memory."""
        log = partition.log
        found = read_in_memory(partitions, partition, offset, self.max_bytes, self.isolation_level)
        if found is None:
            return None
        size = found.size
        if size > LITTLE_BYTES or (size < self.min_bytes and self.max_wait_ms > 0):
            return None
        records = found.data or read_from_memory(found)
        if not records:
            return None
        traffic, head, after = partition.traffic, self.head, self.after
        traffic.fetch_requests += 1
        traffic.bytes_out += size
        length = encode_varint(size + 1) if self.has_compact_length else size.to_bytes(_LENGTH, "big")
        numbers = log.high_watermark, log.last_stable_offset, log.log_start_offset
        whole = head.size - _SIZE + len(length) + size + len(after)
        return b"".join((head.pack(whole, correlation_id, self.before, *numbers, self.between), length, records, after))


class _Waiting(Operation):
    """A fetch at the end of its partition. `reply` is its place among the replies of its connection."""

    __slots__ = ("_fetch", "_frame", "_known", "_offset", "_partition", "reply")

    def __init__(
        self, fetch: "RepeatedFetch", known: _Known, partition: Partition, offset: int, frame: Lent | memoryview
    ) -> None:
        super().__init__(fetch.client)
        self.reply = LateReply(_API_KEY, known.api_version)
        self._fetch = fetch
        self._known = known
        self._partition = partition
        self._offset = offset
        self._frame = bytes(frame)

    def is_done(self, place: Place) -> bool:
        partition, known = self._partition, self._known
        return partition.end_for_readers(known.isolation_level) != self._offset or not known.suits(partition)

    def complete(self) -> None:
        known, partition, frame, partitions = self._known, self._partition, self._frame, self._fetch.partitions
        if known.suits(partition) and partitions.holds(partition):
            reply = known.read(partitions, partition, self._offset, frame[START:CORRELATION_END])
            if reply is not None:
                self.reply.give(reply)
                return
        self._fetch.decode(frame, self.reply)


class RepeatedFetch(LearnedNumbers):
    """What a connection has learned. Called with a frame: see `request.Repeated`. `go_on` answers what is decoded."""

    __slots__ = ("_go_on", "_is_known", "api_version", "client", "partitions")

    api_key = _API_KEY

    def __init__(self, partitions: Partitions, client: ClientConnection, go_on: Handler) -> None:
        super().__init__(partitions.repeated_requests, client)
        self.partitions = partitions
        self.client = client
        self.api_version = 0
        self._go_on = go_on
        self._is_known = False
        """Of the last frame: there is nothing to be learned from it, even if it has to be decoded."""

    def __call__(self, frame: Lent | memoryview) -> bytes | LateReply | None:
        self._is_known = False
        layout = self._layouts.get(len(frame))
        if layout is None:
            return None
        start, correlation_id, before, offset, after = layout.unpack(frame)
        known: _Known | None = self._known.get((before, after))
        if known is None or known.start != start:
            return None
        partition = self.partitions.get(known.name)
        if partition is None or not known.suits(partition):
            return None
        self._lessons, self.api_version, self._is_known = 0, known.api_version, True
        is_at_end = offset == partition.end_for_readers(known.isolation_level)
        if is_at_end and known.min_bytes == 1 and known.max_wait_ms > 0:
            waiting = _Waiting(self, known, partition, offset, frame)
            self.partitions.purgatory.park(waiting, (partition,), known.max_wait_ms)
            waiting.request = waiting.reply
            return waiting.reply
        return known.read(self.partitions, partition, offset, correlation_id)

    def decode(self, frame: bytes, reply: LateReply) -> None:
        """Answers a fetch that has waited, as it would be answered if it came now and did not wait.

        It was allowed when it came. Nothing is learned from it: it may not be allowed any more.
        """
        self._is_known = True
        header, request = decode_request(frame)
        assert isinstance(request, FetchRequest)
        request.max_wait_ms = 0
        version, correlation_id = header.request_api_version, header.correlation_id
        context = RequestContext(_API_KEY, version, correlation_id, header.client_id, self.client, reply.received_s)
        self._go_on(context, request, lambda message: reply.respond(message, correlation_id))

    def learn(self, context: RequestContext, request: FetchRequest, partition: Partition, max_bytes: int) -> None:
        """An ordinary fetch of that partition has come, and is not as those before."""
        if self._is_known or context.api_version < _FIRST_WITH_LOG_STARTS or not self._begin_lesson():
            return
        layout, frame = _layout_of(request, context.api_version, context.client_id)
        start, _, before, _, after = layout.unpack(frame)
        known = _known(request, partition, context.api_version, max_bytes, start)
        self._remember(len(frame), layout, (before, after), known)


def _layout_of(request: FetchRequest, version: int, client_id: str | None) -> tuple[Struct, bytes]:
    """Where the offset is in a frame of such a fetch, as most clients encode it, and a frame of it."""
    asked = request.topics[0].partitions[0]
    offset, asked.fetch_offset = asked.fetch_offset, A_NUMBER
    frame = encode_request(request, version, 0, client_id)[_SIZE:]
    asked.fetch_offset = offset
    return layout_around(frame, [_INT64.pack(A_NUMBER)], "q"), frame


def _known(request: FetchRequest, partition: Partition, version: int, max_bytes: int, start: bytes) -> _Known:
    (topic,) = request.topics
    (asked,) = topic.partitions
    by_id = version >= USES_TOPIC_IDS
    data = numbered_data(asked.partition, *_SOME_NUMBERS, _SOME_RECORDS)
    data.aborted_transactions = [] if request.isolation_level else None
    parts = encode_response_parts(reply_of_one(topic, data, by_id=by_id), version, 0)
    whole = b"".join(parts)  # type: ignore[arg-type]
    numbers_at, records_at = whole.index(_NUMBERS.pack(*_SOME_NUMBERS)), whole.index(_SOME_RECORDS)
    is_compact = version in request._schema.flexible
    length_at = records_at - (1 if is_compact else _LENGTH)
    before, between = whole[_SIZE + _CORRELATION_ID : numbers_at], whole[numbers_at + _NUMBERS.size : length_at]
    return _Known(
        start,
        partition.name,
        topic.topic_id if by_id else None,
        version,
        asked.current_leader_epoch,
        min(asked.partition_max_bytes, max_bytes),
        min(request.min_bytes, max_bytes),
        request.max_wait_ms,
        request.isolation_level,
        Struct(f">i{_CORRELATION_ID}s{len(before)}sqqq{len(between)}s"),
        before,
        between,
        whole[records_at + len(_SOME_RECORDS) :],
        is_compact,
    )


def learn(
    partitions: Partitions,
    context: RequestContext,
    request: FetchRequest,
    partition: Partition,
    max_bytes: int,
    go_on: Handler,
) -> None:
    """An ordinary fetch of a partition has come: others like it may be known by it, on its connection."""
    client = context.connection
    repeated = client.repeated.get(_API_KEY)
    if not isinstance(repeated, RepeatedFetch):
        repeated = client.repeated[_API_KEY] = RepeatedFetch(partitions, client, go_on)
    repeated.learn(context, request, partition, max_bytes)
