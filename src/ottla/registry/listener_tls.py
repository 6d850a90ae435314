"""TLS of the registry: its listeners, and how it connects to brokers and to other registries.

Certificates are looked at every few seconds, on a worker, and count for new connections when they have changed.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

from ottla.base.ports import Dialer, Listener, Network
from ottla.config.parse import ConfigError
from ottla.config.values import Value
from ottla.runtime.http.http_server import HttpServer
from ottla.runtime.server import Arrivals, Secure
from ottla.runtime.tls.handshake_lane import HandshakeLane
from ottla.runtime.tls.tls_listener import TlsListener
from ottla.runtime.tls.trust import ListenerTrust
from ottla.runtime.world import World
from ottla.security.tls.contexts import allowed_suites, client_context
from ottla.security.tls.dialling import TlsDialer
from ottla.security.tls.stores import Material, read_material

_log = logging.getLogger(__name__)
_LOOK_S: Final = 3.0


class ListenerTls:
    """Of the https listeners. Making one raises `ConfigError`."""

    def __init__(self, world: World, values: Mapping[str, Value], server: HttpServer) -> None:
        self._world = world
        self._values = values
        self._server = server
        self._trust = ListenerTrust(values)
        self._lane = HandshakeLane(world.network, world.timers.now_s)
        self._logged = ""
        world.timers.every(_LOOK_S, self._look)

    def secure(self, name: str) -> Secure:
        def secured(inner: Listener, arrivals: Arrivals) -> Listener:
            return TlsListener(
                inner,
                name,
                self._trust,
                self._lane,
                self._world.network,
                self._world.timers,
                self._on_refused,
                arrivals,
                names_principals=self._values.get("ssl.client.auth") != "none",
            )

        return secured

    def _on_refused(self, reason: str) -> None:
        self._server.counts["handshakes_failed"] += 1

    def _look(self) -> None:
        self._world.workers.run(
            partial(read_material, self._values), self._on_material, self._on_problem, key=("tls", "registry")
        )

    def _on_material(self, material: Material) -> None:
        if material == self._trust.material:
            self._logged = ""
            return
        try:
            self._trust.update(self._values, material)
        except ConfigError as problem:
            self._on_problem(problem)
            return
        self._logged = ""
        _log.info("loaded new certificates; they apply to new connections")

    def _on_problem(self, problem: Exception) -> None:
        """Logged once, until it is another or over."""
        if self._logged != str(problem):
            self._logged = str(problem)
            _log.warning("the previous certificates are kept: %s", problem)


def tls_dialer(network: Network, values: Mapping[str, Value]) -> Dialer:
    """Connects by TLS, with the certificates that the settings name. Raises `ConfigError`."""
    context, suites = client_context(values), allowed_suites(values)
    return TlsDialer(network, lambda: context, network.at_end_of_turn, lambda: suites)
