"""One connection to another node: requests out, responses in, in order.

Theory of operation. A connection goes through these states, and back only from OPEN to LOGIN:

    DIALLING    what is asked waits
    GREETING    ApiVersions is asked; what is asked waits
    LOGIN       this node says who it is, where the other asks for that, as soon as it has what it shows; what is asked
                waits
    OPEN        requests leave as they are asked, in the newest version that both nodes know
    CLOSED      what waited or was in flight has failed, with NETWORK_EXCEPTION

A session that the other node lets last for a while only is begun anew before it ends (KIP-368): the connection goes
back to LOGIN, where responses to what was asked before still come first.

A request is given up when its time has passed: `failed` hears REQUEST_TIMED_OUT, and its response is dropped if it
still comes. Responses come in order, so one that is missing for the connection's own `request_timeout_ms` means that
none will come: then the connection is closed.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.base.errors import LocalProtocolError, ProtocolError
from ottla.base.lent import Lent, give_back, lend
from ottla.base.ports import Buffer, Dialer, Dialling, Timer, Timers, Transport
from ottla.runtime.apart import apart
from ottla.runtime.attribution import Attributed, work_for
from ottla.runtime.channels import Failed, Then
from ottla.runtime.peers.served_versions import ServedVersions, VersionQuestion, version_for
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.frames import Frames
from ottla.wire.exchange.outgoing import Outgoing
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.runtime.peers.node_login import NewLogin, NodeLogin
    from ottla.security.sasl.mechanism import ClientMechanism

_MAX_RESPONSE_BYTES: Final = 0x7FFFFFFF
_TRUSTED_RESPONSE_BYTES: Final = 64 << 20
_PART_OF_SESSION: Final = 0.85
_SLACK_S: Final = 0.0005
_NEVER: Final = float("inf")


class State(Enum):
    DIALLING = "dialling"
    GREETING = "greeting"
    LOGIN = "login"
    OPEN = "open"
    CLOSED = "closed"


class NodeAddress(NamedTuple):
    host: str
    port: int
    listener: str = ""
    """The name of the listener that is there; empty for that of the controllers."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ConnectionSettings(NamedTuple):
    """What every connection of a node to others has in common."""

    setup_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    receive_buffer_bytes: int = -1
    send_buffer_bytes: int = -1


class Asked:
    """A request until its one outcome, for the client's request that the loop was working for when it was asked.

    What hearing the outcome raises is not the connection's, nor that of the other requests on it (`runtime.apart`).
    """

    __slots__ = ("_failed", "_then", "_timers", "asked_s", "due_s", "is_over", "request", "version", "work")

    def __init__(
        self, request: Message, version: int, timers: Timers, timeout_ms: float, then: Then, failed: Failed
    ) -> None:
        now_s = timers.now_s()
        self._timers = timers
        self.request = request
        self.version = version
        self.asked_s = now_s
        self.due_s = now_s + timeout_ms / 1000
        self.is_over = False
        self.work: Attributed | None = None
        self._then = then
        self._failed = failed

    def answer(self, reply: Any) -> None:
        if not self.is_over:
            self.is_over = True
            apart(self._timers, work_for, self.work, self._then, reply)

    def fail(self, error: ErrorCode) -> None:
        if not self.is_over:
            self.is_over = True
            apart(self._timers, work_for, self.work, self._failed, error)


class NodeConnection:
    """`scratch` is what all connections of a node receive into. `on_closed` is told the reason, once."""

    def __init__(
        self,
        world: World,
        dialer: Dialer,
        address: NodeAddress,
        client_id: str,
        settings: ConnectionSettings,
        scratch: memoryview,
        on_closed: Callable[["NodeConnection", str], None],
        new_login: "NewLogin | None" = None,
    ) -> None:
        self.address = address
        self.state = State.DIALLING
        self.was_open = False
        self.login_problem = ""
        """Why the two nodes do not believe each other, if that is how the connection ended."""
        self._timers = world.timers
        self._settings = settings
        self._scratch = scratch
        self._on_closed = on_closed
        self._client_id = client_id
        self._new_login = new_login
        self._login: NodeLogin | None = None
        self._login_timer: Timer | None = None
        self._question = VersionQuestion(client_id)
        self._correlation: Correlation[Asked] = Correlation(client_id)
        self._frames = Frames(_MAX_RESPONSE_BYTES, "the largest frame", _TRUSTED_RESPONSE_BYTES)
        self._served: ServedVersions = {}
        self._transport: Transport | None = None
        self._waiting: deque[Asked] = deque()
        self._outgoing: Outgoing[Asked] = Outgoing()
        self._setup_timer = world.timers.after(settings.setup_timeout_ms / 1000, self._on_setup_timeout)
        self._timer: Timer | None = None
        self._timer_due_s = _NEVER
        self._dialling: Dialling | None = dialer.dial(
            address.host,
            address.port,
            receive_buffer_bytes=settings.receive_buffer_bytes,
            send_buffer_bytes=settings.send_buffer_bytes,
            then=self._on_connected,
            failed=lambda problem: self.close(f"cannot connect to {address}: {problem.strerror or problem}"),
        )

    @property
    def in_flight(self) -> int:
        """Requests that have been asked and not answered."""
        return len(self._correlation) + len(self._waiting)

    def ask(self, asked: Asked) -> None:
        assert self.state is not State.CLOSED, "asked over a connection that is closed"
        self._waiting.append(asked)
        self._watch_deadline(asked.due_s)
        if self.state is State.OPEN:
            self._send_waiting()

    def close(self, reason: str) -> None:
        """What waits or is in flight fails, after the owner knows that the connection is no more."""
        if self.state is State.CLOSED:
            return
        self._let_go()
        unanswered = [*self._correlation.take_unanswered(), *self._waiting]
        self._waiting.clear()
        self._on_closed(self, reason)
        for asked in unanswered:
            asked.fail(ErrorCode.NETWORK_EXCEPTION)

    def forget(self) -> None:
        """Closes without a word to anyone: the node stops."""
        if self.state is not State.CLOSED:
            self._let_go()

    def _let_go(self) -> None:
        self.state = State.CLOSED
        self._setup_timer.cancel()
        for timer in (self._timer, self._login_timer):
            if timer is not None:
                timer.cancel()
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        if self._transport is not None:
            self._transport.close()
        self._frames.clear()
        self._outgoing.clear()

    # Coming up

    def _on_connected(self, transport: Transport) -> None:
        self._dialling = None
        self._transport = transport
        self.state = State.GREETING
        transport.watch(self, reading=True, writing=False)
        self._send([self._question.encoded()])

    def _on_setup_timeout(self) -> None:
        self.close(f"{self.address} cannot be reached in {self._settings.setup_timeout_ms} ms")

    def _on_greeting(self, frame: Buffer) -> None:
        served = self._question.on_frame(frame)
        if served is None:
            self._send([self._question.encoded()])
            return
        self._served = served
        if self._new_login is not None:
            self._begin_login(self._new_login)
        else:
            self._on_open()

    def _on_open(self) -> None:
        self.state = State.OPEN
        self.was_open = True
        self._setup_timer.cancel()
        self._send_waiting()

    # Saying who we are

    def _begin_login(self, new_login: "NewLogin") -> None:
        self.state = State.LOGIN
        new_login(self.address.host, self._on_mechanism, self._on_no_mechanism)

    def _on_mechanism(self, mechanism: "ClientMechanism") -> None:
        """There is something to show: at once, or later, when the connection may be gone."""
        from ottla.runtime.peers.node_login import NodeLogin

        if self.state is State.LOGIN:
            self._login = NodeLogin(mechanism, self._client_id)
            self._send([self._login.first()])

    def _on_no_mechanism(self, reason: str) -> None:
        if self.state is State.LOGIN:
            self.login_problem = reason
            self.close(f"{self.address} cannot be told who this node is: {reason}")

    def _on_login(self, login: "NodeLogin", frame: Buffer) -> None:
        more = login.on_frame(frame)
        if more is not None:
            self._send([more])
            return
        self._login = None
        if login.session_lifetime_ms > 0 and self._new_login is not None:
            again_s = login.session_lifetime_ms / 1000 * _PART_OF_SESSION
            self._login_timer = self._timers.after(again_s, partial(self._login_again, self._new_login))
        self._on_open()

    def _login_again(self, new_login: "NewLogin") -> None:
        if self.state is State.OPEN:
            self._setup_timer = self._timers.after(self._settings.setup_timeout_ms / 1000, self._on_setup_timeout)
            self._begin_login(new_login)

    # Requests out

    def _send_waiting(self) -> None:
        parts: list[Any] = []
        refused: list[Asked] = []
        while self._waiting:
            asked = self._waiting.popleft()
            if asked.is_over:
                continue
            version = version_for(self._served, asked.request._schema.api_key, asked.version)
            try:
                if version is None:
                    refused.append(asked)
                else:
                    parts += self._correlation.ask(asked.request, version, asked)
            except LocalProtocolError:  # a field that the older version has no place for
                refused.append(asked)
        if parts:
            self._send(parts)
        for asked in refused:
            asked.fail(ErrorCode.UNSUPPORTED_VERSION)

    def _send(self, parts: list[Any]) -> None:
        transport = self._transport
        assert transport is not None, "there is a transport before there are requests"
        try:
            is_all_sent = self._outgoing.send(transport, parts)
        except OSError as problem:
            self._lose(problem)
            return
        if not is_all_sent:
            transport.watch(self, reading=True, writing=True)

    def on_writable(self) -> None:
        transport = self._transport
        if transport is None or self.state is State.CLOSED:
            return
        try:
            is_all_sent = self._outgoing.go_on(transport)
        except OSError as problem:
            self._lose(problem)
            return
        transport.watch(self, reading=True, writing=not is_all_sent)

    # Responses in

    def on_readable(self) -> None:
        transport = self._transport
        if transport is None:
            return
        try:
            while self.state is not State.CLOSED:
                if self._frames.has_begun:
                    with self._frames.room() as room:
                        size = len(room)
                        count = transport.receive_into(room)
                    if count:
                        self._frames.fill(count, self._on_frame)
                else:
                    size = len(self._scratch)
                    count = transport.receive_into(self._scratch)
                    if count:
                        try:
                            self._frames.take(lend(self._scratch[:count]), self._on_lent_frame)
                        finally:
                            give_back(self._scratch, count)
                if not count:
                    self.close(f"{self.address} has closed the connection")
                elif count < size:
                    return
        except BlockingIOError:
            pass
        except OSError as problem:
            self._lose(problem)
        except ProtocolError as problem:
            if self.state is State.LOGIN:
                self.login_problem = str(problem)
            self.close(f"{self.address} broke the protocol: {problem}")
        except Exception:
            # A bug in reading a response. The frames behind it are lost, so nothing more can be read here.
            self.close(f"a response of {self.address} could not be handled")
            raise

    def _on_lent_frame(self, frame: Lent) -> bool:
        """A response may be kept, and this one is only lent."""
        return self._on_frame(memoryview(bytes(frame)))

    def _on_frame(self, frame: memoryview) -> bool:
        if self.state is State.GREETING:
            self._on_greeting(frame)
        elif self._login is not None and not len(self._correlation):
            self._on_login(self._login, frame)
        elif self.state is not State.CLOSED:
            asked, response = self._correlation.on_frame(frame)
            asked.answer(response)
        return self.state is not State.CLOSED

    # What goes wrong

    def _watch_deadline(self, due_s: float) -> None:
        """One timer stands for all requests, at the earliest deadline; it looks again when it fires."""
        if due_s < self._timer_due_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due_s = due_s
            self._timer = self._timers.after(max(due_s - self._timers.now_s(), 0), self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer_due_s = _NEVER
        now_s = self._timers.now_s() + _SLACK_S
        in_flight = self._correlation.in_flight()
        late = [asked for asked in (*in_flight, *self._waiting) if asked.due_s <= now_s]
        last_s = self._settings.request_timeout_ms / 1000
        is_dead = False
        for asked in late:
            is_dead = is_dead or (asked.asked_s + last_s <= now_s and asked in in_flight)
            asked.due_s = max(asked.asked_s + last_s, now_s + _SLACK_S)
        self._waiting = deque(asked for asked in self._waiting if asked not in late)
        if not is_dead:
            for asked in (*in_flight, *self._waiting):
                self._watch_deadline(asked.due_s)
        for asked in late:
            asked.fail(ErrorCode.REQUEST_TIMED_OUT)
        if is_dead:
            self.close(f"{self.address} does not answer")

    def _lose(self, problem: OSError) -> None:
        self.close(f"the connection to {self.address} broke: {problem.strerror or problem}")
