"""A client's connection to a node: a `ClientEnd` over what the client's world has for connecting, sending and time.

Clients, and nodes among each other, have their connections from here. It is made when something is asked, and again,
after pauses that grow, when it has failed. Nothing is asked again: a request whose connection fails has failed with it,
and the asking code decides.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.base.errors import OttlaError, ProtocolError
from ottla.base.lent import Lent, give_back, lend
from ottla.base.pacing import Backoff
from ottla.base.ports import Dialer, Dialling, Entropy, Timer, Timers, Transport
from ottla.wire.exchange.api_versions import ApiVersions
from ottla.wire.exchange.client_end import ClientEnd, State
from ottla.wire.exchange.frames import Frames, SpareBuffers
from ottla.wire.exchange.open_request import (
    NEVER,
    BrokeProtocol,
    ConnectionFailed,
    NotConnected,
    OpenRequest,
    OtherProtocol,
    TlsExpected,
)
from ottla.wire.exchange.outgoing import Outgoing

if TYPE_CHECKING:
    from ottla.wire.exchange.login import ClientMechanism

_MAX_RESPONSE_BYTES: Final = 0x7FFFFFFF
_TRUSTED_RESPONSE_BYTES: Final = 64 << 20
_SIZE: Final = 4
_TLS_ALERT: Final = b"\x15\x03"
"""How a listener with TLS answers plain bytes. No first response is so long that its size begins so."""
_SHOWN_BYTES: Final = 40
_SILENCE_S: Final = 1.0

NewLogin = Callable[[str, Callable[["ClientMechanism"], None], Callable[[Exception], None]], None]
"""Makes a mechanism for one login at that host, with what the client has to show in it.

It may take time, for a token has to be fetched. Either the mechanism is handed over, or why there is none.
"""


class Address(Protocol):
    """`str` of it is what errors name."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class ConnectionKit(NamedTuple):
    """What connections of a client are made with. `scratch` is what all of them receive into.

    `setup_timeout` is how long connecting may take, and grows while it fails; `reconnect_backoff` is how long a node is
    left alone then. With a `new_login` the client proves who it is. A size of -1 is the system's choice.
    """

    timers: Timers
    entropy: Entropy
    dialer: Dialer
    client_id: str | None
    setup_timeout: Backoff
    reconnect_backoff: Backoff
    scratch: memoryview
    receive_buffer_bytes: int = -1
    send_buffer_bytes: int = -1
    new_login: NewLogin | None = None
    spare: SpareBuffers | None = None


class ClientConnection:
    """`on_open` is called with what the node serves, whenever a connection has been made and requests can leave, and
    `on_lost` with the reason when one has ended other than by `close`. `on_silence` is called when a node has not let
    the client in after a second, with how many seconds it has in all.
    """

    def __init__(
        self,
        kit: ConnectionKit,
        address: Address,
        on_lost: Callable[[Exception], None],
        on_open: Callable[[ApiVersions], None] = lambda _: None,
        on_silence: Callable[[float], None] | None = None,
    ) -> None:
        self.address = address
        self._kit = kit
        self._timers = kit.timers
        self._now_s = kit.timers.now_s
        self._scratch = kit.scratch
        self._on_open = on_open
        self._on_lost = on_lost
        self._on_silence = on_silence
        self._silence: Timer | None = None
        self.was_in_use = False
        """Whether the last connection was lost before it was open, or with requests that wait for their answers."""
        self._failures = 0
        """In a row, without having been open."""
        self._paused_until_s = 0.0
        self._why: Exception | None = None
        self._paused: deque[OpenRequest] = deque()
        """What waits for the pause to end."""
        self._end: ClientEnd | None = None
        """This and what follows is of the connection there is, if there is one."""
        self.is_open = False
        """Whether requests can leave, or could, until another login is done."""
        self._last_used_s = 0.0
        self._frames: Frames = _new_frames(kit)
        self._outgoing = Outgoing()
        self._dialling: Dialling | None = None
        self._transport: Transport | None = None
        self._timer: Timer | None = None
        self._timer_due_s = NEVER
        self.bytes_out = self.bytes_in = 0
        """Over all connections to this address."""

    @property
    def served(self) -> ApiVersions | None:
        """What the node serves; None until requests can leave."""
        return self._end.served if self._end is not None and self.is_open else None

    @property
    def in_flight(self) -> int:
        """Requests that have been asked and not answered; without those that wait for a pause to end."""
        return 0 if self._end is None else len(self._end)

    @property
    def pause_left_s(self) -> float:
        """Until the next attempt. Not more than 0 if there is nothing to wait for."""
        return 0.0 if self._end is not None else self._paused_until_s - self._now_s()

    def is_idle_since(self, moment_s: float) -> bool:
        return self.is_open and not self.in_flight and self._last_used_s < moment_s

    def ask(self, request: OpenRequest) -> None:
        """One attempt. It waits for a connection that is being made, and for the pause after one that failed."""
        end = self._end
        if end is None:
            if (pause_s := self.pause_left_s) > 0:
                self._wait_for_pause(request, pause_s)
                return
            end = self.connect()
        now_s = self._last_used_s = self._now_s()
        parts = end.ask(request, now_s)
        if parts:
            self._send(parts)
        else:
            self._settle()
            if end.state is State.OPEN:  # throttled
                self._watch(end.next_s())
        if request.dead_s < self._timer_due_s or request.due_s < self._timer_due_s:
            self._watch(min(request.dead_s, request.due_s))

    def close(self, problem: Exception) -> None:
        """Requests that wait or are in flight fail. No pause follows."""
        paused, self._paused = self._paused, deque()
        for request in (*self.forget(), *paused):
            request.fail(problem)

    def forget(self) -> list[OpenRequest]:
        """Closes without a word to anyone. Returns the requests that nobody will answer."""
        self._paused.clear()
        if self._end is None:
            return []
        unanswered = self._end.close()
        self._end = None
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_s = NEVER
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        self._end_silence()
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        return unanswered

    def _end_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    # Connecting, and pauses

    def connect(self) -> ClientEnd:
        """At once, if there is no connection."""
        if self._end is not None:
            return self._end
        kit, address = self._kit, self.address
        timeout_ms = kit.setup_timeout.first_ms
        if self._failures and kit.setup_timeout.most_ms > timeout_ms:
            timeout_ms = kit.setup_timeout.after(self._failures, kit.entropy)
        self._last_used_s = self._now_s()
        self._frames = _new_frames(kit)
        self._outgoing = Outgoing()
        end = self._end = ClientEnd(
            str(address),
            kit.client_id,
            timeout_ms / 1000,
            self._last_used_s,
            kit.entropy,
            logs_in=kit.new_login is not None,
        )
        self._watch(end.next_s())
        if self._on_silence is not None:
            self._silence = self._timers.after(_SILENCE_S, partial(self._on_silence, timeout_ms / 1000))
        self._dialling = kit.dialer.dial(
            address.host,
            address.port,
            receive_buffer_bytes=kit.receive_buffer_bytes,
            send_buffer_bytes=kit.send_buffer_bytes,
            then=self._on_connected,
            failed=lambda problem: self._lose(f"cannot connect to {address}", problem),
        )
        return end

    def _fail(self, problem: Exception) -> None:
        """What waits or is in flight fails with its connection, after the owner knows that there is none any more."""
        if self._end is None:
            return
        was_open, unanswered = self.is_open, self.forget()
        self.was_in_use = not was_open or bool(unanswered)
        pause_ms = self._kit.reconnect_backoff.after(self._failures, self._kit.entropy)
        self._paused_until_s = self._now_s() + pause_ms / 1000
        self._failures += 1
        self._why = problem
        self._on_lost(problem)
        for request in unanswered:
            request.fail(problem)

    def _wait_for_pause(self, request: OpenRequest, pause_s: float) -> None:
        self._paused.append(request)
        if len(self._paused) == 1:
            self._timers.after(pause_s, self._end_pause)
        ends_s = min(request.due_s, request.dead_s)
        if ends_s < self._paused_until_s:
            self._timers.after(max(ends_s - self._now_s(), 0), partial(self._fail_paused, request))

    def _end_pause(self) -> None:
        paused, self._paused = self._paused, deque()
        now_s = self._now_s()
        for request in paused:
            if min(request.due_s, request.dead_s) > now_s:
                self.ask(request)
            else:
                self._fail_paused(request)

    def _fail_paused(self, request: OpenRequest) -> None:
        assert self._why is not None, "a pause follows a failure"
        request.fail(NotConnected(self._why))

    # Becoming open

    def _on_connected(self, transport: Transport) -> None:
        assert self._end is not None, "a dialling that was cancelled has connected"
        self._dialling = None
        self._transport = transport
        transport.watch(self, reading=True, writing=False)
        self._send(self._end.on_connected())

    def _settle(self) -> None:
        """Does what the end wants."""
        end = self._end
        if end is None:
            return
        if end.failed:
            self._tell_failed(end)
        if end.needs_login and self._kit.new_login is not None:
            end.needs_login = False
            has_mechanism, has_none = partial(self._on_mechanism, end), partial(self._on_no_mechanism, end)
            self._kit.new_login(self.address.host, has_mechanism, has_none)
        if end.has_been_open and not self.is_open and end is self._end:
            assert end.served is not None, "an end that is open knows what its node serves"
            self.is_open = True
            self._failures = 0
            self._end_silence()
            self._on_open(end.served)

    def _on_mechanism(self, end: ClientEnd, mechanism: "ClientMechanism") -> None:
        """There is something to show: at once, or later, when the connection may be gone."""
        from ottla.wire.exchange.login import SaslLogin

        if end is self._end:
            try:
                parts = end.log_in(SaslLogin(mechanism), self._now_s())
            except OttlaError as problem:
                self._fail(problem)
            else:
                self._send(parts)

    def _on_no_mechanism(self, end: ClientEnd, problem: Exception) -> None:
        if end is self._end:
            self._fail(problem)

    # Requests out

    def _send(self, parts: list[Any]) -> None:
        transport, end = self._transport, self._end
        assert transport is not None, "there is a connection before there are requests"
        assert end is not None
        self.bytes_out += sum(map(len, parts))
        try:
            is_all_sent = self._outgoing.send(transport, parts)
        except OSError as problem:
            self._lose(f"the connection to {self.address} broke", problem)
            return
        if not is_all_sent:
            transport.watch(self, reading=True, writing=True)
        if end.leaving:
            self._tell_left(end)

    def on_writable(self) -> None:
        transport, end = self._transport, self._end
        if transport is None or end is None:
            return
        try:
            is_all_sent = self._outgoing.send_rest(transport)
        except OSError as problem:
            self._lose(f"the connection to {self.address} broke", problem)
            return
        transport.watch(self, reading=True, writing=not is_all_sent)
        self._tell_left(end)

    def _tell_left(self, end: ClientEnd) -> None:
        for request in end.left(self._outgoing.parts_sent):
            request.answer(None)

    def _tell_failed(self, end: ClientEnd) -> None:
        failed, end.failed = end.failed, []
        for request, problem in failed:
            request.fail(problem)

    # Responses in

    def on_readable(self) -> None:
        transport, end, frames = self._transport, self._end, self._frames
        if transport is None or end is None:
            return
        try:
            while self._end is end:
                if frames.has_begun:
                    with frames.room() as room:
                        size = len(room)
                        count = transport.receive_into(room)
                    if count:
                        frames.fill(count, self._on_frame)
                else:
                    size = len(self._scratch)
                    count = transport.receive_into(self._scratch)
                    if count:
                        try:
                            self._take(lend(self._scratch[:count]), end)
                        finally:
                            give_back(self._scratch, count)
                self.bytes_in += count
                if not count:
                    self._fail(self._ended(end))
                elif count < size:
                    return
        except BlockingIOError:
            pass
        except OSError as problem:
            self._lose(f"the connection to {self.address} broke", problem)
        except ProtocolError as problem:
            self._fail(BrokeProtocol(f"{self.address} broke the protocol: {problem}"))
        except OttlaError as problem:
            self._fail(problem)
        except Exception:
            # A bug in what a response set in motion. The frames behind it are lost, so nothing more can be read here.
            self._fail(ConnectionFailed(f"handling a response of {self.address} failed"))
            raise

    def _take(self, received: Lent, end: ClientEnd) -> None:
        """Mostly it is one whole response."""
        if end.served is None and received[0]:
            raise self._other_protocol(bytes(received[:_SHOWN_BYTES]))
        if len(received) > _SIZE and int.from_bytes(received[:_SIZE], "big") == len(received) - _SIZE:
            self._on_frame(memoryview(bytes(received[_SIZE:])))
        else:
            self._frames.take(received, self._on_lent_frame)

    def _other_protocol(self, received: bytes) -> ConnectionFailed:
        """No first response is so long, so what answers is no listener for clients like us."""
        if received.startswith(_TLS_ALERT):
            return TlsExpected(f"{self.address} speaks TLS, and this client does not (security.protocol)")
        if received.startswith(b"HTTP/"):
            return OtherProtocol(f"{self.address} is not a Kafka broker: it speaks HTTP")
        return OtherProtocol(f"{self.address} is not a Kafka broker: it says {received!r}")

    def _on_lent_frame(self, frame: Lent) -> bool:
        """A response may be kept, and this one is only lent."""
        return self._on_frame(memoryview(bytes(frame)))

    def _on_frame(self, frame: memoryview) -> bool:
        end = self._end
        assert end is not None, "there is an end as long as there are frames"
        now_s = self._last_used_s = self._now_s()
        came = end.on_frame(frame, now_s)
        if isinstance(came, tuple):
            request, response = came
            request.answer(response)
        else:
            self._step(came)
        return self._end is end

    # Time, and what goes wrong

    def _step(self, parts: list[Any]) -> None:
        if parts:
            self._send(parts)
        self._settle()
        if self._end is not None:
            self._watch(self._end.next_s())

    def _watch(self, due_s: float) -> None:
        """One timer stands for all that has a time, at the earliest; it looks again when it fires."""
        if due_s < self._timer_due_s and self._end is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due_s = due_s
            self._timer = self._timers.after(max(due_s - self._now_s(), 0), self._on_time)

    def _on_time(self) -> None:
        end = self._end
        assert end is not None, "the timer of a connection ends with it"
        self._timer_due_s = NEVER
        now_s = self._now_s()
        try:
            end.on_time(now_s)
        except ConnectionFailed as problem:
            self._tell_failed(end)
            if end is self._end:
                self._fail(problem)
        else:
            self._step(end.send_waiting(now_s))

    def _ended(self, end: ClientEnd) -> ConnectionFailed:
        """The other side has closed the connection. When it did may say why."""
        when = wants = ""
        if end.served is None:
            when, wants = " before it answered ApiVersions", "TLS"
        elif end.state is State.LOGIN:
            when = " during authentication"
        elif not end.has_answered:
            when, wants = " at the first request", "SASL"
        return ConnectionFailed(f"{self.address} closed the connection{when}", wants=wants)

    def _lose(self, what: str, problem: OSError) -> None:
        self._fail(ConnectionFailed(f"{what}: {_reason(problem)}", cause=problem))


def _reason(problem: OSError) -> str:
    """As the system has it, as a part of a sentence."""
    text = problem.strerror or str(problem)
    return text[:1].lower() + text[1:]


def _new_frames(kit: ConnectionKit) -> Frames:
    return Frames(_MAX_RESPONSE_BYTES, "the largest frame", _TRUSTED_RESPONSE_BYTES, kit.spare)
