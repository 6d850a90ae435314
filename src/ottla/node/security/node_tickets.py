"""How a node says who it is by Kerberos: a ticket for each node that it connects to. Workers ask the KDC for them."""

from collections.abc import Callable
from functools import partial

from ottla.config.listener_values import listener_values
from ottla.config.parse import Values
from ottla.node.security.kerberos_acceptors import listener_login, without_library
from ottla.runtime.world import World
from ottla.security.kerberos.kerberos_login import KerberosLogin
from ottla.security.kerberos.library import NoKerberos, initiate, library
from ottla.security.sasl.jaas import JaasEntry
from ottla.security.sasl.mechanism import GSSAPI
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.login import ClientMechanism
from ottla.wire.exchange.open_request import Refused


def ticket_login(world: World, values: Values, listener: str, setting: str, entry: JaasEntry) -> "NodeTickets":
    """`setting` has named the mechanism. Raises `ConfigError`."""
    try:
        library()
    except NoKerberos as problem:
        raise without_library(setting, problem) from None
    return NodeTickets(world, listener_login(listener_values(values, listener, GSSAPI), listener, entry))


class NodeTickets:
    """A `NewLogin`. One worker at a time waits for the KDC, however many nodes are connected to."""

    def __init__(self, world: World, login: KerberosLogin) -> None:
        self._world = world
        self._login = login

    def __call__(self, host: str, then: Callable[[ClientMechanism], None], failed: Callable[[Exception], None]) -> None:
        self._world.workers.run(
            partial(initiate, self._login, host),
            then,
            lambda problem: failed(_no_ticket(host, problem)),
            key=self,
        )


def _no_ticket(host: str, problem: Exception) -> Refused:
    return Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, f"Kerberos gives no ticket for {host}: {problem}")
