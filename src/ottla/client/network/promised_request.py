"""A client's request, whose response is promised, and the error that its failure becomes."""

from typing import Any

from ottla.client.errors import (
    Disconnected,
    KafkaError,
    NotABroker,
    RequestTimedOut,
    SslAuthenticationFailed,
    UnsupportedVersion,
    error_for,
)
from ottla.client.promise import Promise
from ottla.client.world import TlsFailed
from ottla.wire.exchange.api_versions import NotServed
from ottla.wire.exchange.open_request import (
    NEVER,
    Ask,
    ConnectionFailed,
    NoAnswer,
    NotConnected,
    OpenRequest,
    OtherProtocol,
    Refused,
    TlsExpected,
)


class PromisedRequest(OpenRequest):
    """Its connection is closed when it is not answered in its time, as in Kafka's own clients."""

    __slots__ = ("outcome",)

    def __init__(
        self, api_key: int, request: Ask, newest: int | None, deadline_s: float, *, has_response: bool = True
    ) -> None:
        # Each of them by itself: a client makes one for every request.
        self.api_key = api_key
        self.request = request
        self.newest = newest
        self.has_response = has_response
        self.due_s = NEVER
        self.dead_s = deadline_s
        self.outcome: Promise[Any] = Promise()

    def answer(self, response: Any) -> None:
        if not self.outcome.is_done:
            self.outcome.resolve(response)

    def fail(self, problem: Exception) -> None:
        self.outcome.reject_if_waiting(client_error(problem))


def client_error(problem: Exception) -> KafkaError:
    """What a client raises for it."""
    if isinstance(problem, KafkaError):
        return problem
    if isinstance(problem, NotConnected):
        return client_error(problem.why)
    if isinstance(problem, Refused):
        return error_for(problem.code, problem.message)
    if isinstance(problem, NoAnswer):
        return RequestTimedOut(str(problem))
    if isinstance(problem, ConnectionFailed):
        if isinstance(problem.cause, TlsFailed):
            return SslAuthenticationFailed(str(problem.cause))
        if isinstance(problem, TlsExpected):
            return SslAuthenticationFailed(str(problem))
        if isinstance(problem, OtherProtocol):
            return NotABroker(str(problem))
        hint = f"; does the listener want {problem.wants} (security.protocol)?" if problem.wants else ""
        return Disconnected(f"{problem}{hint}")
    if isinstance(problem, NotServed):
        return UnsupportedVersion(str(problem))
    # A field that the chosen version has no place for is a feature that the broker does not have.
    return UnsupportedVersion(f"the broker is too old: {problem}")
