"""A produce request like one before it on its connection, with another batch: answered without being decoded.

Theory of operation. A producer sends the same request over and over: the same client id, acks and timeout, to the same
partition. After an ordinary one (`ordinary_batch`) was answered, what is around its records is known, and so is the
reply, but for correlation id and offsets. A frame with the same around its records is the same request: its batch is
checked and appended, and the reply is put together from bytes. Any other frame is left to the usual way. If an append
does not go as it mostly does, the request is decoded after all, and a `Produce` goes on with it.

What is known is shared by the connections of a principal from one host (`Partitions.repeated_requests`). A connection
only knows where in its frames the records are (`RepeatedProduce`).
"""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple, TypeAlias

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.lent import Lent
from ottla.broker.data.ordinary_batch import USES_TOPIC_IDS, append_ordinary, check_ordinary
from ottla.broker.data.produce_replies import taken_reply
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import announce
from ottla.log.outcomes import Appended
from ottla.records.header import BatchHeader
from ottla.runtime.request import Handler, RequestContext
from ottla.wire.apis import ApiKey
from ottla.wire.around_numbers import A_NUMBER
from ottla.wire.around_records import around_records, split
from ottla.wire.frame import encode_response_parts
from ottla.wire.messages import ProduceRequest

# What is known is forgotten when there is more of it.
_MOST_KNOWN = 4096
# A client whose requests change their shape so often is not learned from again.
_MOST_LESSONS = 256
# Where these are in a reply, the numbers of another belong.
_AN_OFFSET, _A_START = A_NUMBER, A_NUMBER + 1
_INT64 = Struct(">q")
_SIZE, _CORRELATION_END = 4, 8

GoOn: TypeAlias = Callable[[Partitions, Partition, BatchHeader, Appended], Handler]
"""What answers a request whose batch has been handed to its log, and has not just been taken."""


class _Known(NamedTuple):
    """A request that was answered: its partition, its acks, and the reply around correlation id and offsets.

    `topic_id` is None if the request names its topic. There may be another topic of that name by now.
    """

    name: TopicPartition
    topic_id: Uuid | None
    api_version: int
    acks: int
    reply: Struct
    pieces: tuple[bytes, bytes, bytes, bytes]


class RepeatedProduce:
    """What a connection has learned. Called with a frame: see `request.Repeated`."""

    __slots__ = ("_all_known", "_at", "_compact", "_go_on", "_lessons", "_partitions", "api_version")

    api_key = ApiKey.PRODUCE.value

    def __init__(self, partitions: Partitions, go_on: GoOn, principal: str, host: str) -> None:
        self._partitions = partitions
        self._all_known = partitions.repeated_requests.of(principal, host)
        self._go_on = go_on
        self._lessons = 0
        self._at = 0
        self._compact = False
        self.api_version = 0

    def learn(self, context: RequestContext, request: ProduceRequest, partition: Partition) -> None:
        """An ordinary request, which is not as those before, is being answered."""
        if self._lessons >= _MOST_LESSONS or not request.acks:
            return
        self._lessons += 1
        around = around_records(request, context.api_version, context.client_id)
        known = _known(request, partition, context.api_version)
        if around is None or known is None:
            return
        self._at, self._compact = around.at, around.compact
        all_known = self._all_known
        if len(all_known) >= _MOST_KNOWN:
            all_known.clear()
        all_known[around.surroundings] = known

    def __call__(self, frame: Lent | memoryview) -> bytes | Handler | None:
        found = split(frame, self._at, self._compact)
        if found is None:
            return None
        surroundings, correlation_id, records = found
        partitions = self._partitions
        known: _Known | None = self._all_known.get(surroundings)
        if known is None:
            return None
        name, topic_id, self.api_version, acks, reply, (size, before, between, after) = known
        partition = partitions.get(name)
        if partition is None or (topic_id is not None and topic_id != partition.topic_id):
            return None
        header = check_ordinary(partitions, partition, acks, records)
        if header is None:
            return None
        outcome = append_ordinary(partitions, partition, records, header)
        if isinstance(outcome, Appended):
            return self._go_on(partitions, partition, header, outcome)
        if partition.waiting:
            announce(partitions, partition)
        return reply.pack(size, correlation_id, before, outcome, between, partition.log.log_start_offset, after)


def _known(request: ProduceRequest, partition: Partition, version: int) -> _Known | None:
    """What is to be known of such a request. Where its reply has the offsets is found by looking for them."""
    (whole,) = encode_response_parts(taken_reply(request, version, _AN_OFFSET, _A_START), version, 0)
    assert isinstance(whole, bytes), "a reply to Produce has no file in it"
    base_at, start_at = whole.find(_INT64.pack(_AN_OFFSET)), whole.find(_INT64.pack(_A_START))
    if not _CORRELATION_END < base_at < start_at:
        return None  # Replies of the oldest versions do not tell where the log begins.
    pieces = whole[:_SIZE], whole[_CORRELATION_END:base_at], whole[base_at + 8 : start_at], whole[start_at + 8 :]
    size, before, between, after = map(len, pieces)
    layout = Struct(f">{size}si{before}sq{between}sq{after}s")
    topic_id = partition.topic_id if version >= USES_TOPIC_IDS else None
    return _Known(partition.name, topic_id, version, request.acks, layout, pieces)


def learn(
    partitions: Partitions,
    context: RequestContext,
    request: ProduceRequest,
    partition: Partition,
    go_on: GoOn,
) -> None:
    """An ordinary request is being answered: others like it may be known by it, on its connection."""
    client = context.connection
    repeated = client.repeated.get(RepeatedProduce.api_key)
    if not isinstance(repeated, RepeatedProduce):
        repeated = RepeatedProduce(partitions, go_on, client.principal, client.client_host)
        client.repeated[RepeatedProduce.api_key] = repeated
    repeated.learn(context, request, partition)
