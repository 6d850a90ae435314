"""Listening sockets and the connections they accept, with limits on all of it.

One server holds the listeners of a node. It knows frames, not APIs: every request goes to `handle`, and what is counted
along the way goes to the `Traffic` it was given.
"""

import errno
import logging
import socket
from asyncio import AbstractEventLoop
from typing import Protocol

from ottla.base.dataclass import dataclass
from ottla.runtime.admission import Admission, ConnectionLimits
from ottla.runtime.connection import Connection
from ottla.runtime.request import ClientConnection, Handler, RequestContext, Respond
from ottla.runtime.workers import Workers

_log = logging.getLogger(__name__)
_SCRATCH_BYTES = 1 << 20
_ACCEPTS_PER_TURN = 64
_RETRY_ACCEPT_S = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """From the broker's settings; the names in the comments."""

    max_request_bytes: int = 104_857_600  # socket.request.max.bytes
    max_idle_ms: int = 600_000  # connections.max.idle.ms
    max_queued_bytes: int = -1  # queued.max.request.bytes
    send_buffer_bytes: int = 102_400  # socket.send.buffer.bytes
    receive_buffer_bytes: int = 102_400  # socket.receive.buffer.bytes
    listen_backlog: int = 50  # socket.listen.backlog.size


class Traffic(Protocol):
    """Who counts. Called for every request, so it must be cheap."""

    def on_connection(self, listener: str, change: int) -> None: ...
    def on_response(self, context: RequestContext, size: int, seconds: float) -> None: ...
    def on_refused(self, reason: str) -> None: ...


class NoTraffic:
    """Nobody counts."""

    def on_connection(self, listener: str, change: int) -> None:
        """See `Traffic`."""

    def on_response(self, context: RequestContext, size: int, seconds: float) -> None:
        """See `Traffic`."""

    def on_refused(self, reason: str) -> None:
        """See `Traffic`."""


class Server:
    """`handle_unsupported` answers requests whose API or version the codec does not know."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        workers: Workers,
        handle: Handler,
        handle_unsupported: "UnsupportedHandler",
        limits: Limits | None = None,
        traffic: Traffic | None = None,
        admission: Admission | None = None,
    ) -> None:
        self.loop = loop
        self.workers = workers
        self.handle = handle
        self.handle_unsupported = handle_unsupported
        self.limits = limits or Limits()
        self.scratch = bytearray(_SCRATCH_BYTES)
        self.connections: set[Connection] = set()
        self.paused: set[Connection] = set()
        self.bytes_sent = 0
        self._traffic = traffic or NoTraffic()
        self._admission = admission or Admission(ConnectionLimits())
        self._listening: dict[socket.socket, str] = {}
        self._waiting: set[socket.socket] = set()
        self._queued_bytes = 0
        self._now_s = loop.time
        self._next_id = 0
        idle_s = self.limits.max_idle_ms / 1000
        self._sweep = loop.call_later(min(idle_s / 4, 60), self._close_idle) if idle_s > 0 else None

    # Listening

    def listen(self, host: str, port: int, listener: str) -> tuple[str, int]:
        """Binds; raises `OSError` when the address is taken. Port 0 picks a free one.

        Whoever connects waits until `start_accepting`.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.limits.receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)
            sock.bind((host, port))
            sock.listen(self.limits.listen_backlog)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        self._listening[sock] = listener
        return sock.getsockname()[:2]  # type: ignore[no-any-return]

    def start_accepting(self) -> None:
        for sock, listener in self._listening.items():
            self.loop.add_reader(sock.fileno(), self._on_acceptable, sock, listener)

    def _on_acceptable(self, listening: socket.socket, listener: str) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if not self._admission.has_place(listener):
                self._let_wait(listening)
                return
            try:
                sock, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as problem:
                if problem.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                # No more descriptors: the backlog waits until some connection closes.
                self._let_wait(listening)
                self.loop.call_later(_RETRY_ACCEPT_S, self._accept_waiting)
                return
            self._accept(sock, str(address[0]), listener)

    def _let_wait(self, listening: socket.socket) -> None:
        """Whoever comes now stays in the listener's backlog."""
        self._waiting.add(listening)
        self.loop.remove_reader(listening.fileno())

    def _accept_waiting(self) -> None:
        """Something has changed, and there may be a place for those who wait."""
        waiting, self._waiting = self._waiting, set()
        for listening in waiting:
            listener = self._listening.get(listening)
            if listener is not None:
                self.loop.add_reader(listening.fileno(), self._on_acceptable, listening, listener)

    def _accept(self, sock: socket.socket, host: str, listener: str) -> None:
        if not self._admission.is_welcome(host):
            sock.close()
            self._traffic.on_refused("max.connections.per.ip")
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.limits.send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer_bytes)
        self._next_id += 1
        self._admission.entered(listener, host)
        self.connections.add(Connection(self, sock, ClientConnection(self._next_id, listener, host)))
        self._traffic.on_connection(listener, 1)
        if self._admission.is_crowded:
            self._close_longest_idle()

    def _close_longest_idle(self) -> None:
        """A protected listener has taken one more than there may be."""
        others = [one for one in self.connections if not self._admission.is_protected(one.info.listener)]
        if others:
            min(others, key=lambda one: one.active_s).close()

    def set_connection_limits(self, limits: ConnectionLimits) -> None:
        """Those who are in stay in."""
        self._admission.limits = limits
        self._accept_waiting()

    def _close_idle(self) -> None:
        idle_s = self.limits.max_idle_ms / 1000
        self._sweep = self.loop.call_later(min(idle_s / 4, 60), self._close_idle)
        oldest_s = self.loop.time() - idle_s
        for connection in [c for c in self.connections if c.active_s < oldest_s and c.is_idle]:
            connection.close()

    # What connections report

    @property
    def is_full(self) -> bool:
        """Whether more requests are waiting for their replies than `queued.max.request.bytes` allows."""
        return 0 <= self.limits.max_queued_bytes < self._queued_bytes

    @property
    def unanswered(self) -> int:
        """How many requests wait for their replies."""
        return sum(connection.unanswered for connection in self.connections)

    def received(self, size: int) -> None:
        self._queued_bytes += size

    def answered(self, context: RequestContext, size: int) -> None:
        """`size` is that of the request."""
        was_full = self.is_full
        self._queued_bytes -= size
        self._traffic.on_response(context, size, self._now_s() - context.received_s)
        if was_full and not self.is_full:
            for connection in list(self.paused):
                connection.resume_reading()

    def sent(self, size: int) -> None:
        self.bytes_sent += size

    def refused(self, client: ClientConnection, problem: Exception) -> None:
        self._traffic.on_refused(type(problem).__name__)
        _log.info("closed the connection of %s: %s", client.client_host, problem)

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.paused.discard(connection)
        info = connection.info
        self._admission.left(info.listener, info.client_host)
        self._traffic.on_connection(info.listener, -1)
        if self._waiting:
            self._accept_waiting()

    # The end

    def stop_listening(self) -> None:
        for sock in self._listening:
            self.loop.remove_reader(sock.fileno())
            sock.close()
        self._listening.clear()
        self._waiting.clear()

    def close(self) -> None:
        """Closes everything at once; replies that are not out yet are lost."""
        self.stop_listening()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self.connections):
            connection.close()


class UnsupportedHandler(Protocol):
    def __call__(self, context: RequestContext, respond: Respond) -> None: ...
