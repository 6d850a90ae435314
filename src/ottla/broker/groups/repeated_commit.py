"""A commit like one before it on its connection, with other offsets: taken without being decoded.

Theory of operation. A consumer sends the same commit over and over, with other offsets in it. After one was decoded and
taken, it is known where in such a frame the offsets are, and what is around them. A frame of that size with the same
around its offsets is the same commit. It is handed to the group's coordinator as numbers (`KnownCommit`). The reply is
the same but for its correlation id, and is put together when the commit is in the log. Any other frame, and a commit
that the coordinator would not take at once, is left to the usual way.

What is known is forgotten when a right, a limit or a topic goes (`RepeatedRequests.forget`): then the next commit is
decoded, and all of it is asked again.
"""

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import ZERO_UUID
from ottla.base.lent import Lent
from ottla.broker.coordination.coordinated_partition import CoordinatedPartition
from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.gathered_batch import size_of
from ottla.broker.partitions.repeated_requests import LearnedNumbers, RepeatedRequests
from ottla.machines.group.known_commits import KnownCommit
from ottla.machines.group.offset_commands import commit_error
from ottla.runtime.pending_request import LateReply
from ottla.runtime.request import RequestContext
from ottla.wire.apis import ApiKey
from ottla.wire.around_numbers import A_NUMBER, layout_around
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, encode_response
from ottla.wire.messages import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from ottla.machines.group.group_coordinator import GroupCoordinator

_API_KEY = ApiKey.OFFSET_COMMIT.value
_FIRST_WITH_LEADER_EPOCHS = 6
FIRST_WITH_TOPIC_IDS = 10
_MOST_PARTITIONS = 256
_SIZE, _CORRELATION_ID = 4, 4
_AN_EPOCH = 0x2D4B_0F61
_COMMITTED = Struct(">qi")
_OF_ONE_PARTITION = 6  # start, correlation id, and around the offset and the leader epoch what comes before and after


class _Known(NamedTuple):
    """A commit that was taken: the coordinator that took it, and the reply around its correlation id."""

    start: bytes
    commit: KnownCommit
    records_size: int
    led: "CoordinatedPartition[GroupCoordinator]"
    api_version: int
    reply_size: bytes
    reply: bytes


class CommitReply(LateReply):
    """The place of a commit in its connection's row, and what is told when the commit is in the log."""

    __slots__ = ("_correlation_id", "_known")

    def __init__(self, known: _Known, correlation_id: bytes) -> None:
        # As its base class does, without a call: there is one for every commit.
        self.api_key = _API_KEY
        self.api_version = known.api_version
        self.connection = self.parts = None
        self._known = known
        self._correlation_id = correlation_id

    def tell(self) -> None:
        known = self._known
        self.parts = [known.reply_size + self._correlation_id + known.reply]
        if self.connection is not None:
            self.connection.on_late_reply(self)

    def refuse(self, error: ErrorCode, /) -> None:
        known, version = self._known, self.api_version
        frame = self._correlation_id + known.reply
        correlation_id, response = decode_response(OffsetCommitResponse, frame, version)
        for topic in response.topics:
            for partition in topic.partitions:
                partition.error_code = commit_error(error)
        self.give(encode_response(response, version, correlation_id))


class RepeatedCommit(LearnedNumbers):
    """What a connection has learned. Called with a frame: see `request.Repeated`."""

    __slots__ = ()

    api_key = _API_KEY
    api_version = 0

    def __call__(self, frame: Lent | memoryview) -> CommitReply | None:
        layout = self._layouts.get(len(frame))
        if layout is None:
            return None
        found = layout.unpack(frame)
        known: _Known | None = self._known.get(found[2::3])
        if known is None or known.start != found[0]:
            return None
        reply = CommitReply(known, found[1])
        committed = (found[3:5],) if len(found) == _OF_ONE_PARTITION else zip(found[3::3], found[4::3], strict=True)
        if not known.led.submit_known(known.commit, committed, known.records_size, reply):
            return None
        self._lessons = 0
        return reply

    def learn(
        self,
        context: RequestContext,
        request: OffsetCommitRequest,
        response: OffsetCommitResponse,
        led: "CoordinatedPartition[GroupCoordinator]",
    ) -> None:
        """Such a commit was taken, and is about to be answered. `request` is of no use any more."""
        if not self._begin_lesson():
            return
        version = context.api_version
        commit = KnownCommit(request, version)
        layout, frame = _layout_of(request, version, context.client_id)
        reply = encode_response(response, version, 0)
        start, _, *around = layout.unpack(frame)
        records_size = size_of(commit.sample())
        known = _Known(start, commit, records_size, led, version, reply[:_SIZE], reply[_SIZE + _CORRELATION_ID :])
        self._remember(len(frame), layout, tuple(around[::3]), known)


def _layout_of(request: OffsetCommitRequest, version: int, client_id: str | None) -> tuple[Struct, bytes]:
    """Where the offsets are in a frame of such a commit, as most clients encode it, and a frame of it."""
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    for number, partition in enumerate(partitions):
        partition.committed_offset, partition.committed_leader_epoch = A_NUMBER + number, _AN_EPOCH
    for topic in request.topics:
        if version >= FIRST_WITH_TOPIC_IDS:
            topic.name = ""
        else:
            topic.topic_id = ZERO_UUID
    frame = encode_request(request, version, 0, client_id)[_SIZE:]
    markers = [_COMMITTED.pack(A_NUMBER + number, _AN_EPOCH) for number in range(len(partitions))]
    return layout_around(frame, markers, "qi"), frame


def learn(
    repeated_requests: RepeatedRequests,
    groups: Groups,
    context: RequestContext,
    request: OffsetCommitRequest,
    response: OffsetCommitResponse,
) -> None:
    """A commit is about to be answered. If all of it was taken, others like it may be known by it."""
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    led = groups.find(request.group_id)
    if (
        led is None
        or context.api_version < _FIRST_WITH_LEADER_EPOCHS
        or len(partitions) > _MOST_PARTITIONS
        or any(partition.committed_metadata for partition in partitions)
        or any(answer.error_code for topic in response.topics for answer in topic.partitions)
    ):
        return
    client = context.connection
    repeated = client.repeated.get(RepeatedCommit.api_key)
    if not isinstance(repeated, RepeatedCommit):
        repeated = client.repeated[RepeatedCommit.api_key] = RepeatedCommit(repeated_requests, client)
    repeated.learn(context, request, response, led)
