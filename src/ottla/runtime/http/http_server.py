"""Serves HTTP/1.1 on a network of ports: connections, the order of replies, and limits on all of it.

Theory of operation. A connection reads requests and hands them on one by one: the next when the one before has its
reply. What a client sends ahead waits; beyond `MOST_AHEAD` requests nothing more is read. So a client costs at most its
limits: a head, a body, what was received at once, and a megabyte of replies that it does not take. A client has
`request_s` for a request once it has begun, and `idle_s` between two. If it takes longer, or does not take its replies,
it is closed.
What is refused before all of it was read is read on and dropped for a moment: or else the client would see a reset
connection in place of the reason. When all places are taken, a connection that has waited for its client for a second
or more gives its place up: an idle one first, then one of a client that is slow with its request or with its reply. So
slow clients keep nobody out. Of several, the address that has most connections loses its oldest.

`handle` is called on the loop with a request and a function that takes its reply, once, now or later. A reply is bytes:
a whole response, or its beginning and, in further parts, the rest of its body. Parts are not copied: a large body may
be on its way to many clients. What raises is answered with 500, logged, and costs nothing else.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.base.ports import Buffer, Listener, Network, Timers, Transport
from ottla.runtime.outbox import Outbox
from ottla.runtime.rate_limited_log import RateLimitedLog
from ottla.wire.http import CONTINUE, BadHttp, HttpRequest, RequestReader, closing, response_bytes

if TYPE_CHECKING:
    from ottla.runtime.server import Secure

_log = logging.getLogger(__name__)

MOST_AHEAD: Final = 16
_ACCEPTS_PER_TURN: Final = 64
_RETRY_ACCEPT_S: Final = 0.1
_SCRATCH_BYTES: Final = 64 << 10
_SWEEP_S: Final = 1.0
_DROPPING_S: Final = 2.0
_LEAST_WAIT_S: Final = 1.0
_MOST_UNSENT: Final = 1 << 20
"""Bytes of replies that wait for a client. Beyond that its next request waits too."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What clients may cost."""

    head_bytes: int = 16 << 10
    body_bytes: int = 2 << 20
    connections: int = 10_000
    connections_per_address: int = 10_000
    request_s: float = 10.0
    """From the first byte of a request to its last, and for a client to take a reply."""
    idle_s: float = 60.0
    backlog: int = 1000


class Caller(NamedTuple):
    """Who asks: the listener, the address, and what a certificate has proved (`User:…`)."""

    listener: str
    host: str
    principal: str | None


class Respond(Protocol):
    """Takes the reply to one request. `response` has at least the whole head."""

    def __call__(self, response: bytes, *body: bytes) -> None: ...


HttpHandler = Callable[[HttpRequest, Caller, Respond], None]


class HttpServer:
    """`on_bad` makes the response to a malformed request, or one beyond a limit. `counts` are for metrics."""

    def __init__(
        self,
        network: Network,
        timers: Timers,
        handle: HttpHandler,
        limits: HttpLimits | None = None,
        on_bad: Callable[[int, str], bytes] | None = None,
    ) -> None:
        self.network = network
        self.timers = timers
        self.now_s = timers.now_s
        self.handle = handle
        self.limits = limits or HttpLimits()
        self.on_bad = on_bad or _plain
        self.scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self.connections: dict[HttpConnection, None] = {}
        self.counts: Counter[str] = Counter()
        self._listening: list[_Listening] = []
        self._per_host: Counter[str] = Counter()
        self._waiting: list[_Listening] = []
        self._rate_limited_log = RateLimitedLog(_log, timers.now_s)
        self._to_send: dict[HttpConnection, None] = {}
        self._sweep = timers.every(_SWEEP_S, self._close_late)
        self.is_stopping = False

    # Listening

    def listen(self, host: str, port: int, name: str = "http", secure: "Secure | None" = None) -> tuple[str, int]:
        """Binds; raises `OSError` when the address is taken. Port 0 picks a free one. Clients wait until
        `start_accepting`."""
        inner = self.network.listen(
            host, port, backlog=self.limits.backlog, receive_buffer_bytes=-1, send_buffer_bytes=-1
        )
        listening = _Listening(self, inner, name, secure)
        self._listening.append(listening)
        return listening.listener.address

    def start_accepting(self) -> None:
        for listening in self._listening:
            listening.listener.watch(listening)

    def stop_listening(self) -> None:
        for listening in self._listening:
            listening.listener.close()
        self._listening.clear()
        self._waiting.clear()

    def accept_from(self, listening: "_Listening") -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            is_full = len(self.connections) >= self.limits.connections
            slowest = self._slowest() if is_full else None
            if is_full and slowest is None:
                self._let_wait(listening)
                self.timers.after(_RETRY_ACCEPT_S, self._accept_waiting)
                return
            try:
                transport = listening.listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as problem:
                self._rate_limited_log.warning(
                    "%s cannot accept a connection; trying again: %s", listening.name, problem
                )
                self._let_wait(listening)
                self.timers.after(_RETRY_ACCEPT_S, self._accept_waiting)
                return
            if slowest is not None:
                self.counts["idle_closed" if slowest.is_idle else "slow_closed"] += 1
                slowest.close()
            if listening.is_secured or self.arrive(transport):
                self.connections[HttpConnection(self, transport, listening.name)] = None

    def arrive(self, transport: Transport) -> bool:
        """A client has been accepted. Whether it may stay; if not, it is closed."""
        host = transport.peer_host
        if self._per_host[host] >= self.limits.connections_per_address:
            transport.close()
            self.counts["connections_refused"] += 1
            return False
        self._per_host[host] += 1
        return True

    def gone(self, host: str) -> None:
        self._per_host[host] -= 1
        if self._per_host[host] <= 0:
            del self._per_host[host]

    def _slowest(self) -> "HttpConnection | None":
        """One that gives its place to a client that waits, if one may."""
        latest_s = self.now_s() - _LEAST_WAIT_S
        waits = [
            (not one.is_idle, -self._per_host[one.caller.host], since_s, place, one)
            for place, one in enumerate(self.connections)
            if (since_s := one.awaits_client_since_s) is not None and since_s <= latest_s
        ]
        return min(waits)[-1] if waits else None

    def _let_wait(self, listening: "_Listening") -> None:
        self._waiting.append(listening)
        listening.listener.watch(None)

    def _accept_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for listening in waiting:
            listening.listener.watch(listening)

    # Connections

    def send_later(self, connection: "HttpConnection") -> None:
        """With those of others that have a reply in this turn: each one sent at once would wake its client."""
        if not self._to_send:
            self.network.at_end_of_turn(self._send_all)
        self._to_send[connection] = None

    def _send_all(self) -> None:
        connections, self._to_send = self._to_send, {}
        for connection in connections:
            connection.send()

    def closed(self, connection: "HttpConnection") -> None:
        self.connections.pop(connection, None)
        self._to_send.pop(connection, None)
        self.gone(connection.caller.host)
        if self._waiting:
            self._accept_waiting()

    def on_fault(self, what: str, problem: BaseException) -> None:
        self.counts["faults"] += 1
        self._rate_limited_log.warning("%s failed: %r", what, problem)
        _log.debug("the failure in full", exc_info=problem)

    def _close_late(self) -> None:
        now_s = self.now_s()
        for connection in list(self.connections):
            connection.look_at_time(now_s)

    def drain(self) -> bool:
        """Closes connections that are idle, and those that have their reply when they do. Whether all are gone."""
        self.is_stopping = True
        for connection in list(self.connections):
            connection.close_if_idle()
        return not self.connections

    def close(self) -> None:
        self._sweep.cancel()
        self.stop_listening()
        for connection in list(self.connections):
            connection.close()


class _Listening:
    """One address, and what the network calls when somebody comes; `Arrivals` for TLS below."""

    def __init__(self, server: HttpServer, inner: Listener, name: str, secure: "Secure | None") -> None:
        self.name = name
        self.is_secured = secure is not None
        self._server = server
        self.listener = inner if secure is None else secure(inner, self)

    def on_readable(self) -> None:
        self._server.accept_from(self)

    def on_writable(self) -> None:
        """Listeners are not written to."""

    def arrive(self, transport: Transport, then: Callable[[Transport], None], resume: Callable[[], None]) -> bool:
        if self._server.arrive(transport):
            then(transport)
        return True

    def gone(self, host: str) -> None:
        self._server.gone(host)


class HttpConnection:
    """One client's. `_asked` is the request that is handled; others wait behind it."""

    __slots__ = (
        "_ahead",
        "_asked",
        "_awaits_writable",
        "_began_s",
        "_closes",
        "_drops_until_s",
        "_is_busy",
        "_is_open",
        "_is_reading",
        "_number",
        "_outbox",
        "_reader",
        "_reply_s",
        "_server",
        "_transport",
        "caller",
        "moved_s",
    )

    def __init__(self, server: HttpServer, transport: Transport, listener: str) -> None:
        self.caller = Caller(listener, transport.peer_host, transport.peer_principal)
        self._server = server
        self._transport = transport
        self._reader = RequestReader(server.limits.head_bytes, server.limits.body_bytes)
        self._outbox = Outbox()
        self._ahead: deque[HttpRequest] = deque()
        self._asked: HttpRequest | None = None
        self._number = 0
        self._closes = False
        self._drops_until_s: float | None = None
        self._is_busy = False
        self._is_open = True
        self._is_reading = True
        self._awaits_writable = False
        self.moved_s = server.now_s()
        self._began_s: float | None = None
        self._reply_s: float | None = None
        transport.watch(self, reading=True, writing=False)

    # In

    def on_readable(self) -> None:
        server = self._server
        try:
            count = self._transport.receive_into(server.scratch)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        if not count:
            self.close()
            return
        if self._drops_until_s is not None:
            return
        self.moved_s = server.now_s()
        try:
            found = self._reader.take(server.scratch[:count])
        except BadHttp as problem:
            self._refuse(problem)
            return
        if not self._reader.has_begun:
            self._began_s = None
        elif found or self._began_s is None:
            self._began_s = self.moved_s
        if self._reader.wants_continue:
            self._put(CONTINUE)
        if found:
            self._ahead.extend(found)
            self._next()
            if len(self._ahead) >= MOST_AHEAD:
                self._is_reading = False
                self._watch()

    def _refuse(self, problem: BadHttp) -> None:
        self._server.counts["bad_requests"] += 1
        self._ahead.clear()
        if self._asked is not None:
            self.close()  # It would come before the reply to a request that was one.
            return
        self._closes = True
        self._drops_until_s = self._server.now_s() + _DROPPING_S
        self._put(*closing(self._server.on_bad(problem.status, problem.reason)))

    def _next(self) -> None:
        """Hands requests on, until one has to wait for its reply."""
        if self._is_busy:
            return
        self._is_busy = True
        server = self._server
        while self._asked is None and self._ahead and self._takes_more:
            request = self._asked = self._ahead.popleft()
            self._number += 1
            number = self._number
            server.counts["requests"] += 1

            def respond(response: bytes, *body: bytes, number: int = number) -> None:
                self._on_response(number, response, body)

            try:
                server.handle(request, self.caller, respond)
            except Exception as problem:
                server.on_fault(f"{request.method} {request.path}", problem)
                if self._asked is request:
                    respond(server.on_bad(500, "Internal Server Error"))
        self._is_busy = False

    @property
    def _takes_more(self) -> bool:
        """Whether another request may be answered: replies that the client does not take are not made."""
        return self._is_open and not self._closes and self._outbox.buffered < _MOST_UNSENT

    # Out

    def _on_response(self, number: int, response: bytes, body: tuple[bytes, ...]) -> None:
        request = self._asked
        if request is None or number != self._number or not self._is_open:
            return
        self._asked = None
        if not request.keeps_alive or self._server.is_stopping:
            self._closes = True
            self._put(*closing(response), *body)
        else:
            self._put(response, *body)
        if not self._is_reading and len(self._ahead) < MOST_AHEAD // 2 and self._is_open:
            self._is_reading = True
            self._watch()
        self._next()

    def _put(self, *parts: Buffer) -> None:
        for part in parts:
            self._outbox.add(part)
        if not self._awaits_writable:
            if self._server.network.is_crowded or self._ahead:
                self._server.send_later(self)
            else:
                self.send()

    def send(self) -> None:
        if not self._is_open:
            return
        try:
            self._outbox.send(self._transport)
            while not self._outbox and self._ahead and self._asked is None and not self._is_busy and self._takes_more:
                self._next()  # Requests that had to wait until replies had left.
                self._outbox.send(self._transport)
        except OSError:
            self.close()
            return
        if not self._is_open:
            return
        self.moved_s = self._server.now_s()
        waits = bool(self._outbox)
        if not waits:
            self._reply_s = None
        elif self._reply_s is None:
            self._reply_s = self.moved_s
        if waits is not self._awaits_writable:
            self._awaits_writable = waits
            self._watch()
        if not waits and self._closes and self._asked is None and self._drops_until_s is None:
            self.close()

    def on_writable(self) -> None:
        self.send()

    def _watch(self) -> None:
        if self._is_open:
            reads = self._is_reading and (not self._closes or self._drops_until_s is not None)
            self._transport.watch(self, reading=reads, writing=self._awaits_writable)

    # Time, and the end

    def look_at_time(self, now_s: float) -> None:
        """Closes it if the client takes too long: with a request, with a reply, or with the next request."""
        limits = self._server.limits
        if self._drops_until_s is not None:
            is_late = now_s > self._drops_until_s
        elif self._awaits_writable:
            is_late = now_s - self.moved_s > limits.request_s
        elif self._asked is not None:
            is_late = False  # The handler's own time; the client waits for us.
        elif self._began_s is not None:
            is_late = now_s - self._began_s > limits.request_s
        else:
            is_late = now_s - self.moved_s > limits.idle_s
        if is_late:
            self._server.counts["timeouts"] += self._drops_until_s is None
            self.close()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no request, no reply."""
        return self._asked is None and not self._outbox and not self._ahead and not self._reader.has_begun

    @property
    def awaits_client_since_s(self) -> float | None:
        """Since when it waits for the client: to take a reply, to send the rest of a request or another one. None
        while the client waits for us.
        """
        if self._reply_s is not None:
            return self._reply_s
        if self._asked is not None:
            return None
        return self.moved_s if self._began_s is None else self._began_s

    def close_if_idle(self) -> None:
        if self._asked is None and not self._outbox and not self._ahead:
            self.close()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._outbox.clear()
            self._ahead.clear()
            self._asked = None
            self._transport.close()
            self._server.closed(self)


def _plain(status: int, reason: str) -> bytes:
    return response_bytes(status, f"{reason}\n".encode(), "text/plain; charset=utf-8")
