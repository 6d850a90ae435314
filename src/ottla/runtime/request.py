"""A request on its way from a connection to the handler that answers it."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from ottla.base.errors import RemoteProtocolError
from ottla.runtime.attribution import Attributed, current
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.wire.message import Message


class ConnectionControl(Protocol):
    """The connection itself, as far as handlers have to do with it."""

    def on_paused(self) -> None: ...
    def on_resumed(self) -> None: ...
    def hang_up(self, problem: RemoteProtocolError) -> None: ...


class ClientConnection:
    """Who is on the other end. `software_*` come from ApiVersions (KIP-511).

    A handler that needs time before the requests behind its own may be handled pauses the connection, and resumes it.
    If its request fails meanwhile, the connection is resumed for it. `is_token_authenticated`: by a delegation token
    (KIP-48), with which no other token may be asked for. `charged_to`: the principal and client id whose quotas its
    last request counted against, if it did. `line` is None where there is no connection: the node itself writes.
    """

    __slots__ = (
        "charged_to",
        "client_host",
        "connection_id",
        "is_open",
        "is_paused",
        "is_token_authenticated",
        "line",
        "listener",
        "paused_by",
        "principal",
        "software_name",
        "software_version",
    )

    def __init__(
        self,
        connection_id: int,
        listener: str,
        client_host: str,
        principal: str = "User:ANONYMOUS",
        software_name: str = "unknown",
        software_version: str = "unknown",
        line: ConnectionControl | None = None,
        is_token_authenticated: bool = False,
    ) -> None:
        self.connection_id = connection_id
        self.listener = listener
        self.client_host = client_host
        self.principal = principal
        self.software_name = software_name
        self.software_version = software_version
        self.is_open = True
        self.is_paused = False
        self.line = line
        self.paused_by: Attributed | None = None
        self.is_token_authenticated = is_token_authenticated
        self.charged_to: tuple[str, str] | None = None

    def pause(self) -> None:
        self.is_paused = True
        self.paused_by = current()
        if self.line is not None:
            self.line.on_paused()

    def resume(self) -> None:
        self.is_paused = False
        self.paused_by = None
        if self.line is not None:
            self.line.on_resumed()

    def resume_with(self, proceed: Callable[[], None]) -> None:
        """Does what the connection was paused for, and resumes it: unless that pauses it for reasons of its own."""
        self.is_paused = False
        self.paused_by = None
        try:
            proceed()
        finally:
            if not self.is_paused:
                self.resume()

    def hang_up(self, problem: RemoteProtocolError) -> None:
        """Closes the connection, at any time: there is no other way to tell the client."""
        if self.line is not None:
            self.line.hang_up(problem)


class RequestContext:
    """Everything about a request but its message. `received_s` is a reading of the loop's clock, `size` the bytes that
    the request had.

    Nobody changes one, but for the check that its client may ask this (`may_use`).
    """

    __slots__ = (
        "api_key",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "may_use",
        "received_s",
        "size",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        connection: ClientConnection,
        received_s: float,
        size: int = 0,
        may_use: Callable[[str], bool] | None = None,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.received_s = received_s
        self.size = size
        self.may_use = may_use
        """Whether the client may use a topic in the way that the request is about, where the topics are not in the
        request: those of a fetch session, or those that a pattern finds. None: all of them.
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
