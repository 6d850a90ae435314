"""A listener above another, whose clients have their TLS handshake behind them when they are accepted.

Theory of operation. A client that has connected and not finished its handshake is half-open. It has arrived, and counts
by its address and against the rates at which clients may come (`server.Arrivals`). It is no connection yet: it takes no
place of `max.connections`, and has no more than ten seconds and the bytes that a handshake needs. There are at most
`MOST_HALF_OPEN` of them. When all places are taken, the address that has most of them loses its oldest one, if that had
a second at least; otherwise the next client waits in the backlog. So clients that say nothing keep nobody out, and many
that come at once all get their turn.

Clients whose handshake is done wait here until the server accepts them.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from ottla.base.errors import OttlaError
from ottla.base.ports import Listener, Network, Timer, Timers, Transport, Watcher
from ottla.runtime.rate_limited_log import RateLimitedLog
from ottla.runtime.server import Arrivals
from ottla.runtime.tls.handshake_lane import HandshakeLane
from ottla.runtime.tls.trust import ListenerTrust
from ottla.security.tls.handshake import Handshake
from ottla.security.tls.transport import TlsTransport

_log = logging.getLogger(__name__)
MOST_HALF_OPEN: Final = 256
HANDSHAKE_S: Final = 10.0
_LEAST_S: Final = 1.0
_ACCEPTS_PER_TURN: Final = 64


class _HalfOpen:
    """One client until its handshake is over."""

    __slots__ = ("handshake", "host", "since_s", "timer")

    def __init__(self, host: str, since_s: float) -> None:
        self.host = host
        self.since_s = since_s
        self.handshake: Handshake | None = None
        self.timer: Timer | None = None


class TlsListener:
    """`name` is the listener's, for log lines. `refused` is notified of every handshake that failed."""

    def __init__(
        self,
        inner: Listener,
        name: str,
        trust: ListenerTrust,
        lane: HandshakeLane,
        network: Network,
        timers: Timers,
        refused: Callable[[str], None],
        arrivals: Arrivals,
        *,
        names_principals: bool = True,
    ) -> None:
        self.address = inner.address
        self._inner = inner
        self._name = name
        self._trust = trust
        self._lane = lane
        self._network = network
        self._timers = timers
        self._refused = refused
        self._arrivals = arrivals
        self._names_principals = names_principals
        self._rate_limited_log = RateLimitedLog(_log, timers.now_s)
        self._half_open: dict[_HalfOpen, None] = {}
        self._per_host: Counter[str] = Counter()
        self._done: deque[TlsTransport] = deque()
        self._watcher: Watcher | None = None
        self._is_waiting = False
        self._is_too_fast = False
        self._is_closed = False

    # As the server sees it

    def accept(self) -> Transport:
        if not self._done:
            raise BlockingIOError
        transport = self._done.popleft()
        self._maybe_resume()
        return transport

    def watch(self, watcher: Watcher | None) -> None:
        self._watcher = watcher
        self._is_waiting = False
        self._inner.watch(self if watcher is not None and not self._is_too_fast else None)
        if watcher is not None and self._done:
            self._network.at_end_of_turn(self._tell)

    def close(self) -> None:
        self._is_closed = True
        self._watcher = None
        self._inner.close()
        for one in list(self._half_open):
            self._drop(one)
        while self._done:
            transport = self._done.popleft()
            self._arrivals.gone(transport.peer_host)
            transport.close()

    def _tell(self) -> None:
        if self._watcher is not None and self._done:
            self._watcher.on_readable()

    # Who comes

    def on_readable(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            is_full = len(self._half_open) + len(self._done) >= MOST_HALF_OPEN
            victim = self._victim() if is_full else None
            if is_full and victim is None:
                self._wait()
                return
            try:
                transport = self._inner.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as problem:  # No more descriptors, or memory: who comes waits for a second.
                self._rate_limited_log.warning("%s cannot accept a connection; trying again: %s", self._name, problem)
                self._wait()
                return
            if victim is not None:
                self._drop(victim)
                self._tell_refused(victim.host, f"the oldest of {MOST_HALF_OPEN} whose TLS handshake is not over")
            if not self._arrivals.arrive(transport, self._begin, self._on_slow_enough):
                self._is_too_fast = True
                self._inner.watch(None)
                return

    def on_writable(self) -> None:
        """Listeners are not written to."""

    def _victim(self) -> _HalfOpen | None:
        """Who has to go for the next client, if somebody may."""
        if not self._half_open:
            return None
        host = max(self._per_host, key=lambda host: self._per_host[host])
        oldest = next(one for one in self._half_open if one.host == host)
        return oldest if self._timers.now_s() - oldest.since_s >= _LEAST_S else None

    def _wait(self) -> None:
        """Who comes now stays in the backlog, until there is a place or a second is over."""
        if not self._is_waiting:
            self._is_waiting = True
            self._inner.watch(None)
            self._timers.after(_LEAST_S, self._maybe_resume)

    def _on_slow_enough(self) -> None:
        """Clients came faster than they may, and the last of them has waited for it."""
        self._is_too_fast = False
        self._is_waiting = True
        self._maybe_resume()

    def _maybe_resume(self) -> None:
        if self._is_waiting and not self._is_too_fast and not self._is_closed and self._watcher is not None:
            self._is_waiting = False
            self._inner.watch(self)

    def _begin(self, transport: Transport) -> None:
        one = _HalfOpen(transport.peer_host, self._timers.now_s())
        trust = self._trust
        try:
            server = trust.server_at(one.since_s)
        except (OSError, OttlaError) as problem:  # No more descriptors, perhaps: the certificate is read from a file.
            transport.close()
            self._arrivals.gone(one.host)
            self._tell_refused(one.host, str(problem))
            return
        one.handshake = Handshake(
            transport,
            server,
            later=self._network.at_end_of_turn,
            then=lambda secured: self._on_done(one, trust, secured),
            failed=lambda problem: self._on_failed(one, str(problem)),
            is_server=True,
            suites=trust.suites,
            pace=self._lane.add,
        )
        one.timer = self._timers.after(HANDSHAKE_S, lambda: self._on_late(one))
        self._half_open[one] = None
        self._per_host[one.host] += 1
        one.handshake.start()

    # What becomes of them

    def _on_done(self, one: _HalfOpen, trust: ListenerTrust, transport: TlsTransport) -> None:
        self._forget(one)
        if self._names_principals:
            try:
                transport.peer_principal = trust.principal_of(transport.peer_certificate)
            except ValueError as problem:
                transport.close()
                self._arrivals.gone(one.host)
                self._tell_refused(one.host, str(problem))
                self._maybe_resume()
                return
        self._done.append(transport)
        self._tell()

    def _on_failed(self, one: _HalfOpen, reason: str) -> None:
        self._forget(one)
        self._arrivals.gone(one.host)
        self._tell_refused(one.host, reason)
        self._maybe_resume()

    def _on_late(self, one: _HalfOpen) -> None:
        self._drop(one)
        self._tell_refused(one.host, f"the TLS handshake was not over after {HANDSHAKE_S:.0f} s")
        self._maybe_resume()

    def _drop(self, one: _HalfOpen) -> None:
        self._forget(one)
        self._arrivals.gone(one.host)
        assert one.handshake is not None
        one.handshake.cancel()

    def _forget(self, one: _HalfOpen) -> None:
        if one in self._half_open:
            del self._half_open[one]
            self._per_host[one.host] -= 1
            if not self._per_host[one.host]:
                del self._per_host[one.host]
            assert one.timer is not None
            one.timer.cancel()

    def _tell_refused(self, host: str, reason: str) -> None:
        self._refused("TLS handshake")
        self._rate_limited_log.warning("closed the connection of %s (%s): %s", host, self._name, reason)
