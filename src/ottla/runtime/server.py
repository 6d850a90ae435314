"""Listening sockets and the connections they accept, with limits on all of it.

One server holds the listeners of a node. It knows frames, not APIs: every request goes to `handle`, and what is counted
along the way goes to the `Traffic` it was given.
"""

import logging
from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from ottla.base.lent import lend
from ottla.base.ports import Listener, Network, Timer, Timers, Transport, Workers
from ottla.records.large_buffers import room_for
from ottla.runtime.admission import AddressRates, Admission, ConnectionLimits, ConnectionRates
from ottla.runtime.connection import Connection
from ottla.runtime.large_requests.slow_lane import SlowLane
from ottla.runtime.pending_request import PendingRequest
from ottla.runtime.rate_limited_log import FaultLog, RateLimitedLog
from ottla.runtime.request import ClientConnection, Handler, RequestContext, Respond
from ottla.runtime.session import Metering
from ottla.wire.apis import all_apis
from ottla.wire.exchange.frames import LooksLikeTls

if TYPE_CHECKING:
    from ottla.runtime.authentication.authenticator import Authenticator

_log = logging.getLogger(__name__)
_SCRATCH_BYTES = 1 << 20
_ACCEPTS_PER_TURN = 64
_RETRY_ACCEPT_S = 0.1
_MOST_WAITING = 1000
_MOST_OF_A_REASON = 300


class Limits(NamedTuple):
    """From the broker's settings; the names in the comments."""

    max_request_bytes: int = 104_857_600  # socket.request.max.bytes
    max_idle_ms: int = 600_000  # connections.max.idle.ms
    max_queued_bytes: int = -1  # queued.max.request.bytes
    send_buffer_bytes: int = 102_400  # socket.send.buffer.bytes
    receive_buffer_bytes: int = 102_400  # socket.receive.buffer.bytes
    listen_backlog: int = 50  # socket.listen.backlog.size


class Traffic(Protocol):
    """Who counts. Called at every turn of the network, so it must be cheap."""

    def on_connection(self, listener: str, change: int) -> None: ...
    def on_responses(self, answered: Iterable[RequestContext], now_s: float) -> None: ...
    def on_refused(self, reason: str) -> None: ...
    def on_fault(self, where: str) -> None: ...
    def on_authentication(self, listener: str, outcome: str) -> None: ...


class NoTraffic:
    """Nobody counts."""

    def on_connection(self, listener: str, change: int) -> None:
        """See `Traffic`."""

    def on_responses(self, answered: Iterable[RequestContext], now_s: float) -> None:
        """See `Traffic`."""

    def on_refused(self, reason: str) -> None:
        """See `Traffic`."""

    def on_fault(self, where: str) -> None:
        """See `Traffic`."""

    def on_authentication(self, listener: str, outcome: str) -> None:
        """See `Traffic`."""


TakeTransport: TypeAlias = Callable[[Transport], None]


class Arrivals(Protocol):
    """What counts clients from the moment they are accepted, for a listener of handshakes below the server."""

    def arrive(self, transport: Transport, then: TakeTransport, resume: Callable[[], None]) -> bool:
        """See `Server.arrive`."""
        ...

    def gone(self, host: str) -> None:
        """One that had arrived has not come through its handshake."""
        ...


Secure: TypeAlias = Callable[[Listener, Arrivals], Listener]
"""Puts TLS above a listener."""


class _Listening:
    """One listener of a server, and what the network calls when somebody comes."""

    def __init__(self, server: "Server", inner: Listener, name: str, secure: Secure | None) -> None:
        self.name = name
        self.is_secured = secure is not None
        self._server = server
        self.listener = inner if secure is None else secure(inner, self)

    def on_readable(self) -> None:
        self._server.accept_from(self)

    def arrive(self, transport: Transport, then: TakeTransport, resume: Callable[[], None]) -> bool:
        return self._server.arrive(self.name, transport, then, resume)

    def gone(self, host: str) -> None:
        self._server.gone(host)

    def resume(self) -> None:
        self.listener.watch(self)

    def on_writable(self) -> None:
        """Listeners are not written to."""


class Server:
    """`handle_unsupported` answers requests whose API or version the codec does not know."""

    def __init__(
        self,
        network: Network,
        timers: Timers,
        workers: Workers,
        handle: Handler,
        handle_unsupported: "UnsupportedHandler",
        limits: Limits | None = None,
        traffic: Traffic | None = None,
        admission: Admission | None = None,
    ) -> None:
        self.network = network
        self.workers = workers
        self.handle = handle
        self.metering: Metering | None = None
        """Who counts what clients use and has them wait; None while there are no limits."""
        self.handle_unsupported = handle_unsupported
        self.limits = limits or Limits()
        self.scratch = room_for(_SCRATCH_BYTES)  # Takes no room before something is received into it.
        self.lent_scratch = lend(self.scratch)  # The same bytes, as handlers get them.
        self.connections: dict[Connection, None] = {}
        self.paused: dict[Connection, None] = {}
        self.bytes_sent = 0
        self.now_s = timers.now_s
        self.lane = SlowLane(network, timers.now_s)
        self.handled_s = 0.0  # When the last request was handled: a reading that costs nothing.
        self.answered: list[PendingRequest] = []
        """Requests that have their reply, and are not counted yet."""
        self.timers = timers
        self._traffic = traffic or NoTraffic()
        self._admission = admission or Admission(ConnectionLimits())
        self._authenticators: dict[str, Authenticator | None] = {}
        self._listening: list[_Listening] = []
        self._waiting: list[_Listening] = []
        self._to_send: list[Connection] = []
        self._queued_bytes = 0
        self.counts_queued = self.limits.max_queued_bytes >= 0
        self.is_full = False
        """Whether more requests are waiting for their replies than `queued.max.request.bytes` allows."""
        self._held: dict[Transport, Timer] = {}
        self._next_id = 0
        self._rate_limited_log = RateLimitedLog(_log, timers.now_s)
        self._login_log = RateLimitedLog(_log, timers.now_s)
        self._refusal_log = RateLimitedLog(_log, timers.now_s)
        self._fault_log = FaultLog(_log, timers.now_s)
        idle_s = self.limits.max_idle_ms / 1000
        self._sweep = timers.every(min(idle_s / 4, 60), self._close_idle) if idle_s > 0 else None

    # Listening

    def listen(
        self,
        host: str,
        port: int,
        listener: str,
        *,
        is_gated: bool = False,
        secure: Secure | None = None,
    ) -> tuple[str, int]:
        """Binds; raises `OSError` when the address is taken. Port 0 picks a free one. `secure` may put TLS above it.

        Clients that connect wait until `start_accepting`. With `is_gated` they have to authenticate: nobody is let in
        before `set_authenticator` was called for the listener.
        """
        if is_gated:
            self._authenticators[listener] = None
        inner: Listener = self.network.listen(
            host,
            port,
            backlog=self.limits.listen_backlog,
            receive_buffer_bytes=self.limits.receive_buffer_bytes,
            send_buffer_bytes=self.limits.send_buffer_bytes,
        )
        listening = _Listening(self, inner, listener, secure)
        self._listening.append(listening)
        return listening.listener.address

    def start_accepting(self, names: Container[str] | None = None) -> None:
        """At the listeners of these names, or at all of them."""
        for listening in self._listening:
            if names is None or listening.name in names:
                listening.listener.watch(listening)

    def accept_from(self, listening: _Listening) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if not self._admission.has_place(listening.name):
                self._let_wait(listening)
                return
            try:
                transport = listening.listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return  # Nobody waits, or the first of them has gone; if there are more, we are called again.
            except OSError as problem:
                # No more descriptors, or memory, or whatever it may be: the backlog waits, and we try again.
                self._rate_limited_log.warning(
                    "%s cannot accept a connection; trying again: %s", listening.name, problem
                )
                self._let_wait(listening)
                self.timers.after(_RETRY_ACCEPT_S, self._accept_waiting)
                return
            if listening.is_secured:  # It has arrived before its handshake.
                self._enter(listening, transport)
            elif not listening.arrive(transport, partial(self._enter, listening), listening.resume):
                listening.listener.watch(None)
                return

    def arrive(self, listener: str, transport: Transport, then: TakeTransport, resume: Callable[[], None]) -> bool:
        """A client has been accepted, and is held against the limits. `then` takes it, if it may stay.

        Whether the next may be accepted, too. If not, `resume` is called when it may.
        """
        wait_ms = self._admission.wait_at_listener(listener, int(self.now_s() * 1000))
        if not wait_ms:
            self._look_at(listener, transport, then)
            return True

        def look_late(transport: Transport) -> None:
            try:
                self._look_at(listener, transport, then)
            finally:
                resume()  # Whatever became of this one: nobody else would.

        self._hold(transport, wait_ms / 1000, look_late)
        return False

    def _look_at(self, listener: str, transport: Transport, then: TakeTransport) -> None:
        host = transport.peer_host
        wait_ms = self._admission.wait_before_refusal(listener, host, int(self.now_s() * 1000))
        if wait_ms:
            self._traffic.on_refused("connection_creation_rate")
            self._hold(transport, wait_ms / 1000 if len(self._held) < _MOST_WAITING else 0.0, _close)
        elif not self._admission.is_welcome(host):
            transport.close()
            self._traffic.on_refused("max.connections.per.ip")
        else:
            self._admission.arrived(host)
            then(transport)

    def gone(self, host: str) -> None:
        """A client that had arrived has gone before it was a connection."""
        self._admission.gone(host)

    def _hold(self, transport: Transport, delay_s: float, then: Callable[[Transport], None]) -> None:
        """A client came too soon: nothing is read from it for a while."""

        def over() -> None:
            del self._held[transport]
            then(transport)

        self._held[transport] = self.timers.after(delay_s, over)

    def _let_wait(self, listening: _Listening) -> None:
        """Clients that come now stay in the listener's backlog."""
        self._waiting.append(listening)
        listening.listener.watch(None)

    def _accept_waiting(self) -> None:
        """Something has changed, and there may be a place for clients that wait."""
        waiting, self._waiting = self._waiting, []
        for listening in waiting:
            listening.listener.watch(listening)

    def set_authenticator(self, listener: str, authenticator: "Authenticator") -> None:
        """What a listener asks of clients that come from now on."""
        assert listener in self._authenticators, f"{listener} is a listener that asks nobody for a name"
        self._authenticators[listener] = authenticator

    def _enter(self, listening: _Listening, transport: Transport) -> None:
        """A client that has arrived becomes a connection; when there is a place, if others were faster."""
        listener, host = listening.name, transport.peer_host
        if not self._admission.has_place(listener):
            self._hold(transport, _RETRY_ACCEPT_S, partial(self._enter, listening))
            return
        make: Callable[[Server, Transport, ClientConnection], Connection] = Connection
        if listener in self._authenticators:
            authenticator = self._authenticators[listener]
            if authenticator is None:
                transport.close()
                self.gone(host)
                self._traffic.on_refused("not ready to authenticate")
                return
            make = authenticator.new_connection
        self._next_id += 1
        self._admission.entered(listener)
        client = ClientConnection(self._next_id, listener, host)
        if transport.peer_principal is not None:
            client.principal = transport.peer_principal
        self.connections[make(self, transport, client)] = None
        self._traffic.on_connection(listener, 1)
        if self._admission.is_crowded:
            self._close_longest_idle()

    def _close_longest_idle(self) -> None:
        """A protected listener has taken one more than there may be."""
        others = [one for one in self.connections if not self._admission.is_protected(one.session.client.listener)]
        if others:
            min(others, key=lambda one: one.session.active_s).close()

    def set_connection_limits(self, limits: ConnectionLimits) -> None:
        """Connections that are there stay, even beyond the new limits."""
        self._admission.limits = limits
        self._accept_waiting()

    def set_address_rates(self, rates: AddressRates) -> None:
        self._admission.address_rates = rates

    @property
    def connection_rates(self) -> ConnectionRates:
        return self._admission.rates

    def _close_idle(self) -> None:
        """Closes connections over which nothing happens, and those of clients that do not take their replies."""
        oldest_s = self.now_s() - self.limits.max_idle_ms / 1000
        for connection in list(self.connections):
            if connection.session.active_s < oldest_s and (connection.is_idle or connection.is_stuck):
                connection.close()

    # What connections report

    @property
    def unanswered(self) -> int:
        """How many requests wait for their replies."""
        return sum(connection.unanswered for connection in self.connections)

    def received(self, size: int) -> None:
        """A request of so many bytes waits for its reply. Only called if there is a limit on them."""
        self._queued_bytes += size
        if self._queued_bytes > self.limits.max_queued_bytes:
            self.is_full = True

    def no_longer_queued(self, size: int) -> None:
        """The request has its reply. Only called if there is such a limit."""
        self._queued_bytes -= size
        if self.is_full and self._queued_bytes <= self.limits.max_queued_bytes:
            self.is_full = False
            for connection in list(self.paused):
                connection.maybe_resume()

    def count_answered(self) -> None:
        """The replies of a turn have left: their requests are counted together."""
        if self.answered:
            answered, self.answered = self.answered, []
            self._traffic.on_responses(answered, self.now_s())

    def send_later(self, connection: Connection) -> None:
        """The replies of several connections leave together, at the end of the turn that brings them about."""
        if not self._to_send:
            self.network.at_end_of_turn(self._send_all)
        self._to_send.append(connection)

    def _send_all(self) -> None:
        to_send, self._to_send = self._to_send, []
        for connection in to_send:
            try:
                connection.send_ready()
            except Exception as problem:
                connection.break_off(problem)
        self.count_answered()

    def turned_away(self, reason: str) -> None:
        """A client has gone before it was a connection."""
        self._traffic.on_refused(reason)

    def refused(self, client: ClientConnection, problem: Exception) -> None:
        self._traffic.on_refused(type(problem).__name__)
        if isinstance(problem, LooksLikeTls):
            self._rate_limited_log.warning(
                "closed the connection of %s (%s): %s", client.client_host, client.listener, problem
            )
            return
        self._refusal_log.info("closed the connection of %s: %s", client.client_host, problem)

    def count_authentication(self, listener: str, outcome: str) -> None:
        self._traffic.on_authentication(listener, outcome)

    def refused_authentication(self, client: ClientConnection, reason: str, *, is_again: bool) -> None:
        """`reason` may hold what the client sent: it is shown so that it cannot look like a line of ours."""
        again, shown = "re" if is_again else "", reason.encode("unicode_escape").decode()[:_MOST_OF_A_REASON]
        self._traffic.on_authentication(client.listener, f"failed_{again}authentication")
        self._login_log.warning(
            "Failed %sauthentication with %s (listener %s): %s",
            f"{again}-" if again else "",
            client.client_host,
            client.listener,
            shown,
        )

    def on_fault(self, where: RequestContext | ClientConnection, problem: Exception) -> None:
        """An exception that nobody expected, in work for one request or one connection. The node continues.

        A client may cause it again as fast as it can ask: all are counted, and each kind is logged once a minute.
        """
        if isinstance(where, RequestContext):
            api = all_apis().get(where.api_key)
            counted, client = api.name if api else str(where.api_key), where.connection
            name = f"{counted} version {where.api_version} of client {where.client_id!r}"
        else:
            counted, client, name = "connection", where, "what was received"
        self._traffic.on_fault(counted)
        self._fault_log.error(f"handling {name} from {client.client_host} ({client.listener}) failed", problem)

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self.paused.pop(connection, None)
        client = connection.session.client
        self._admission.left(client.listener)
        self.gone(client.client_host)
        self._traffic.on_connection(client.listener, -1)
        if self._waiting:
            self._accept_waiting()

    # The end

    def stop_listening(self) -> None:
        for listening in self._listening:
            listening.listener.close()
        self._listening.clear()
        self._waiting.clear()
        for transport, timer in self._held.items():
            timer.cancel()
            transport.close()
        self._held.clear()

    def close(self) -> None:
        """Closes everything at once; replies that are not out yet are lost."""
        self.stop_listening()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self.connections):
            connection.close()


def _close(transport: Transport) -> None:
    transport.close()


class UnsupportedHandler(Protocol):
    def __call__(self, context: RequestContext, respond: Respond) -> None: ...
