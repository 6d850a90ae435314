"""A request on its way from a connection to the handler that answers it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ottla.base.errors import RemoteProtocolError
from ottla.base.lent import Lent
from ottla.runtime.attribution import Attributed, current
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.runtime.pending_request import LateReply


class Line(Protocol):
    """The connection itself, as far as handlers have to do with it."""

    def on_resumed(self) -> None: ...
    def hang_up(self, problem: RemoteProtocolError) -> None: ...


class Repeated(Protocol):
    """Requests of one API that are like one before them on their connection, and need not be decoded."""

    api_key: int
    api_version: int

    def __call__(self, frame: Lent | memoryview) -> "bytes | LateReply | Handler | None":
        """The reply to the request in that frame, or its place if the reply comes later. None, and nothing has
        happened, if it is not such a request. A handler, which is to answer the request when it has been decoded, if it
        turned out to need more.
        """


@dataclass(slots=True)
class ClientConnection:
    """Who is on the other end. `software_*` come from ApiVersions (KIP-511).

    A handler that needs time before the requests behind its own may be handled pauses the connection, and resumes it.
    If its request fails meanwhile, the connection is resumed for it. `repeated` is left, under the key of its API, by a
    handler that knows how to answer requests like its own without their being decoded. `is_token_authenticated`: by a
    delegation token (KIP-48), with which no other token may be asked for. `charged_to`: the principal and client id
    whose quotas its last request counted against, if it did. `line` is None where there is no connection: the node
    itself writes.
    """

    connection_id: int
    listener: str
    client_host: str
    principal: str = "User:ANONYMOUS"
    software_name: str = "unknown"
    software_version: str = "unknown"
    is_open: bool = True
    is_paused: bool = False
    line: Line | None = None
    paused_by: Attributed | None = None
    repeated: dict[int, Repeated] = field(default_factory=dict)
    is_token_authenticated: bool = False
    charged_to: tuple[str, str] | None = None

    def pause(self) -> None:
        self.is_paused = True
        self.paused_by = current()

    def resume(self) -> None:
        self.is_paused = False
        self.paused_by = None
        if self.line is not None:
            self.line.on_resumed()

    def resume_with(self, go_on: Callable[[], None]) -> None:
        """Does what the connection was paused for, and resumes it: unless that pauses it for reasons of its own."""
        self.is_paused = False
        self.paused_by = None
        try:
            go_on()
        finally:
            if not self.is_paused:
                self.resume()

    def hang_up(self, problem: RemoteProtocolError) -> None:
        """Closes the connection, at any time: there is no other way to tell the client."""
        if self.line is not None:
            self.line.hang_up(problem)


@dataclass(slots=True)
class RequestContext:
    """Everything about a request but its message. `received_s` is a reading of the loop's clock, `size` the bytes that
    the request had.

    Nobody changes one, but for the check that its client may ask this (`may_use`). It is not frozen because there is
    one for every request, and frozen ones are slow to make.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection: ClientConnection
    received_s: float
    size: int = 0
    may_use: Callable[[str], bool] | None = None
    """Whether the client may use a topic in the way that the request is about, where the topics are not in the request:
    those of a fetch session, or those that a pattern finds. None: all of them.
    """

    @property
    def worked_s(self) -> float:
        """How long the node's thread has worked on the request. Here, where there is no connection, nobody counts."""
        return 0.0

    def go_through(self, steps: Steps, *, in_order: bool = True) -> None:
        """Does the work of the request in steps, between which others may have their turn (`large_requests`).

        Here, where there is no connection, one after the other. A connection takes its time, and is paused meanwhile,
        unless the requests behind this one may overtake it.
        """
        for wait in steps:
            if wait is not None:
                wait.when_over(lambda: self.go_through(steps, in_order=in_order))
                return


Respond: TypeAlias = Callable[[Message | None], None]
"""Gives the reply out, exactly once, now or later, on the loop's thread; None where the protocol has no reply (acks=0).

Replies leave a connection in the order of its requests, whatever the order in which they are given out here. It never
raises: a reply that cannot be encoded becomes one that says so. The first reply counts; another is a fault, and logged.
"""

Handler: TypeAlias = Callable[[RequestContext, Message, Respond], None]
"""Answers a request. Records in the message are views that are gone when it returns. A handler that has very much to do
does it in steps: see `RequestContext.go_through`.

`RefusedRequest` closes the connection. Any other exception is a bug: it is logged, and its client is told
UNKNOWN_SERVER_ERROR.
"""


class RefusedRequest(RemoteProtocolError):
    """A request that has no reply but to hang up: an API or version that is not served here, or not to this client."""
