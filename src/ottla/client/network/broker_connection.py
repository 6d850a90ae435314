"""One connection to one broker: requests out, responses in, in order.

Theory of operation. A connection goes through four states, and never back:

    DIALLING      what is asked waits
    GREETING      ApiVersions, then authentication; what is asked waits
    OPEN          requests are sent as they are asked, in the newest version that both sides know
    CLOSED        what waited or was in flight is rejected, with the reason

A request that is not answered in its time closes the connection, as in Kafka's own clients: responses come in order, so
nothing behind it would come either. While the broker has us throttled (KIP-219), what is asked waits; so it does while
the broker is told anew who we are (KIP-368), which is done when a request comes after `_authenticate_again_s`.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from ottla.base.errors import LocalProtocolError, ProtocolError
from ottla.base.lent import Lent, give_back, lend
from ottla.base.ports import Buffer, Timer, Transport
from ottla.client.errors import Disconnected, KafkaError, RequestTimedOut, SslAuthenticationFailed, UnsupportedVersion
from ottla.client.network.api_versions import ApiVersions, Negotiation
from ottla.client.network.asked import Ask, Asked, ConnectionLimits
from ottla.client.network.authentication import NO_LIMIT, Authentication
from ottla.client.promise import Promise
from ottla.client.settings import Address
from ottla.client.world import ClientWorld, TlsFailed
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.frames import Frames
from ottla.wire.exchange.outgoing import Outgoing
from ottla.wire.exchange.spare_buffers import SpareBuffers
from ottla.wire.message import Message

_MAX_RESPONSE_BYTES: Final = 0x7FFFFFFF
_TRUSTED_RESPONSE_BYTES: Final = 64 << 20
_SIZE: Final = 4
_PROTOCOL: Final = "security.protocol"
_TLS_ALERT: Final = b"\x15\x03"
"""How a listener with TLS answers plain bytes. No first response is so long that its size begins so."""


class State(Enum):
    DIALLING = "dialling"
    GREETING = "greeting"
    OPEN = "open"
    CLOSED = "closed"


class BrokerConnection:
    """`scratch` is what all connections of a client receive into. `on_closed` is told the reason, once."""

    def __init__(
        self,
        world: ClientWorld,
        address: Address,
        limits: ConnectionLimits,
        authentication: Authentication,
        scratch: memoryview,
        on_closed: Callable[["BrokerConnection", KafkaError], None],
        spare: SpareBuffers | None = None,
    ) -> None:
        self.address = address
        self.state = State.DIALLING
        self.ready: Promise[ApiVersions] = Promise()
        """What the broker serves, once it has told."""
        self.last_used_s = world.now_s()
        self._world = world
        self._authentication = authentication
        self._scratch = scratch
        self._on_closed = on_closed
        self._limits = limits
        self._negotiation = Negotiation(limits.client_id)
        self._correlation: Correlation[Asked] = Correlation(limits.client_id)
        self._frames = Frames(_MAX_RESPONSE_BYTES, "the largest frame", _TRUSTED_RESPONSE_BYTES, spare)
        self._versions: ApiVersions | None = None
        self._newest: dict[tuple[int, int | None], int] = {}
        """Of an API, at most a version: which one is used."""
        self._is_authenticating = False
        self._has_answered = False
        """Anything but its versions."""
        self._authenticate_again_s = NO_LIMIT
        self._transport: Transport | None = None
        self._waiting: deque[Asked] = deque()
        self._outgoing: Outgoing[Asked] = Outgoing()
        self._throttled_until_s = 0.0
        self._timer: Timer = world.timers.after(limits.setup_timeout_ms / 1000, self._on_setup_timeout)
        self._timer_due_s = 0.0
        self._dialling = world.dialer.dial(
            address.host,
            address.port,
            receive_buffer_bytes=limits.receive_buffer_bytes,
            send_buffer_bytes=limits.send_buffer_bytes,
            then=self._on_connected,
            failed=self._on_dial_failed,
        )

    @property
    def in_flight(self) -> int:
        """Requests that have been asked and not answered."""
        return len(self._correlation) + len(self._waiting) + len(self._outgoing.leaving())

    def ask(
        self, api_key: int, request: Ask, *, timeout_ms: float, newest: int | None = None, has_response: bool = True
    ) -> Promise[Any]:
        """What the broker answers; None, once the bytes are on their way, if it has no response."""
        assert self.state is not State.CLOSED, "asked of a connection that is closed"
        outcome: Promise[Any] = Promise()
        now_s = self._world.now_s()
        deadline_s = now_s + timeout_ms / 1000
        asked = Asked(api_key, request, newest, has_response, deadline_s, outcome)
        if self.state is not State.OPEN:
            self._waiting.append(asked)
            return outcome
        if (
            self._waiting
            or self._is_authenticating
            or not self._throttled_until_s <= now_s < self._authenticate_again_s
        ):
            self._waiting.append(asked)
            self._send_waiting()
        else:
            self._send_at_once(asked)
        if deadline_s < self._timer_due_s:
            self._watch_deadline(deadline_s)
        return outcome

    def close(self, error: KafkaError) -> None:
        """Rejects what is asked and not answered with this error."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self._timer.cancel()
        self._dialling.cancel()
        if self._transport is not None:
            self._transport.close()
        self._frames.clear()
        unanswered = self._open_requests()
        self._correlation.take_unanswered()
        self._waiting.clear()
        self._outgoing.clear()
        self._on_closed(self, error)
        self.ready.reject_if_waiting(error)
        for asked in unanswered:
            asked.outcome.reject_if_waiting(error)

    # --- becoming open ---

    def _on_connected(self, transport: Transport) -> None:
        self.state = State.GREETING
        self._transport = transport
        transport.watch(self, reading=True, writing=False)
        self._send([self._negotiation.question()])

    def _greet(self, frame: Buffer) -> None:
        self._versions = self._negotiation.on_frame(frame)
        if self._versions is None:
            self._send([self._negotiation.question()])
        else:
            self._authenticate(self._versions)

    def _authenticate(self, versions: ApiVersions) -> None:
        self._is_authenticating = True
        begun_s = self._world.now_s()
        self._authentication.begin(self._exchange, versions).on_done(
            lambda done: self._on_authenticated(done, begun_s, versions)
        )

    def _on_authenticated(self, done: Promise[float], begun_s: float, versions: ApiVersions) -> None:
        if self.state is State.CLOSED:
            return
        if done.error is not None:
            self._close_for(done.error)
            return
        self._is_authenticating = False
        self._authenticate_again_s = begun_s + done.value() / 1000
        if self.state is State.GREETING:
            self.state = State.OPEN
            self._timer.cancel()
            self._timer_due_s = float("inf")
            self.ready.resolve(versions)
        self._send_waiting()
        if deadlines := [asked.deadline_s for asked in self._open_requests()]:
            self._watch_deadline(min(deadlines))

    def _exchange(self, request: Message, version: int) -> Promise[Any]:
        """Past what waits: for authentication, which all else waits for."""
        outcome: Promise[Any] = Promise()
        if self.state is State.CLOSED:
            outcome.reject(Disconnected(f"the connection to {self.address} was closed meanwhile"))
            return outcome
        deadline_s = self._world.now_s() + self._limits.setup_timeout_ms / 1000
        asked = Asked(request._schema.api_key or 0, request, version, True, deadline_s, outcome)
        self._send(self._correlation.ask(request, version, asked))
        if self.state is State.OPEN:
            self._watch_deadline(deadline_s)
        return outcome

    def _on_dial_failed(self, problem: OSError) -> None:
        if isinstance(problem, TlsFailed):
            self.close(SslAuthenticationFailed(str(problem)))
        else:
            self.close(Disconnected(f"no connection to {self.address}: {problem.strerror or problem}"))

    def _on_setup_timeout(self) -> None:
        self.close(Disconnected(f"{self.address} did not answer within {self._limits.setup_timeout_ms:.0f} ms"))

    # --- requests out ---

    def _send_at_once(self, asked: Asked) -> None:
        """Nothing stands before it, as mostly."""
        try:
            parts = self._encode(asked)
        except (LocalProtocolError, KafkaError) as problem:
            asked.outcome.reject_if_waiting(_refusal(problem))
            return
        if not asked.has_response:
            self._outgoing.leaves_after(len(parts), asked)
        self._send(parts)

    def _encode(self, asked: Asked) -> list[Any]:
        assert self._versions is not None, "a connection that is open knows the versions"
        kind = asked.api_key, asked.newest
        version = self._newest.get(kind)
        if version is None:
            version = self._newest[kind] = self._versions.newest(*kind)
        request = asked.request(version) if callable(asked.request) else asked.request
        return self._correlation.ask(request, version, asked, has_response=asked.has_response)

    def _send_waiting(self) -> None:
        """What a refusal sets in motion may ask this connection: it is told when all is on its way, in order."""
        parts: list[Any] = []
        refused: list[tuple[Asked, Exception]] = []
        now_s = self._world.now_s()
        versions = self._versions
        if versions is None or self._is_authenticating:
            return
        if self._waiting and now_s >= self._authenticate_again_s:
            self._authenticate(versions)
            return
        while self._waiting and self.state is State.OPEN:
            if now_s < self._throttled_until_s:
                self._world.timers.after(self._throttled_until_s - now_s, self._on_throttle_over)
                break
            asked = self._waiting.popleft()
            try:
                parts += self._encode(asked)
            except (LocalProtocolError, KafkaError) as problem:
                refused.append((asked, _refusal(problem)))
                continue
            if not asked.has_response:
                self._outgoing.leaves_after(len(parts), asked)
        if parts:
            self._send(parts)
        for asked, error in refused:
            asked.outcome.reject_if_waiting(error)

    def _on_throttle_over(self) -> None:
        if self.state is State.OPEN:
            self._send_waiting()

    def _send(self, parts: list[Any]) -> None:
        self.last_used_s = self._world.now_s()
        transport = self._transport
        assert transport is not None, "there is a transport before there are requests"
        try:
            is_all_sent = self._outgoing.send(transport, parts)
        except OSError as problem:
            self._lose(problem)
            return
        if not is_all_sent:
            transport.watch(self, reading=True, writing=True)
        self._end_left()

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
        self._end_left()

    def _end_left(self) -> None:
        for asked in self._outgoing.left():
            asked.outcome.resolve_if_waiting(None)

    # --- responses in ---

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
                        if self._versions is None and bytes(self._scratch[:2]) == _TLS_ALERT:
                            raise SslAuthenticationFailed(f"{self.address} speaks TLS, and {_PROTOCOL} has none")
                        try:
                            self._take(lend(self._scratch[:count]))
                        finally:
                            give_back(self._scratch, count)
                if not count:
                    self.close(Disconnected(f"{self.address} closed the connection{self._supposition()}"))
                elif count < size:
                    return
        except BlockingIOError:
            pass
        except OSError as problem:
            self._lose(problem)
        except (ProtocolError, KafkaError) as problem:
            self._close_for(problem)
        except Exception:
            # A bug in what a response set in motion. The frames behind it are lost, so nothing more can be read here.
            self.close(Disconnected(f"a response of {self.address} could not be handled"))
            raise

    def _take(self, received: Lent) -> None:
        """Mostly it is one whole response."""
        if len(received) > _SIZE and int.from_bytes(received[:_SIZE], "big") == len(received) - _SIZE:
            self._on_frame(memoryview(bytes(received[_SIZE:])))
        else:
            self._frames.take(received, self._on_lent_frame)

    def _on_lent_frame(self, frame: Lent) -> bool:
        """A response may be kept, and this one is only lent."""
        return self._on_frame(memoryview(bytes(frame)))

    def _on_frame(self, frame: memoryview) -> bool:
        if self._versions is None:
            self._greet(frame)
        elif self.state is not State.CLOSED:
            asked, response = self._correlation.on_frame(frame)
            self._has_answered = True
            self.last_used_s = self._world.now_s()
            if throttle_ms := getattr(response, "throttle_time_ms", 0):
                self._throttled_until_s = self.last_used_s + throttle_ms / 1000
            asked.outcome.resolve_if_waiting(response)
        return True

    # --- what goes wrong ---

    def _open_requests(self) -> list[Asked]:
        return [*self._correlation.in_flight(), *self._outgoing.leaving(), *self._waiting]

    def _watch_deadline(self, deadline_s: float) -> None:
        """One timer stands for all requests, at the earliest deadline; it looks again when it fires."""
        if deadline_s < self._timer_due_s:
            self._timer.cancel()
            self._timer_due_s = deadline_s
            self._timer = self._world.timers.after(deadline_s - self._world.now_s(), self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer_due_s = float("inf")
        requests = self._open_requests()
        if not requests:
            return
        late = min(requests, key=lambda asked: asked.deadline_s)
        if late.deadline_s <= self._world.now_s() + 0.0005:
            self.close(RequestTimedOut(f"{self.address} did not answer a request in time"))
        else:
            self._watch_deadline(late.deadline_s)

    def _supposition(self) -> str:
        """Why a broker may have closed a connection that never was of use."""
        if self._versions is None:
            return f" before it told what it serves; does the listener want TLS ({_PROTOCOL})?"
        if self._is_authenticating:
            return " during authentication"
        if not self._has_answered:
            return f" at the first request; does the listener want SASL ({_PROTOCOL})?"
        return ""

    def _lose(self, problem: OSError) -> None:
        if isinstance(problem, TlsFailed):
            self.close(SslAuthenticationFailed(str(problem)))
            return
        self.close(Disconnected(f"the connection to {self.address} broke: {problem.strerror or problem}"))

    def _close_for(self, problem: Exception) -> None:
        if isinstance(problem, KafkaError):
            self.close(problem)
        else:
            self.close(Disconnected(f"{self.address} broke the protocol: {problem}"))


def _refusal(problem: Exception) -> Exception:
    """A field that the chosen version has no place for is a feature that the broker does not have."""
    return problem if isinstance(problem, KafkaError) else UnsupportedVersion(f"the broker is too old: {problem}")
