"""A request that a client waits for: its place in the row of replies, and the one reply that it gets.

Whatever goes wrong with it ends here. An exception in the handler, or in what was parked for later, comes to `fail`; a
reply that cannot be encoded is found in `respond`. Both answer UNKNOWN_SERVER_ERROR where the API has a place for it,
as Apache Kafka does, and else close the connection. A second reply changes nothing: the first has its place in the row.
"""

from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError, RemoteProtocolError
from ottla.base.ports import Buffer
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.runtime.metering import Metering
from ottla.runtime.outbox import Region, pin_all, release
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.error_responses import error_response
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_response_parts
from ottla.wire.message import Message
from ottla.wire.messages import RequestHeader

if TYPE_CHECKING:
    from ottla.runtime.connection import Connection

# A request keeps its message for the error that it may have to be answered with. Of one that is larger than this too
# much would have to be repeated, and kept until then: its client is hung up on instead.
_MOST_BYTES_TO_REPEAT = 4 << 20
_OLDEST = 0

Parts = list[Buffer | Region]


class SecondReply(OttlaError):
    """A handler has answered a request twice: a bug, and of no consequence to the client."""


class PendingRequest(RequestContext):
    """See the module. It is the context that handlers are given: one object for every request, not two."""

    __slots__ = ("_connection", "_is_known", "_message", "_worked_s", "parts")

    def __init__(
        self, connection: "Connection", header: RequestHeader, received_s: float, message: Message | None, size: int
    ) -> None:
        """`message` is None if its version is not known: a reply can then only be of the oldest, which all know."""
        self.api_key = header.request_api_key
        self.api_version = header.request_api_version
        self.correlation_id = header.correlation_id
        self.client_id = header.client_id
        self.connection = connection.session.client
        self.received_s = received_s
        self.size = size
        self.may_use = None
        self.parts: Parts | None = None
        self._connection = connection
        self._is_known = message is not None
        self._worked_s: float | None = None
        self._message = message if size <= _MOST_BYTES_TO_REPEAT else None

    def go_through(self, steps: Steps, *, in_order: bool = True) -> None:
        self._connection.go_through(self, steps, in_order=in_order)

    @property
    def worked_s(self) -> float:
        """Until it was left to wait, or until now. What others had of the thread before it does not count."""
        if self._worked_s is not None:
            return self._worked_s
        server = self._connection.server
        return server.now_s() - max(self.received_s, server.answered_s)

    def on_left_waiting(self) -> None:
        """Its handler has returned, and its reply will come later: time that passes until then is not its own."""
        self._worked_s = self.worked_s

    def respond(self, message: Message | None) -> None:
        """See `Respond`."""
        if self.parts is not None:
            self._connection.server.on_fault(self, SecondReply("answered twice"))
            return
        if self._connection.server.metering is not None:
            self._throttle(self._connection.server.metering, message)
        parts: Any = []
        if message is not None and self.connection.is_open:
            try:
                parts = self._encode(message)
            except Exception as problem:
                self.fail(problem)
                return
        self._give(parts)

    def _throttle(self, metering: Metering, message: Message | None) -> None:
        """The reply leaves at once and tells the client to wait; what it sends meanwhile waits here (KIP-219)."""
        throttle_ms = metering.charge(self, message)
        if throttle_ms > 0:
            if message is not None and hasattr(message, "throttle_time_ms"):
                message.throttle_time_ms = throttle_ms
            self._connection.mute(throttle_ms / 1000)

    def _encode(self, message: Message) -> Parts:
        version = self.api_version if self._is_known else _OLDEST
        parts: Any = encode_response_parts(message, version, self.correlation_id)
        # The first part is bytes: it has the header.
        return parts if len(parts) == 1 else pin_all(parts)

    def _give(self, parts: Parts) -> None:
        self.parts = parts
        self._message = None
        self._connection.on_answered(self)

    def fail(self, problem: Exception) -> None:
        """An exception came out of work for this request. Its client is told, and no other notices."""
        connection = self._connection
        if self.connection.paused_by is self:
            self.connection.resume()
        if isinstance(problem, RemoteProtocolError):
            connection.hang_up(problem)
            return
        connection.server.on_fault(self, problem)
        if self.parts is not None:
            return
        try:
            reply = self._make_error_reply()
            parts = self._encode(reply) if reply is not None else None
        except Exception:  # What the client sent cannot even be repeated to it.
            parts = None
        self._give(parts or [])
        if parts is None:
            connection.close()

    def _make_error_reply(self) -> Message | None:
        if self._message is None:
            return None
        return error_response(self._message, self.api_version, ErrorCode.UNKNOWN_SERVER_ERROR)

    def abandon(self) -> None:
        """The client has gone: what would have been sent is let go of."""
        for part in self.parts or ():
            release(part)


class GivenReply:
    """The place of a request that was answered at once, without being decoded."""

    __slots__ = ("parts",)

    def __init__(self, reply: bytes) -> None:
        self.parts: Parts = [reply]

    def abandon(self) -> None:
        """There are no files in it."""


class LateReply:
    """The place of a request that was taken without being decoded, and is answered later, once.

    Its `connection` is None until that has given it its place; it may be answered before.
    """

    __slots__ = ("api_key", "api_version", "connection", "parts", "received_s", "size")

    connection: "Connection | None"
    received_s: float
    size: int

    def __init__(self, api_key: int, api_version: int) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.connection = None
        self.parts: Parts | None = None

    def give(self, reply: bytes) -> None:
        self.parts = [reply]
        if self.connection is not None:
            self.connection.on_late_reply(self)

    def respond(self, message: Message | None, correlation_id: int) -> None:
        """The reply of a handler, to a request that was decoded after all."""
        assert message is not None, "it waits for a reply"
        parts: Any = encode_response_parts(message, self.api_version, correlation_id)
        self.parts = parts if len(parts) == 1 else pin_all(parts)
        if self.connection is not None:
            self.connection.on_late_reply(self)

    def fail(self, problem: Exception) -> None:
        """An exception came out of work for it. There is nothing left of the request that could be answered."""
        if self.connection is not None:
            self.connection.break_off(problem)

    def abandon(self) -> None:
        """The client has gone: what would have been sent is let go of."""
        for part in self.parts or ():
            release(part)


def raising(problem: Exception) -> Handler:
    """A handler that fails with what went wrong before its request was decoded."""

    def handle(_context: RequestContext, _message: Message, _respond: Respond) -> None:
        raise problem

    return handle
