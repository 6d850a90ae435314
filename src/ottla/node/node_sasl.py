"""What a node has to do with SASL: its listeners' gates, and its own logins at other nodes.

A node without such listeners has nothing here, and loads nothing of `node.security`.
"""

import logging
from typing import TYPE_CHECKING, Final

from ottla.config.parse import ConfigError, Values
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.security_image import SALT_SECRET
from ottla.node.config import NodeConfig
from ottla.node.listeners import protocol_of
from ottla.runtime.peers.node_connections import NodeConnections
from ottla.runtime.server import Server
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.node.security.authenticators import Authenticators
    from ottla.node.security.credentials import Credentials
    from ottla.wire.exchange.client_connection import NewLogin

_SECRET_BYTES: Final = 32

_log = logging.getLogger(__name__)


class NodeSasl:
    def __init__(self, world: World, config: NodeConfig) -> None:
        self._world = world
        self._config = config
        self._credentials: Credentials | None = None
        self._authenticators: Authenticators | None = None

    def guard(self, server: Server, values: Values) -> None:
        """Gives listeners with SASL whom to let in. Raises `ConfigError`, and then nobody new is."""
        if not any(listener.has_sasl for listener in self._config.listeners):
            return
        if self._authenticators is None:
            from ottla.node.security.authenticators import Authenticators
            from ottla.node.security.credentials import Credentials

            secret_key = values.secret("delegation.token.secret.key")
            self._credentials = Credentials(
                secret_key.secret if secret_key is not None else None,
                self._world.clock.now_ms,
                self._world.entropy.randbytes(_SECRET_BYTES),
            )
            self._take_salt_secret(values)
            self._authenticators = Authenticators(self._world, self._credentials)
        for name, authenticator in self._authenticators.make_all(values, self._config.listeners).items():
            server.set_authenticator(name, authenticator)

    def on_loaded(self, image: MetadataImage) -> None:
        """The metadata is there: from here on its users can be found."""
        if self._credentials is not None:
            self._credentials.image = image

    def logins(self, values: Values) -> "dict[str, NewLogin]":
        """How this node says who it is to others, at listeners that ask. Raises `ConfigError`."""
        of_brokers, of_controllers = self._config.inter_broker_listener, values.list("controller.listener.names")
        asked = [
            ("", of_controllers[0] if of_controllers else "", "sasl.mechanism.controller.protocol"),
            (of_brokers, of_brokers, "sasl.mechanism.inter.broker.protocol"),
        ]
        logins = {}
        for key, listener, mechanism in asked:
            if listener and protocol_of(values, listener).startswith("SASL_"):
                from ottla.node.security.node_logins import node_login

                logins[key] = node_login(self._world, values, listener, mechanism)
        return logins

    def on_settings(
        self, server: Server, connections: NodeConnections, values: Values, changed: frozenset[str]
    ) -> None:
        """Clients and connections that come from now on go by the new settings."""
        if SALT_SECRET in changed:
            self._take_salt_secret(values)
        if not any(".sasl." in key or key.startswith("sasl.") for key in changed):
            return
        try:
            self.guard(server, values)
            connections.logins = self.logins(values)
        except ConfigError as problem:
            _log.error("the new SASL settings were not applied, and listeners keep the previous ones: %s", problem)

    def _take_salt_secret(self, values: Values) -> None:
        """The cluster's, from the metadata or the node's file. Without one, that which this node has stays."""
        secret = values.secret(SALT_SECRET)
        if secret is not None and self._credentials is not None:
            self._credentials.salt_secret = secret.secret.encode()
