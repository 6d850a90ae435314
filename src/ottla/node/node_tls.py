"""TLS on a node: which listeners have it, what they show and whom they trust, and when that changes.

New certificates count from the next connection on, and no connection is dropped for them. They come by settings that
are given at run time, or in the files: those are looked at every few seconds, on a disk thread. What cannot be used is
reported in a log line, and the listener keeps what it has.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.base.ports import Dialer, Listener, Network
from ottla.config.listener_values import listener_key, listener_values
from ottla.config.parse import ConfigError, Values
from ottla.config.values import Value
from ottla.node.config import NodeConfig
from ottla.node.listeners import METRICS, TLS_PROTOCOLS, protocol_of
from ottla.runtime.rate_limited_log import RateLimitedLog
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.runtime.server import Arrivals, Secure
    from ottla.runtime.tls.handshake_lane import HandshakeLane
    from ottla.runtime.tls.trust import ListenerTrust
    from ottla.security.tls.stores import Material

_log = logging.getLogger(__name__)
CONTROLLERS: Final = ""
"""The name of the controllers' listener where nodes connect to it: see `NodeAddress.listener`."""
_LOOK_S: Final = 3.0


class NodeTls:
    """Nothing is loaded unless a listener speaks TLS. Making one raises `ConfigError`."""

    def __init__(self, world: World, config: NodeConfig) -> None:
        values, inter_broker_listener = config.values, config.inter_broker_listener
        served = {listener.name: listener.protocol for listener in config.listeners}
        if config.metrics is not None and config.metrics.has_tls:
            served[METRICS] = "SSL"
        self._world = world
        self._protocols = dict(served)
        self._dialled: dict[str, str] = {}
        if controllers := values.list("controller.listener.names"):
            self._dialled[CONTROLLERS] = controllers[0].upper()
        if inter_broker_listener:
            self._dialled[inter_broker_listener] = inter_broker_listener
        for name in self._dialled.values():
            if name not in self._protocols:
                self._protocols[name] = protocol_of(values, name)
        self._trust: dict[str, ListenerTrust] = {}
        self._lane: HandshakeLane | None = None
        self._logged: dict[str, str] = {}
        for name, protocol in self._protocols.items():
            if protocol in TLS_PROTOCOLS:
                is_dialled = name in self._dialled.values()
                try:
                    self._trust[name] = _trust(self._values_of(values, name), name in served, is_dialled)
                except ConfigError as error:
                    raise _of_listener(name, error) from error

    def start(self) -> None:
        """Looks at the files from now on."""
        if self._trust:
            self._world.timers.every(_LOOK_S, self._look)

    def _values_of(self, values: Values, name: str) -> Mapping[str, Value]:
        of_listener = dict(listener_values(values, name))
        if self._protocols[name] == "SASL_SSL" and not values.given.get(listener_key(name, "ssl.client.auth")):
            # Who speaks is what SASL says: certificates count only if they are asked for at this very listener.
            of_listener["ssl.client.auth"] = "none"
        return of_listener

    # Connections in and out

    def secure(self, name: str, refused: Callable[[str], None]) -> "Secure | None":
        """What puts TLS above the listener of this name; None if it has none."""
        trust = self._trust.get(name)
        if trust is None:
            return None
        from ottla.runtime.tls.handshake_lane import HandshakeLane
        from ottla.runtime.tls.tls_listener import TlsListener

        world = self._world
        lane = self._lane = self._lane or HandshakeLane(world.network, world.timers.now_s)

        def secured(inner: Listener, arrivals: "Arrivals") -> Listener:
            names_principals = self._protocols[name] == "SSL"
            return TlsListener(
                inner,
                name,
                trust,
                lane,
                world.network,
                world.timers,
                refused,
                arrivals,
                names_principals=names_principals,
            )

        return secured

    def dialers(self) -> dict[str, Dialer]:
        """For listeners of other nodes that speak TLS, by the name that `NodeAddress` has for them."""
        found: dict[str, Dialer] = {}
        log = RateLimitedLog(_log, self._world.timers.now_s)
        for known_as, name in self._dialled.items():
            if trust := self._trust.get(name):
                found[known_as] = _dialer(self._world.network, trust, log)
        return found

    def expiries(self) -> list[tuple[str, float]]:
        """Listeners of this node and when the certificate that they show expires, in seconds since 1970."""
        from ottla.runtime.tls.trust import expiry_of

        found = [(name, expiry_of(trust.material)) for name, trust in self._trust.items() if trust.is_served]
        return [(name, at_s) for name, at_s in found if at_s is not None]

    # Changes

    def check(self, values: Values, changed: frozenset[str]) -> None:
        """Whether settings that somebody wants to give at run time can be used. Raises `ConfigError`."""
        if any("ssl." in key for key in changed):
            for name, trust in self._trust.items():
                of_listener = self._values_of(values, name)
                if of_listener != trust.values:
                    trust.check(of_listener)

    def on_settings(self, values: Values, changed: frozenset[str]) -> None:
        if any("ssl." in key for key in changed):
            for name in self._trust:
                self._read_again(name, self._values_of(values, name))

    def _look(self) -> None:
        for name, trust in self._trust.items():
            self._read_again(name, trust.values)

    def _read_again(self, name: str, values: Mapping[str, Value]) -> None:
        from ottla.security.tls.stores import read_material

        self._world.workers.run(
            partial(read_material, values),
            partial(self._on_material, name, values),
            partial(self._on_problem, name),
            key=("tls", name),
        )

    def _on_material(self, name: str, values: Mapping[str, Value], material: "Material") -> None:
        trust = self._trust[name]
        if material == trust.material and values == trust.values:
            self._logged.pop(name, None)
            return
        try:
            trust.update(values, material)
        except ConfigError as problem:
            self._on_problem(name, problem)
            return
        self._logged.pop(name, None)
        _log.info("%s loaded new certificates or TLS settings; they apply to new connections", name)

    def _on_problem(self, name: str, problem: Exception) -> None:
        """Logged once, until it is another or over."""
        if self._logged.get(name) != str(problem):
            self._logged[name] = str(problem)
            _log.warning("%s keeps its previous certificates: %s", name, problem)


def _of_listener(name: str, error: ConfigError) -> ConfigError:
    """The same, with the listener that it is about."""
    problems = [problem._replace(bound=f"{problem.bound} (listener {name})") for problem in error.problems]
    return ConfigError(tuple(problems))


def _trust(values: Mapping[str, Value], is_served: bool, is_dialled: bool) -> "ListenerTrust":
    from ottla.runtime.tls.trust import ListenerTrust

    return ListenerTrust(values, is_served=is_served, is_dialled=is_dialled)


def _dialer(network: Network, trust: "ListenerTrust", log: RateLimitedLog) -> Dialer:
    from ottla.security.tls.dialling import TlsDialer

    def on_failed(address: str, problem: OSError) -> None:
        log.warning("cannot connect to the node at %s: %s", address, problem)

    return TlsDialer(network, lambda: trust.client, network.at_end_of_turn, lambda: trust.suites, on_failed)
