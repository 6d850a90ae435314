"""A client's end of a connection, without I/O: frames and the time come in; bytes, answers and failures go out.

A client is what connects to a node: a producer, a consumer, a tool, another node.

Theory of operation. An end goes through these states, and back only from OPEN to LOGIN:

    DIALLING    there is no connection yet; requests wait
    GREETING    the node is asked what it serves (`api_versions`); requests wait
    LOGIN       the client proves who it is (`login`), where it has to; requests wait
    OPEN        requests leave as they come, in the newest version that both sides know
    CLOSED      what waited or was in flight is handed back to be failed

A node may limit how long a login holds (KIP-368). The first request that comes late in that time begins another one,
and no timer does: idle connections stay idle. Requests in flight are answered first. A random share of the time is
left, so that clients do not come all at once. While a node throttles the client (KIP-219), requests wait, too.

Every deadline is looked at in `on_time`, which is to be called at `next_s`.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ottla.base.errors import OttlaError
from ottla.base.ports import Entropy
from ottla.wire.codec import Piece
from ottla.wire.exchange.api_versions import ApiVersions, VersionsRequest
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.open_request import NEVER, ConnectionFailed, NoAnswer, OpenRequest, RequestLate
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.wire.exchange.login import SaslLogin

_SLACK_S: Final = 0.0005
_LEAST_SHARE, _RANDOM_SHARE, _STEPS = 0.85, 0.10, 1000


class State(Enum):
    DIALLING = "dialling"
    GREETING = "greeting"
    LOGIN = "login"
    OPEN = "open"
    CLOSED = "closed"


class ClientEnd:
    """`node` is what errors call the other side, its address.

    `setup_timeout_s` is how long it may take to become open, and how long a later login may take.

    `failed` are requests that have failed by themselves, until the owner tells them: after it has sent what it was
    given, because a request that hears of its failure may bring the next.
    """

    def __init__(
        self, node: str, client_id: str | None, setup_timeout_s: float, now_s: float, entropy: Entropy, *, logs_in: bool
    ) -> None:
        self.state = State.DIALLING
        self.served: ApiVersions | None = None
        self.has_been_open = False
        self.has_answered = False
        """Any request of the client's own."""
        self.needs_login = False
        """A login has to begin: the owner calls `log_in` with one, now or later."""
        self.failed: list[tuple[OpenRequest, Exception]] = []
        self._node = node
        self._entropy = entropy
        self._logs_in = logs_in
        self._setup_timeout_s = setup_timeout_s
        self._setup_due_s = now_s + setup_timeout_s
        self._login: SaslLogin | None = None
        self._login_began_s = 0.0
        self._log_in_again_s = NEVER
        self._throttled_until_s = 0.0
        self._versions = VersionsRequest(client_id)
        self._version_of: dict[tuple[int, int | None], int] = {}
        """Of an API, at most a version: which one is used."""
        self._waiting: deque[OpenRequest] = deque()
        self._correlation: Correlation[OpenRequest | None] = Correlation(client_id)
        """None is a request of the login."""
        self._parts_made = 0
        self.leaving: deque[tuple[int, OpenRequest]] = deque()
        """Requests without a response, until so many parts have been sent."""

    def __len__(self) -> int:
        """Requests that have been asked and not answered."""
        return len(self._correlation) + len(self._waiting) + len(self.leaving)

    # Coming up

    def on_connected(self) -> list[Piece]:
        """The bytes to send."""
        self.state = State.GREETING
        return self._counted([self._versions.encoded(self._correlation.next_id())])

    def log_in(self, login: "SaslLogin", now_s: float) -> list[Piece]:
        """The bytes to send. Raises `Refused`."""
        assert self.state is State.LOGIN, "nobody asked for a login"
        assert self.served is not None, "a node says what it serves before anybody logs in"
        self._login, self._login_began_s = login, now_s
        return self._encode_own(login.first(self.served))

    def _on_versions(self, frame: memoryview, now_s: float) -> list[Piece]:
        self.served = self._versions.on_frame(frame)
        if self.served is None:
            return self._counted([self._versions.encoded(self._correlation.next_id())])
        if not self._logs_in:
            return self._become_open(now_s)
        self._become_login()
        return []

    def _become_login(self) -> None:
        self.state = State.LOGIN
        self.needs_login = True

    def _on_login(self, login: "SaslLogin", response: Any, now_s: float) -> list[Piece]:
        request = login.next(response)
        if request is not None:
            return self._encode_own(request)
        self._login = None
        self._log_in_again_s = NEVER
        if login.session_lifetime_ms > 0:
            share = _LEAST_SHARE + _RANDOM_SHARE * self._entropy.randrange(_STEPS) / _STEPS
            self._log_in_again_s = self._login_began_s + login.session_lifetime_ms / 1000 * share
        return self._become_open(now_s)

    def _become_open(self, now_s: float) -> list[Piece]:
        self.state = State.OPEN
        self.has_been_open = True
        self._setup_due_s = NEVER
        return self.send_waiting(now_s)

    # Requests out

    def ask(self, request: OpenRequest, now_s: float) -> list[Piece]:
        """The bytes to send. None if it has to wait, or has failed."""
        if self._waiting or self.state is not State.OPEN or not self._throttled_until_s <= now_s < self._log_in_again_s:
            self._waiting.append(request)
            return self.send_waiting(now_s)
        try:
            return self._encode(request)
        except OttlaError as problem:
            self.failed.append((request, problem))
            return []

    def send_waiting(self, now_s: float) -> list[Piece]:
        """The bytes of all that waits, if nothing is in its way any more."""
        parts: list[Piece] = []
        if self.state is not State.OPEN or not self._waiting or now_s < self._throttled_until_s:
            return parts
        if now_s >= self._log_in_again_s:
            self._setup_due_s = now_s + self._setup_timeout_s
            self._become_login()
            return parts
        while self._waiting:
            request = self._waiting.popleft()
            try:
                parts += self._encode(request)
            except OttlaError as problem:
                self.failed.append((request, problem))
        return parts

    def _encode(self, request: OpenRequest) -> list[Piece]:
        kind = request.api_key, request.newest
        version = self._version_of.get(kind)
        if version is None:
            assert self.served is not None, "an end that is open knows the versions"
            version = self._version_of[kind] = self.served.newest(*kind)
        asked = request.request
        message = asked(version) if callable(asked) else asked
        parts = self._correlation.ask(message, version, request, has_response=request.has_response)
        self._parts_made += len(parts)
        if not request.has_response:
            self.leaving.append((self._parts_made, request))
        return parts

    def _encode_own(self, message: Message) -> list[Piece]:
        """A request of the login, past those that wait."""
        assert self.served is not None, "a node says what it serves before anybody logs in"
        return self._counted(self._correlation.ask(message, self.served.newest(message._schema.api_key), None))

    def _counted(self, parts: list[Any]) -> list[Any]:
        self._parts_made += len(parts)
        return parts

    def left(self, parts_sent: int) -> Iterator[OpenRequest]:
        """The requests without a response that have left with the first so many parts. They are reported once."""
        while self.leaving and self.leaving[0][0] <= parts_sent:
            yield self.leaving.popleft()[1]

    # Responses in

    def on_frame(self, frame: memoryview, now_s: float) -> tuple[OpenRequest, Any] | list[Piece]:
        """A request and the response to it; or, while the end comes up, the bytes to send.

        Raises `ProtocolError` or `Refused`: then the connection is of no use.
        """
        if self.served is None:
            return self._on_versions(frame, now_s)
        request, response = self._correlation.on_frame(frame)
        if request is None:
            assert self._login is not None, "a response of a login that nobody began"
            return self._on_login(self._login, response, now_s)
        self.has_answered = True
        if throttle_ms := getattr(response, "throttle_time_ms", 0):
            self._throttled_until_s = now_s + throttle_ms / 1000
        return request, response

    # Time, and the end

    def next_s(self) -> float:
        """When `on_time` has something to do."""
        open_requests = self._open_requests()
        moments = [self._setup_due_s, *(request.due_s for request in open_requests)]
        if self.has_been_open:
            moments += (request.dead_s for request in open_requests)
        if self._waiting and self.state is State.OPEN:
            moments.append(self._throttled_until_s)
        return min(moments)

    def on_time(self, now_s: float) -> None:
        """Requests that are late have failed. Raises `ConnectionFailed` if the connection has to be given up."""
        now_s += _SLACK_S
        self._waiting = deque(request for request in self._waiting if self._is_in_time(request, now_s))
        for request in self._open_requests():
            self._is_in_time(request, now_s)
        if self._setup_due_s <= now_s:
            what = "connect to" if self.state is State.DIALLING else "get an answer from"
            raise ConnectionFailed(f"cannot {what} {self._node} within {self._setup_timeout_s:.3g} s")
        if self.has_been_open and any(request.dead_s <= now_s for request in self._open_requests()):
            raise NoAnswer(f"{self._node} did not answer a request in time")

    def _is_in_time(self, request: OpenRequest, now_s: float) -> bool:
        if request.due_s > now_s:
            return True
        request.due_s = NEVER
        self.failed.append((request, RequestLate(f"{self._node} did not answer in time")))
        return False

    def close(self) -> list[OpenRequest]:
        """The requests that will not be answered."""
        self.state = State.CLOSED
        unanswered = [*(request for request, _ in self.failed), *self._open_requests()]
        self.failed.clear()
        self._correlation.take_unanswered()
        self.leaving.clear()
        self._waiting.clear()
        return unanswered

    def _open_requests(self) -> list[OpenRequest]:
        in_flight = (request for request in self._correlation.in_flight() if request is not None)
        return [*in_flight, *(request for _, request in self.leaving), *self._waiting]
