"""A node's connections to other nodes: opened when something is asked, opened again after pauses that grow.

One line to a node is one connection. What must not wait behind something slow (a long poll, a large fetch) has a line
of its own. Nothing is asked again here: a request whose connection breaks has failed, and the asking code decides.
"""

import logging
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ports import Dialer, Entropy
from ottla.runtime.attribution import current, work_for
from ottla.runtime.channels import Failed, Then
from ottla.runtime.peers.node_connection import Asked, ConnectionSettings, NodeAddress, NodeConnection, State
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.runtime.peers.node_login import NewLogin

_log = logging.getLogger(__name__)
_SCRATCH_BYTES: Final = 64 << 10
_MOST_DOUBLINGS: Final = 20


class Line(NamedTuple):
    """One connection's name: the node that it leads to, and what it is for."""

    node_id: int
    purpose: str


class Pauses(NamedTuple):
    """How long a node waits before it connects again: `reconnect.backoff.ms` and `.max.ms` in Kafka's clients."""

    first_ms: int = 50
    most_ms: int = 1000

    def after(self, failures: int, entropy: Entropy) -> float:
        """Milliseconds after so many failures in a row, a fifth more or less, so that nodes do not come together."""
        grown_ms = min(self.first_ms << min(failures - 1, _MOST_DOUBLINGS), max(self.first_ms, self.most_ms))
        return grown_ms * (800 + entropy.randrange(401)) / 1000


class _Reach:
    """What is known of one line: its connection, how often it failed in a row, and what waits for the next attempt."""

    __slots__ = ("address", "connection", "failures", "login_problem", "paused_until_s", "waiting")

    def __init__(self, address: NodeAddress) -> None:
        self.address = address
        self.connection: NodeConnection | None = None
        self.failures = 0
        self.login_problem = ""
        self.paused_until_s = 0.0
        self.waiting: deque[Asked] = deque()


class NodeConnections:
    """See the module. `client_id` is what the other nodes see of this one, with the line's purpose after it.

    `logins` are for listeners by name at which nodes have to say who they are, `dialers` for those that are not reached
    by plain TCP; the controllers' has the empty name.
    """

    def __init__(
        self,
        world: World,
        client_id: str,
        settings: ConnectionSettings | None = None,
        pauses: Pauses | None = None,
        logins: "Mapping[str, NewLogin] | None" = None,
        dialers: Mapping[str, Dialer] | None = None,
    ) -> None:
        self.settings = settings or ConnectionSettings()
        self._world = world
        self._client_id = client_id
        self._pauses = pauses or Pauses()
        self.logins = logins or {}
        self._dialers = dialers or {}
        self._lines: dict[Line, _Reach] = {}
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._is_closed = False

    def ask(
        self,
        line: Line,
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
        timers = self._world.timers
        asked = Asked(request, version, timers, timeout_ms or self.settings.request_timeout_ms, then, failed)
        asked.work = current()
        work_for(None, self._ask, line, address, asked)

    def is_open(self, line: Line) -> bool:
        reach = self._lines.get(line)
        return reach is not None and reach.connection is not None and reach.connection.state is State.OPEN

    def drop(self, line: Line) -> None:
        """Closes a line that is of no use any more, because its node has left or moved."""
        reach = self._lines.pop(line, None)
        if reach is not None:
            self._end(reach, "the node has left, or moved")

    def close(self) -> None:
        """The node stops: everything that was asked is forgotten."""
        self._is_closed = True
        lines, self._lines = self._lines, {}
        for reach in lines.values():
            for asked in reach.waiting:
                asked.is_over = True
            if reach.connection is not None:
                reach.connection.forget()

    def _ask(self, line: Line, address: NodeAddress, asked: Asked) -> None:
        reach = self._lines.get(line)
        if reach is not None and reach.address != address:
            self.drop(line)
            reach = None
        if reach is None:
            reach = self._lines[line] = _Reach(address)
        pause_s = reach.paused_until_s - asked.asked_s
        if reach.connection is None and pause_s > 0:
            reach.waiting.append(asked)
            if len(reach.waiting) == 1:
                self._world.timers.after(pause_s, lambda: self._go_on(line, reach))
        else:
            self._connection(line, reach).ask(asked)

    def _go_on(self, line: Line, reach: _Reach) -> None:
        """The pause is over: what waited is asked now, if its time has not passed."""
        waiting, reach.waiting = reach.waiting, deque()
        now_s = self._world.timers.now_s()
        for asked in waiting:
            if asked.is_over:
                continue
            if asked.due_s <= now_s:
                asked.fail(ErrorCode.REQUEST_TIMED_OUT)
            elif self._lines.get(line) is reach:
                self._connection(line, reach).ask(asked)
            else:
                asked.fail(ErrorCode.NETWORK_EXCEPTION)

    def _connection(self, line: Line, reach: _Reach) -> NodeConnection:
        if reach.connection is None:
            reach.connection = NodeConnection(
                self._world,
                self._dialers.get(reach.address.listener, self._world.network),
                reach.address,
                f"{self._client_id}-{line.purpose}",
                self.settings,
                self._scratch,
                lambda closed, reason: self._on_closed(line, reach, closed, reason),
                self.logins.get(reach.address.listener),
            )
        return reach.connection

    def _on_closed(self, line: Line, reach: _Reach, connection: NodeConnection, reason: str) -> None:
        if reach.connection is not connection:
            return
        reach.connection = None
        reach.failures = 1 if connection.was_open else reach.failures + 1
        pause_ms = self._pauses.after(reach.failures, self._world.entropy)
        reach.paused_until_s = self._world.timers.now_s() + pause_ms / 1000
        _log.debug("node %s (%s): %s", line.node_id, line.purpose, reason)
        if connection.login_problem and connection.login_problem != reach.login_problem:
            _log.warning("node %s (%s): %s", line.node_id, line.purpose, connection.login_problem)
        reach.login_problem = connection.login_problem

    def _end(self, reach: _Reach, reason: str) -> None:
        connection, reach.connection = reach.connection, None
        waiting, reach.waiting = reach.waiting, deque()
        if connection is not None:
            connection.close(reason)
        for asked in waiting:
            asked.fail(ErrorCode.NETWORK_EXCEPTION)
