"""The connections of one client: opened when something is asked, opened again with growing pauses, closed when idle."""

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from ottla.base.pacing import Backoff
from ottla.client.client_log import ERROR
from ottla.client.errors import ClientClosed, Disconnected, KafkaError
from ottla.client.login.choice import Login, login_for
from ottla.client.network.promised_request import PromisedRequest, client_error
from ottla.client.promise import Promise
from ottla.client.settings import Address, ClientSettings
from ottla.client.world import ClientWorld
from ottla.wire.exchange.api_versions import ApiVersions
from ottla.wire.exchange.client_connection import ClientConnection, ConnectionKit
from ottla.wire.exchange.frames import SpareBuffers
from ottla.wire.exchange.login import ClientMechanism
from ottla.wire.exchange.open_request import Ask, BrokeProtocol

_SCRATCH_BYTES = 64 << 10
_MOST_SPARE_BYTES = 32 << 20
_IDLE_CHECKS_PER_PERIOD = 4


class Purpose(IntEnum):
    """What a connection is for. Responses come in order, so what must not wait behind a long poll has its own."""

    MAIN = 0
    COORDINATOR = 1
    FETCH = 2


class Key(NamedTuple):
    node_id: int
    line: Purpose


class Connections:
    """`on_lost` is notified of every connection that ends other than by our own will, with its node and the reason."""

    def __init__(
        self, world: ClientWorld, settings: ClientSettings, on_lost: Callable[[int, KafkaError], None]
    ) -> None:
        self._world = world
        self._on_lost = on_lost
        self._login = login_for(world, settings)
        self.spare = SpareBuffers(_MOST_SPARE_BYTES)
        """Where those give buffers back who have kept a part of a large response."""
        self._kit = ConnectionKit(
            world.timers,
            world.entropy,
            world.dialer,
            client_id=settings.text("client.id") or None,
            setup_timeout=Backoff(
                settings.integer("socket.connection.setup.timeout.ms"),
                settings.integer("socket.connection.setup.timeout.max.ms"),
            ),
            reconnect_backoff=Backoff(
                settings.integer("reconnect.backoff.ms"), settings.integer("reconnect.backoff.max.ms")
            ),
            scratch=memoryview(bytearray(_SCRATCH_BYTES)),
            # Kafka's default stops the system from growing the buffer with the traffic, and a fetch of 1 MB then takes
            # sixteen turns: it holds only if it was asked for.
            receive_buffer_bytes=(
                settings.integer("receive.buffer.bytes") if "receive.buffer.bytes" in settings.given else -1
            ),
            send_buffer_bytes=settings.integer("send.buffer.bytes"),
            new_login=None if self._login is None else partial(_mechanism, self._login),
            spare=self.spare,
        )
        self._connections: dict[Key, ClientConnection] = {}
        self._versions: dict[Key, Promise[ApiVersions]] = {}
        """What brokers serve, where somebody waits for a connection to be open."""
        self._idle_s = settings.integer("connections.max.idle.ms") / 1000
        self._is_closed = False
        self.has_reached_any = False
        """Whether a broker has ever let this client in."""
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
        deadline_s = self._world.now_s() + timeout_ms / 1000
        asked = PromisedRequest(api_key, request, newest, deadline_s, has_response=has_response)
        known = self._connections.get(key)
        if known is None or known.address != address:
            known = self._connection(key, address)
        known.ask(asked)
        return asked.outcome

    def versions(self, key: Key, address: Address) -> Promise[ApiVersions]:
        """What the broker serves; connects to it if need be, at once."""
        connection = self._connection(key, address)
        connection.connect()
        served = connection.served
        return self._versions.setdefault(key, Promise()) if served is None else Promise.resolved(served)

    def known_versions(self, node_id: int) -> ApiVersions | None:
        """What the broker serves, if a connection to it is open."""
        of_node = (connection for key, connection in self._connections.items() if key.node_id == node_id)
        return next((connection.served for connection in of_node if connection.is_open), None)

    def in_flight(self, node_id: int, line: Purpose = Purpose.MAIN) -> int:
        connection = self._connections.get(Key(node_id, line))
        return 0 if connection is None else connection.in_flight

    def is_open(self, node_id: int, line: Purpose = Purpose.MAIN) -> bool:
        connection = self._connections.get(Key(node_id, line))
        return connection is not None and connection.is_open

    def is_pausing(self, node_id: int, line: Purpose = Purpose.MAIN) -> bool:
        """Whether the broker could not be reached a moment ago."""
        connection = self._connections.get(Key(node_id, line))
        return connection is not None and connection.pause_left_s > 0

    def drop(self, node_id: int, error: KafkaError) -> None:
        """Closes the connections to a broker, which has moved or is gone."""
        for key in [key for key in self._connections if key.node_id == node_id]:
            self._close(key, error)

    def close(self) -> None:
        self._is_closed = True
        if self._login is not None:
            self._login.close()
        for key in list(self._connections):
            self._close(key, ClientClosed("the client was closed"))

    def _close(self, key: Key, error: KafkaError) -> None:
        self._connections.pop(key).close(error)
        self._reject_versions(key, error)

    def _connection(self, key: Key, address: Address) -> ClientConnection:
        known = self._connections.get(key)
        if known is not None:
            if known.address == address:
                return known
            self._close(key, Disconnected(f"the broker has moved from {known.address} to {address}"))
        assert not self._is_closed, "asked of a client that is closed"
        made = self._connections[key] = ClientConnection(
            self._kit,
            address,
            on_lost=partial(self._on_closed, key),
            on_open=partial(self._on_open, key),
            on_silence=partial(self._on_silence, address),
        )
        return made

    def _on_silence(self, address: Address, limit_s: float) -> None:
        self._world.log.trouble(_about(address), f"{address} does not answer; waiting for {limit_s:.3g} s at most")

    def _on_open(self, key: Key, served: ApiVersions) -> None:
        self.has_reached_any = True
        address = self._connections[key].address
        self._world.log.over(_about(address), f"connected to {address}")
        if (waiting := self._versions.pop(key, None)) is not None:
            waiting.resolve(served)

    def _on_closed(self, key: Key, problem: Exception) -> None:
        error = client_error(problem)
        self._tell(self._connections[key], error, is_wrong=isinstance(problem, BrokeProtocol))
        self._on_lost(key.node_id, error)
        self._reject_versions(key, error)

    def _tell(self, connection: ClientConnection, error: KafkaError, *, is_wrong: bool) -> None:
        """A connection that was open and unused is lost without harm: brokers close idle ones. `is_wrong`: it is not
        the broker that has ended it, but what the broker has sent.
        """
        about = _about(connection.address)
        if not error.retriable:
            self._world.log.trouble(about, str(error), level=ERROR)
        elif connection.was_in_use or is_wrong:
            why = error.message or f"{connection.address} could not be reached"
            self._world.log.trouble(about, f"{why}; next try in {max(connection.pause_left_s, 0.1):.1f} s")

    def _reject_versions(self, key: Key, error: KafkaError) -> None:
        if (waiting := self._versions.pop(key, None)) is not None:
            waiting.reject(error)

    def _close_idle(self) -> None:
        limit_s = self._world.now_s() - self._idle_s
        for key, connection in list(self._connections.items()):
            if connection.is_idle_since(limit_s):
                self._close(key, ClientClosed("the connection was idle"))


def _about(address: object) -> tuple[str, str]:
    return "broker", str(address)


def _mechanism(
    login: Login, host: str, then: Callable[[ClientMechanism], None], failed: Callable[[Exception], None]
) -> None:
    """As a connection asks for one (`NewLogin`)."""

    def on_done(done: Promise[ClientMechanism]) -> None:
        if done.error is not None:
            failed(done.error)
        else:
            then(done.value())

    login.mechanism(host).on_done(on_done)
