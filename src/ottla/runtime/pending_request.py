"""A request that a client waits for: its place in the row of replies, and the one reply that it gets.

Whatever goes wrong with it ends here. An exception in the handler, or in what was parked for later, comes to `fail`; a
reply that cannot be encoded is found in `respond`. Both answer UNKNOWN_SERVER_ERROR where the API has a place for it,
as Apache Kafka does, and else close the connection. A second reply changes nothing: the first has its place in the row.
"""

from typing import TYPE_CHECKING, Any

from ottla.apis.error_responses import error_response
from ottla.base.errors import OttlaError, RemoteProtocolError
from ottla.base.ports import Buffer
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.runtime.outbox import Region, pin_all, release
from ottla.runtime.request import RequestContext
from ottla.runtime.session import Metering
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_response_parts
from ottla.wire.message import Message
from ottla.wire.messages import RequestHeader

if TYPE_CHECKING:
    from ottla.runtime.connection import Connection

# A request keeps its message for the error that it may have to be answered with. Of one that is larger than this too
# much would have to be repeated: its client is hung up on instead.
MOST_BYTES_TO_REPEAT = 4 << 20

Parts = list[Buffer | Region]


class SecondReply(OttlaError):
    """A handler has answered a request twice: a bug, and of no consequence to the client."""


class PendingRequest(RequestContext):
    """See the module. It is the context that handlers are given: one object for every request, not two.

    `message` is None if its version is not known, and when it has its reply. A connection makes them like one that it
    keeps (`blank`): most of what a request has, all of its connection have.
    """

    __slots__ = ("_connection", "_worked_s", "message", "parts")

    def __init__(self, connection: "Connection", header: RequestHeader, message: Message | None, size: int) -> None:
        self.api_key = header.request_api_key
        self.api_version = header.request_api_version
        self.correlation_id = header.correlation_id
        self.client_id = header.client_id
        self.connection = connection.session.client
        self.received_s = connection.session.active_s
        self.size = size
        self.may_use = None
        self.message = message
        self.parts: Parts | None = None
        self._connection = connection
        self._worked_s: float | None = None

    @classmethod
    def blank(cls, connection: "Connection") -> "PendingRequest":
        return cls(connection, RequestHeader(), None, 0)

    def go_through(self, steps: Steps, *, in_order: bool = True) -> None:
        self._connection.go_through(self, steps, in_order=in_order)

    @property
    def worked_s(self) -> float:
        """Until it was left to wait, or until now. What others had of the thread before it does not count."""
        if self._worked_s is not None:
            return self._worked_s
        server = self._connection.server
        return server.now_s() - max(self.received_s, server.handled_s)

    def on_left_waiting(self) -> None:
        """Its handler has returned, and its reply will come later: time that passes until then is not its own."""
        self._worked_s = self.worked_s

    def respond(self, message: Message | None, version: int | None = None) -> None:
        """See `Respond`. In the version that the client has asked in, unless another is given."""
        connection = self._connection
        if self.parts is not None:
            if self.connection.is_open:
                connection.server.on_fault(self, SecondReply("answered twice"))
            return
        if connection.server.metering is not None:
            self._throttle(connection.server.metering, message)
        parts: Any = []
        if message is not None and self.connection.is_open:
            try:
                parts = encode_response_parts(
                    message, self.api_version if version is None else version, self.correlation_id
                )
                if len(parts) > 1:  # The first part is bytes: it has the header.
                    parts = pin_all(parts)
            except Exception as problem:
                self.fail(problem)
                return
        self.parts = parts
        self.message = None
        connection.on_answered(self, parts)

    def _throttle(self, metering: Metering, message: Message | None) -> None:
        """The reply leaves at once and tells the client to wait; what it sends meanwhile waits here (KIP-219)."""
        throttle_ms = metering.charge(self, message)
        if throttle_ms > 0:
            if message is not None and hasattr(message, "throttle_time_ms"):
                message.throttle_time_ms = throttle_ms
            self._connection.mute(throttle_ms / 1000)

    def fail(self, problem: Exception) -> None:
        """An exception came out of work for this request. Its client gets the error, and no other notices."""
        connection = self._connection
        if self.connection.paused_by is self:
            self.connection.resume()
        if isinstance(problem, RemoteProtocolError):
            connection.hang_up(problem)
            return
        connection.server.on_fault(self, problem)
        if self.parts is not None:
            return
        parts: Any = None
        try:
            reply = self._make_error_reply()
            if reply is not None:
                parts = encode_response_parts(reply, self.api_version, self.correlation_id)
        except Exception:  # What the client sent cannot even be repeated to it.
            parts = None
        self.parts = parts or []
        self.message = None
        connection.on_answered(self, self.parts)
        if parts is None:
            connection.close()

    def _make_error_reply(self) -> Message | None:
        if self.message is None or self.size > MOST_BYTES_TO_REPEAT:
            return None
        return error_response(self.message, self.api_version, ErrorCode.UNKNOWN_SERVER_ERROR)

    def abandon(self) -> None:
        """The client has gone: what would have been sent is let go of."""
        for part in self.parts or ():
            release(part)

    def drop(self) -> None:
        """The client has gone, and the rest of the work for it is not done: it takes no room among those that wait."""
        if self.parts is None:
            self.parts, self.message = [], None
            self._connection.on_answered(self, [])


class GivenReply:
    """The place of bytes that are no request of the protocol: a bare token of SASL, and its answer."""

    __slots__ = ("parts",)

    def __init__(self, reply: bytes) -> None:
        self.parts: Parts = [reply]

    def abandon(self) -> None:
        """There are no files in it."""
