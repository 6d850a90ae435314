"""A client's request until its one outcome, and why it may have none but a failure."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Union

from ottla.base.errors import OttlaError
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.wire.request_forms import Filled

NEVER: Final = float("inf")

Ask = Message | Callable[[int], Union[Message, "Filled"]]
"""A request, or what makes one for the version that is chosen."""


class ConnectionFailed(OttlaError):
    """A connection could not be made, or has ended: the requests on it have failed.

    `cause` is what the network said. `wants` is what the other side may want and did not get, "TLS" or "SASL": it ended
    the connection at a moment at which a listener that wants it does. Nothing more is known.
    """

    def __init__(self, message: str, *, cause: OSError | None = None, wants: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.wants = wants


class TlsExpected(ConnectionFailed):
    """The other side has answered in TLS to a client that does not speak it."""


class OtherProtocol(ConnectionFailed):
    """What listens at the address speaks something else."""


class BrokeProtocol(ConnectionFailed):
    """The other side has sent what nobody asked for, or what cannot be read. It works for now over another connection,
    and somebody should know all the same.
    """


class NoAnswer(ConnectionFailed):
    """A response did not come in time, so none behind it will."""


class Refused(ConnectionFailed):
    """The node does not say what it serves or does not let the client in, or the client does not trust it."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message or ErrorCode(code).name)
        self.code = code
        self.message = message
        """In the node's words, or in ours."""


class RequestLate(OttlaError):
    """Its time is over. Its connection may be as good as before."""


class NotConnected(RequestLate, ConnectionFailed):
    """Its time was over before the node was connected to again: `why` there is no connection."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class OpenRequest:
    """`newest` limits the version. A Produce with acks=0 has no response: it is over when its bytes have left.

    At `due_s` the request fails by itself, and a response that comes later is dropped. At `dead_s` the connection is
    given up for it, once that has been open: a node answers in order, so nothing behind this request would be answered.
    """

    __slots__ = ("api_key", "dead_s", "due_s", "has_response", "newest", "request")

    def __init__(
        self,
        api_key: int,
        request: Ask,
        newest: int | None,
        *,
        has_response: bool = True,
        due_s: float = NEVER,
        dead_s: float = NEVER,
    ) -> None:
        self.api_key = api_key
        self.request = request
        self.newest = newest
        self.has_response = has_response
        self.due_s = due_s
        self.dead_s = dead_s

    def answer(self, response: Any) -> None:
        """The response has come; None for a request that has none."""
        raise NotImplementedError

    def fail(self, problem: Exception) -> None:
        """No response will come. `problem` is of this module, of encoding, or what its connection was closed for."""
        raise NotImplementedError
