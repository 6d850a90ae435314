"""Notices at once that a broker's process has ended, where its session would run for seconds yet.

Theory of operation. Each controller holds a connection to every broker that is not fenced, over which nothing is ever
said. When the process behind it ends, the broker's kernel closes it. The controller then connects again; if that is
refused, nobody listens there any more, and the broker is fenced as if its session had run out. Fencing is always safe:
a broker that lives is unfenced with its next heartbeat.

    DIALLING   nothing is known                     HELD when it connects; else again, after a pause
    HELD       the process is there                 BROKEN when the connection ends
    BROKEN     dials at once, and keeps dialling    HELD when it connects; fences each time it is refused

A broker that takes connections and ends them at once, as one does that has no more places for them, is dialled after
pauses that grow: a connection that did not last is no reason to hurry.

Only a connection that was held and is refused afterwards counts: a firewall that refuses controllers, an address that
leads elsewhere and a broker that is not up yet fence nobody. A host that is gone without a word is left to the session.
Controllers that are not active hold their connections too: the active one may die together with a broker, and what its
successor knows by then is fenced with its first decision.
"""

from collections.abc import Mapping
from errno import ECONNREFUSED
from typing import Final

from ottla.base.ports import Dialer, Dialling, Timer, Transport
from ottla.controller.controller_server import ControllerServer
from ottla.machines.metadata.image.brokers_image import BrokerRegistration, Endpoint
from ottla.runtime.apart import apart, ask_surely
from ottla.runtime.channels import Failed, Then
from ottla.wire.errors import ErrorCode

_LOOK_S: Final = 0.5
_AGAIN_S: Final = 0.1
_UNREACHED_AGAIN_S: Final = 5.0
_LASTED_S: Final = 5.0
"""A connection that was held for as long says that the next will be too."""
_SCRATCH_BYTES: Final = 64
_TLS: Final = (1, 3)
"""The numbers of SSL and SASL_SSL."""


class BrokerTethers:
    """Of one controller. Brokers come and go with the committed image, which is looked at twice a second.

    `dialers` are for listeners by name that speak TLS.
    """

    def __init__(self, server: ControllerServer, listener: str, dialers: Mapping[str, Dialer] | None = None) -> None:
        self._server = server
        self._listener = listener
        self._dialers = dialers or {}
        self._tethers: dict[int, _Tether] = {}
        self._is_closed = False

    def start(self) -> None:
        self._server.timers.every(_LOOK_S, self._look)

    def close(self) -> None:
        """The node stops."""
        self._is_closed = True
        for tether in self._tethers.values():
            tether.close()
        self._tethers.clear()

    def _look(self) -> None:
        if self._is_closed:
            return
        brokers = self._server.image.brokers.by_id
        for broker_id, tether in [*self._tethers.items()]:
            broker = brokers.get(broker_id)
            if broker is None or broker.fenced or broker.epoch != tether.epoch:
                self._tethers.pop(broker_id).close()
        for broker in brokers.values():
            if not broker.fenced and broker.id not in self._tethers and broker.id != self._server.node_id:
                endpoint = broker.endpoint(self._listener) or broker.endpoints[0]
                dialer = self._dialers.get(endpoint.listener)
                if dialer is None and endpoint.security_protocol in _TLS:
                    continue  # This controller cannot speak to it, and has the broker's heartbeats alone.
                dialer = dialer or self._server.world.network
                self._tethers[broker.id] = _Tether(self._server, broker, endpoint, dialer)


class _Tether:
    """The connection to one broker, in one life of it."""

    def __init__(
        self, server: ControllerServer, broker: BrokerRegistration, endpoint: Endpoint, dialer: Dialer
    ) -> None:
        self._dialer = dialer
        self.epoch = broker.epoch
        self._broker_id = broker.id
        self._server = server
        self._endpoint = endpoint
        self._was_held = False
        self._held_since_s = 0.0
        self._pause_s = 0.0
        self._is_closed = False
        self._dialling: Dialling | None = None
        self._transport: Transport | None = None
        self._timer: Timer | None = None
        self._dial()

    def close(self) -> None:
        self._is_closed = True
        if self._dialling is not None:
            self._dialling.cancel()
        if self._transport is not None:
            self._transport.close()
        if self._timer is not None:
            self._timer.cancel()

    def _dial_in(self, delay_s: float) -> None:
        if not self._is_closed:
            self._timer = self._server.timers.after(delay_s, self._dial)

    def _dial(self) -> None:
        self._timer = None
        if not apart(self._server.timers, self._start_dialling):
            self._dial_in(_UNREACHED_AGAIN_S)

    def _start_dialling(self) -> None:
        self._dialling = self._dialer.dial(
            self._endpoint.host,
            self._endpoint.port,
            receive_buffer_bytes=-1,
            send_buffer_bytes=-1,
            then=self._on_connected,
            failed=self._on_failed,
        )

    def _on_connected(self, transport: Transport) -> None:
        self._dialling, self._transport = None, transport
        self._was_held = True
        self._held_since_s = self._server.timers.now_s()
        transport.watch(self, reading=True, writing=False)

    def _on_failed(self, problem: OSError) -> None:
        self._dialling = None
        if self._is_closed:
            return
        self._dial_in(_AGAIN_S if self._was_held else _UNREACHED_AGAIN_S)
        if self._was_held and problem.errno == ECONNREFUSED:
            ask_surely(self._server.timers, self._fence, lambda _is_fenced: None, _is_not_active)

    def _fence(self, then: Then, failed: Failed) -> None:
        self._server.log.submit(
            lambda controller, _now_ms: controller.fence_lost_broker(self._broker_id, self.epoch), then, failed
        )

    def on_readable(self) -> None:
        """A broker says nothing to one who says nothing: so this is the end of the connection."""
        if self._transport is None:
            return
        try:
            has_more = self._transport.receive_into(bytearray(_SCRATCH_BYTES)) > 0
        except BlockingIOError:
            return
        except OSError:
            has_more = False
        if not has_more:
            self._transport.close()
            self._transport = None
            self._on_broken()

    def _on_broken(self) -> None:
        has_lasted = self._server.timers.now_s() - self._held_since_s >= _LASTED_S
        self._pause_s = 0.0 if has_lasted else min(max(2 * self._pause_s, _AGAIN_S), _UNREACHED_AGAIN_S)
        if self._pause_s:
            self._dial_in(self._pause_s)
        elif not self._is_closed:
            self._dial()

    def on_writable(self) -> None:
        """Nothing is ever written."""


def _is_not_active(_error: ErrorCode) -> None:
    """Another controller decides, which holds its own connections; if this one is active later, it is refused again."""
