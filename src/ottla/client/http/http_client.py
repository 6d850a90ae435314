"""Asks HTTP servers: connections are kept for the next request, and one request is on a connection at a time.

A request that was sent on a connection which the server had closed meanwhile is sent again on a new one, if doing it
twice is doing it once. Any other failure is the caller's to see: the request may have been done.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ports import Dialer, Dialling, Timer, Transport
from ottla.client.promise import Promise
from ottla.client.world import ClientWorld
from ottla.wire.http import BadHttp, HttpResponse, ResponseReader, request_bytes

_MOST_HEAD: Final = 64 << 10
_RECEIVED_AT_ONCE: Final = 64 << 10
_REPEATABLE: Final = ("GET", "HEAD", "PUT")


class HttpFailed(OttlaError):
    """There is no response. `was_sent`: the server may have done what was asked."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class Origin(NamedTuple):
    """Where a server is."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


class HttpLimits(NamedTuple):
    connect_ms: float = 10_000
    read_ms: float = 60_000
    body_bytes: int = 64 << 20
    idle_ms: float = 30_000
    connections: int = 32
    """To one server, at a time. What is asked beyond that waits."""


class HttpClient:
    """`tls` connects to https servers; None if there is none."""

    def __init__(self, world: ClientWorld, limits: HttpLimits | None = None, tls: Dialer | None = None) -> None:
        self._world = world
        self._limits = limits or HttpLimits()
        self._tls = tls
        self._servers: dict[Origin, _Server] = {}
        self.is_closed = False

    def ask(
        self,
        origin: Origin,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        repeatable: bool | None = None,
    ) -> Promise[HttpResponse]:
        """Rejected with `HttpFailed`. `repeatable`: the server may do it twice; by default what only reads or puts."""
        if self.is_closed:
            return Promise.rejected(HttpFailed("the client was closed", was_sent=False))
        if origin.scheme == "https" and self._tls is None:
            return Promise.rejected(HttpFailed(f"cannot connect to {origin}: TLS is not set up", was_sent=False))
        server = self._servers.get(origin)
        if server is None:
            dialer = self._tls if origin.scheme == "https" else self._world.dialer
            assert dialer is not None
            server = self._servers[origin] = _Server(self._world, dialer, origin, self._limits)
        if repeatable is None:
            repeatable = method in _REPEATABLE
        asked = _Asked(request_bytes(method, target, origin.authority, body, headers or {}), repeatable, Promise())
        server.ask(asked)
        return asked.answered

    def close(self) -> None:
        self.is_closed = True
        for server in self._servers.values():
            server.close()


class _Asked(NamedTuple):
    data: bytes
    is_repeatable: bool
    answered: Promise[HttpResponse]


class _Server:
    """The connections to one server."""

    def __init__(self, world: ClientWorld, dialer: Dialer, origin: Origin, limits: HttpLimits) -> None:
        self.world = world
        self.dialer = dialer
        self.origin = origin
        self.limits = limits
        self._idle: list[_Connection] = []
        self._all: dict[_Connection, None] = {}
        self._waiting: deque[_Asked] = deque()

    def ask(self, asked: _Asked) -> None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                connection.take(asked)
                return
        if len(self._all) >= self.limits.connections:
            self._waiting.append(asked)
            return
        connection = _Connection(self)
        self._all[connection] = None
        connection.take(asked)

    def on_idle(self, connection: "_Connection") -> None:
        if self._waiting:
            connection.take(self._waiting.popleft())
        else:
            self._idle.append(connection)

    def on_closed(self, connection: "_Connection") -> None:
        self._all.pop(connection, None)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._waiting and len(self._all) < self.limits.connections:
            self.ask(self._waiting.popleft())

    def close(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for asked in waiting:
            asked.answered.reject_if_waiting(HttpFailed("the client was closed", was_sent=False))
        for connection in list(self._all):
            connection.fail("the client was closed")


class _Connection:
    """One, from dialling to its end."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._transport: Transport | None = None
        self._dialling: Dialling | None = None
        self._reader = ResponseReader(_MOST_HEAD, server.limits.body_bytes)
        self._asked: _Asked | None = None
        self._unsent: bytes | memoryview = b""
        self._has_received = False
        self._was_used = False
        self._timer: Timer | None = None
        self._scratch = bytearray(_RECEIVED_AT_ONCE)
        self.is_open = True

    def take(self, asked: _Asked) -> None:
        """Sends a request, connecting first if need be."""
        self._asked = asked
        self._unsent = asked.data
        self._has_received = False
        limits = self._server.limits
        if self._transport is None:
            origin = self._server.origin
            self._set_timer(limits.connect_ms, f"cannot connect to {origin} within {limits.connect_ms / 1000:g} s")
            self._dialling = self._server.dialer.dial(
                origin.host,
                origin.port,
                receive_buffer_bytes=-1,
                send_buffer_bytes=-1,
                then=self._on_connected,
                failed=self._on_not_connected,
            )
        else:
            self._begin()

    def _begin(self) -> None:
        limits = self._server.limits
        self._set_timer(limits.read_ms, f"{self._server.origin} did not answer within {limits.read_ms / 1000:g} s")
        self.on_writable()

    def _set_timer(self, after_ms: float, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._server.world.timers.after(after_ms / 1000, lambda: self.fail(reason))

    def _on_connected(self, transport: Transport) -> None:
        if not self.is_open:
            transport.close()
            return
        self._dialling = None
        self._transport = transport
        self._begin()

    def _on_not_connected(self, problem: OSError) -> None:
        self._dialling = None
        self.fail(f"cannot connect to {self._server.origin}: {problem.strerror or problem}")

    def on_writable(self) -> None:
        transport = self._transport
        assert transport is not None
        try:
            while self._unsent:
                self._unsent = memoryview(self._unsent)[transport.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError as problem:
            self._on_broken(str(problem))
            return
        transport.watch(self, reading=True, writing=bool(self._unsent))

    def on_readable(self) -> None:
        transport = self._transport
        if transport is None:
            return
        try:
            count = transport.receive_into(self._scratch)
        except BlockingIOError:
            return
        except OSError as problem:
            self._on_broken(str(problem))
            return
        if not count:
            self._on_broken("the connection was closed")
            return
        self._has_received = True
        try:
            found = self._reader.take(memoryview(self._scratch)[:count])
        except BadHttp as problem:
            self.fail(f"{self._server.origin} sent a response that cannot be read: {problem.reason}")
            return
        if found:
            self._on_response(found[0])

    def _on_response(self, response: HttpResponse) -> None:
        asked, self._asked = self._asked, None
        if asked is None:
            self.fail("a response that nobody asked for")
            return
        self._was_used = True
        if response.keeps_alive and not self._unsent:
            self._set_timer(self._server.limits.idle_ms, "idle")
            self._server.on_idle(self)
        else:
            self.fail("the server closes the connection")
        asked.answered.resolve_if_waiting(response)

    def _on_broken(self, reason: str) -> None:
        """One that was idle for a while may have been closed by the server in the moment of asking."""
        asked = self._asked
        if asked is not None and asked.is_repeatable and self._was_used and not self._has_received:
            self._asked = None
            self.fail(reason)
            self._server.ask(asked)
            return
        self.fail(f"the connection to {self._server.origin} broke: {reason}")

    def fail(self, reason: str) -> None:
        """Ends it, and what is asked on it."""
        if not self.is_open:
            return
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        if self._dialling is not None:
            self._dialling.cancel()
        if self._transport is not None:
            self._transport.close()
        asked, self._asked = self._asked, None
        self._server.on_closed(self)
        if asked is not None:
            asked.answered.reject_if_waiting(HttpFailed(reason, was_sent=self._transport is not None))
