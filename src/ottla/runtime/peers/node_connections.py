"""A node's connections to other nodes: opened when something is asked, opened again after pauses that grow.

A node may have several connections to another, each for a purpose: what must not wait behind something slow (a long
poll, a large fetch) has one of its own. Nothing is asked again here: a request whose connection breaks
has failed, and the asking code decides.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.base.errors import LocalProtocolError
from ottla.base.pacing import Backoff
from ottla.base.ports import Dialer, Timers
from ottla.runtime.apart import apart
from ottla.runtime.attribution import WORK, Attributed, current, work_for
from ottla.runtime.channels import Failed, Then
from ottla.runtime.rate_limited_log import TroubleLog
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.open_request import BrokeProtocol, ConnectionFailed, OpenRequest, Refused, RequestLate
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.wire.exchange.client_connection import ClientConnection, NewLogin
    from ottla.wire.exchange.login import ClientMechanism

_log = logging.getLogger(__name__)
_SCRATCH_BYTES: Final = 64 << 10
_RECONNECT_BACKOFF: Final = Backoff(50, 1000)
"""How long a node waits before it connects again: `reconnect.backoff.ms` and `.max.ms` in Kafka's clients."""


class ConnectionName(NamedTuple):
    """One connection's name: the node that it leads to, and what it is for."""

    node_id: int
    purpose: str


class NodeAddress(NamedTuple):
    host: str
    port: int
    listener: str = ""
    """The name of the listener that is there; empty for that of the controllers."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class PeerTraffic:
    """What went over connections of a purpose: requests and their responses, in numbers and bytes."""

    __slots__ = ("bytes_in", "bytes_out", "requests", "responses")

    def __init__(self) -> None:
        self.requests = self.responses = self.bytes_out = self.bytes_in = 0


class PeerSettings(NamedTuple):
    """What every connection of a node to others has in common."""

    setup_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000


class PeerRequest(OpenRequest):
    """For the client's request that the loop was working for when it was asked.

    It fails alone when its time is over: `failed` hears REQUEST_TIMED_OUT. Its connection is closed when it has had no
    response for `request_timeout_ms`. What hearing the outcome raises is not the connection's, nor that of the other
    requests on it (`runtime.apart`).
    """

    __slots__ = ("_failed", "_is_over", "_then", "_timers", "_traffic", "_work")

    def __init__(
        self,
        request: Message,
        newest: int,
        timers: Timers,
        timeout_ms: float,
        request_timeout_ms: float,
        then: Then,
        failed: Failed,
        traffic: PeerTraffic,
    ) -> None:
        now_s = timers.now_s()
        due_s = now_s + timeout_ms / 1000
        dead_s = max(due_s, now_s + request_timeout_ms / 1000)
        super().__init__(request._schema.api_key, request, newest, due_s=due_s, dead_s=dead_s)
        self._is_over = False
        self._traffic = traffic
        self._timers = timers
        self._work: Attributed | None = current()
        self._then = then
        self._failed = failed

    def answer(self, response: Any) -> None:
        self._traffic.responses += 1
        if not self._is_over:
            self._is_over = True
            if self._work is None:
                apart(self._timers, self._then, response)
            else:
                apart(self._timers, work_for, self._work, self._then, response)

    def fail(self, problem: Exception) -> None:
        if not self._is_over:
            self._is_over = True
            apart(self._timers, work_for, self._work, self._failed, _error_of(problem))


def _error_of(problem: Exception) -> ErrorCode:
    if isinstance(problem, LocalProtocolError):  # not served there, or a field that the older version has no place for
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.REQUEST_TIMED_OUT if isinstance(problem, RequestLate) else ErrorCode.NETWORK_EXCEPTION


class NodeConnections:
    """See the module. `client_id` is what the other nodes see of this one, with the purpose of the connection after it.

    `logins` are for listeners by name at which nodes have to say who they are, `dialers` for those that are not reached
    by plain TCP; the controllers' has the empty name.
    """

    def __init__(
        self,
        world: World,
        client_id: str,
        settings: PeerSettings | None = None,
        logins: "Mapping[str, NewLogin] | None" = None,
        dialers: Mapping[str, Dialer] | None = None,
    ) -> None:
        self.settings = settings or PeerSettings()
        self._world = world
        self._client_id = client_id
        self.logins = logins or {}
        self._dialers = dialers or {}
        self._connections: dict[ConnectionName, ClientConnection] = {}
        self._traffic: dict[str, PeerTraffic] = {}
        """By purpose; the bytes are of connections that were dropped."""
        self._login_problems: dict[ConnectionName, str] = {}
        """Where the last attempt ended at a login: why. They are logged once."""
        self._troubles = TroubleLog(_log, world.timers.now_s)
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._is_closed = False

    def ask(
        self,
        name: ConnectionName,
        address: NodeAddress,
        request: Message,
        version: int,
        *,
        then: Then,
        failed: Failed,
        timeout_ms: float | None = None,
    ) -> None:
        """One attempt. It waits for a connection that is being made, and for the pause after one that failed.

        `failed` hears NETWORK_EXCEPTION, REQUEST_TIMED_OUT or UNSUPPORTED_VERSION. After `close` nobody is called.
        """
        if self._is_closed:
            return
        limit_ms = self.settings.request_timeout_ms
        traffic = self._traffic.get(name.purpose)
        if traffic is None:
            traffic = self._traffic[name.purpose] = PeerTraffic()
        traffic.requests += 1
        asked = PeerRequest(
            request, version, self._world.timers, timeout_ms or limit_ms, limit_ms, then, failed, traffic
        )
        before, WORK.request = WORK.request, None  # What a connection does later is the node's own.
        try:
            self._connection_to(name, address).ask(asked)
        finally:
            WORK.request = before

    def is_open(self, name: ConnectionName) -> bool:
        return name in self._connections and self._connections[name].is_open

    def traffic(self, purpose: str) -> PeerTraffic:
        """Of all connections whose purpose begins so."""
        total = PeerTraffic()
        for known, one in self._traffic.items():
            if known.startswith(purpose):
                total.requests += one.requests
                total.responses += one.responses
                total.bytes_out += one.bytes_out
                total.bytes_in += one.bytes_in
        for name, connection in self._connections.items():
            if name.purpose.startswith(purpose):
                total.bytes_out += connection.bytes_out
                total.bytes_in += connection.bytes_in
        return total

    def drop(self, name: ConnectionName) -> None:
        """Closes a connection that is of no use any more, because its node has left or moved."""
        connection = self._connections.pop(name, None)
        self._login_problems.pop(name, None)
        if connection is not None:
            gone = self._traffic.setdefault(name.purpose, PeerTraffic())
            gone.bytes_out += connection.bytes_out
            gone.bytes_in += connection.bytes_in
            connection.close(ConnectionFailed(f"the node at {connection.address} has left, or moved"))

    def close(self) -> None:
        """The node stops: everything that was asked is forgotten."""
        self._is_closed = True
        open_ones, self._connections = self._connections, {}
        for connection in open_ones.values():
            connection.forget()

    def _connection_to(self, name: ConnectionName, address: NodeAddress) -> "ClientConnection":
        connection = self._connections.get(name)
        if connection is not None and connection.address != address:
            self.drop(name)
            connection = None
        if connection is None:
            connection = self._connections[name] = self._new_connection(name, address)
        return connection

    def _new_connection(self, name: ConnectionName, address: NodeAddress) -> "ClientConnection":
        # A node that is alone connects to nobody.
        from ottla.wire.exchange.client_connection import ClientConnection, ConnectionKit

        listener = address.listener
        kit = ConnectionKit(
            self._world.timers,
            self._world.entropy,
            self._dialers.get(listener, self._world.network),
            client_id=f"{self._client_id}-{name.purpose}",
            setup_timeout=Backoff(self.settings.setup_timeout_ms, self.settings.setup_timeout_ms),
            reconnect_backoff=_RECONNECT_BACKOFF,
            scratch=self._scratch,
            new_login=partial(self._log_in, listener) if listener in self.logins else None,
        )
        return ClientConnection(kit, address, on_lost=partial(self._on_lost, name))

    def _log_in(
        self, listener: str, host: str, then: "Callable[[ClientMechanism], None]", failed: Callable[[Exception], None]
    ) -> None:
        """As the settings are now."""
        self.logins[listener](host, then, failed)

    def _on_lost(self, name: ConnectionName, problem: Exception) -> None:
        if isinstance(problem, BrokeProtocol):
            self._troubles.warning(name, "node %s (%s): %s", name.node_id, name.purpose, problem)
        else:
            _log.debug("node %s (%s): %s", name.node_id, name.purpose, problem)
        login_problem = str(problem) if isinstance(problem, Refused) else ""
        if login_problem and login_problem != self._login_problems.get(name):
            _log.warning("cannot log in at node %s (%s): %s", name.node_id, name.purpose, login_problem)
        self._login_problems[name] = login_problem
