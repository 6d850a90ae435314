"""The connections of one client: opened when something is asked, opened again with growing pauses, closed when idle."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.client.errors import ClientClosed, Disconnected, KafkaError
from ottla.client.login.choice import login_for
from ottla.client.network.api_versions import ApiVersions
from ottla.client.network.asked import Ask, ConnectionLimits
from ottla.client.network.authentication import Authentication, NoAuthentication, SaslAuthentication
from ottla.client.network.backoff import Backoff
from ottla.client.network.broker_connection import BrokerConnection, State
from ottla.client.promise import Promise
from ottla.client.settings import Address, ClientSettings
from ottla.client.world import ClientWorld
from ottla.wire.exchange.spare_buffers import SpareBuffers

_SCRATCH_BYTES = 64 << 10
_MOST_SPARE_BYTES = 32 << 20
_IDLE_CHECKS_PER_PERIOD = 4


class Line(IntEnum):
    """What a connection is for. Responses come in order, so what must not wait behind a long poll has its own."""

    MAIN = 0
    COORDINATOR = 1
    FETCH = 2


class Key(NamedTuple):
    node_id: int
    line: Line


class _Pause(NamedTuple):
    """A broker could not be reached: how often in a row, when it may be tried again, and what was wrong."""

    failures: int
    until_s: float
    why: str


class Connections:
    """`on_lost` is told of every connection that ends other than by our own will, with its node and the reason."""

    def __init__(
        self, world: ClientWorld, settings: ClientSettings, on_lost: Callable[[int, KafkaError], None]
    ) -> None:
        self._world = world
        self._on_lost = on_lost
        self._limits = ConnectionLimits(
            client_id=settings.text("client.id") or None,
            setup_timeout_ms=settings.integer("socket.connection.setup.timeout.ms"),
            # Kafka's default stops the system from growing the buffer with the traffic, and a fetch of 1 MB then takes
            # sixteen turns: it holds only if it was asked for.
            receive_buffer_bytes=(
                settings.integer("receive.buffer.bytes") if "receive.buffer.bytes" in settings.given else -1
            ),
            send_buffer_bytes=settings.integer("send.buffer.bytes"),
        )
        self._setup_backoff = Backoff(
            settings.integer("socket.connection.setup.timeout.ms"),
            settings.integer("socket.connection.setup.timeout.max.ms"),
        )
        self._reconnect_backoff = Backoff(
            settings.integer("reconnect.backoff.ms"), settings.integer("reconnect.backoff.max.ms")
        )
        self._login = login_for(world, settings)
        self._open: dict[Key, BrokerConnection] = {}
        self._pauses: dict[Key, _Pause] = {}
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self.spare = SpareBuffers(_MOST_SPARE_BYTES)
        """Where those give buffers back who have kept a part of a large response."""
        self._idle_s = settings.integer("connections.max.idle.ms") / 1000
        self._is_closed = False
        if self._idle_s > 0:
            world.timers.every(max(self._idle_s / _IDLE_CHECKS_PER_PERIOD, 0.05), self._close_idle)

    def ask(
        self,
        key: Key,
        address: Address,
        api_key: int,
        request: Ask,
        *,
        timeout_ms: float,
        newest: int | None = None,
        has_response: bool = True,
    ) -> Promise[Any]:
        """One attempt. It waits for a connection that is being made, and for the pause after one that failed."""
        known = self._open.get(key)
        if known is not None and known.address == address:
            return known.ask(api_key, request, timeout_ms=timeout_ms, newest=newest, has_response=has_response)
        pause_s = self._pause_left_s(key)
        if pause_s <= 0:
            connection = self._connection(key, address)
            return connection.ask(api_key, request, timeout_ms=timeout_ms, newest=newest, has_response=has_response)
        outcome: Promise[Any] = Promise()
        if pause_s * 1000 >= timeout_ms:
            error = Disconnected(f"{self._pauses[key].why}; it is not tried again yet")
            self._world.timers.after(timeout_ms / 1000, lambda: outcome.reject(error))
            return outcome

        def ask_now() -> None:
            if self._is_closed:
                outcome.reject(ClientClosed("the client was closed"))
                return
            left_ms = max(timeout_ms - pause_s * 1000, 1)
            connection = self._connection(key, address)
            asked = connection.ask(api_key, request, timeout_ms=left_ms, newest=newest, has_response=has_response)
            asked.on_done(lambda done: pass_on(done, outcome))

        self._world.timers.after(pause_s, ask_now)
        return outcome

    def versions(self, key: Key, address: Address) -> Promise[ApiVersions]:
        """What the broker serves; connects to it if need be, at once."""
        return self._connection(key, address).ready

    def known_versions(self, node_id: int) -> ApiVersions | None:
        """What the broker serves, if a connection to it is open."""
        for key, connection in self._open.items():
            if key.node_id == node_id and connection.state is State.OPEN:
                return connection.ready.value()
        return None

    def in_flight(self, node_id: int, line: Line = Line.MAIN) -> int:
        connection = self._open.get(Key(node_id, line))
        return 0 if connection is None else connection.in_flight

    def is_open(self, node_id: int, line: Line = Line.MAIN) -> bool:
        connection = self._open.get(Key(node_id, line))
        return connection is not None and connection.state is State.OPEN

    def is_pausing(self, node_id: int, line: Line = Line.MAIN) -> bool:
        """Whether the broker could not be reached a moment ago."""
        return self._pause_left_s(Key(node_id, line)) > 0

    def drop(self, node_id: int, error: KafkaError) -> None:
        """Closes the connections to a broker, which has moved or is gone."""
        for key in [key for key in self._open if key.node_id == node_id]:
            self._open.pop(key).close(error)
        for key in [key for key in self._pauses if key.node_id == node_id]:
            del self._pauses[key]

    def close(self) -> None:
        self._is_closed = True
        if self._login is not None:
            self._login.close()
        for connection in list(self._open.values()):
            connection.close(ClientClosed("the client was closed"))

    def _connection(self, key: Key, address: Address) -> BrokerConnection:
        assert not self._is_closed, "asked of a client that is closed"
        connection = self._open.get(key)
        if connection is not None and connection.address != address:
            del self._open[key]
            connection.close(Disconnected(f"the broker has moved from {connection.address} to {address}"))
            connection = None
        if connection is None:
            failures = self._pauses[key].failures if key in self._pauses else 0
            limits = self._limits
            if failures:
                timeout_ms = self._setup_backoff.after(failures, self._world.entropy)
                limits = limits._replace(setup_timeout_ms=timeout_ms)
            connection = BrokerConnection(
                self._world,
                address,
                limits,
                self._authentication(address),
                self._scratch,
                lambda closed, error: self._on_closed(key, closed, error),
                self.spare,
            )
            self._open[key] = connection
            connection.ready.on_done(lambda done: self._on_ready(key, done))
        return connection

    def _authentication(self, address: Address) -> Authentication:
        if self._login is None:
            return NoAuthentication()
        return SaslAuthentication(self._login, address.host, self._world.entropy)

    def _on_ready(self, key: Key, done: Promise[ApiVersions]) -> None:
        if done.error is None:
            self._pauses.pop(key, None)

    def _on_closed(self, key: Key, connection: BrokerConnection, error: KafkaError) -> None:
        if self._open.get(key) is not connection:
            return  # by our own will
        del self._open[key]
        if isinstance(error, ClientClosed):
            return
        failures = 1 if connection.ready.is_done or key not in self._pauses else self._pauses[key].failures + 1
        pause_ms = self._reconnect_backoff.after(failures - 1, self._world.entropy)
        why = error.message or f"{connection.address} could not be reached"
        self._pauses[key] = _Pause(failures, self._world.now_s() + pause_ms / 1000, why)
        self._on_lost(key.node_id, error)

    def _pause_left_s(self, key: Key) -> float:
        pause = self._pauses.get(key)
        return 0.0 if pause is None or key in self._open else pause.until_s - self._world.now_s()

    def _close_idle(self) -> None:
        limit_s = self._world.now_s() - self._idle_s
        for connection in list(self._open.values()):
            if connection.state is State.OPEN and not connection.in_flight and connection.last_used_s < limit_s:
                connection.close(ClientClosed("the connection was idle"))


def pass_on(done: Promise[Any], outcome: Promise[Any]) -> None:
    """Settles a promise as another one was."""
    if done.error is not None:
        outcome.reject_if_waiting(done.error)
    else:
        outcome.resolve_if_waiting(done.value())
