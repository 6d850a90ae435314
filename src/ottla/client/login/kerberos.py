"""A login by Kerberos (GSSAPI): tickets from a key table, or from the cache that `kinit` fills."""

from functools import partial

from ottla.client.errors import Disconnected, SaslAuthenticationFailed
from ottla.client.promise import Promise, spawn
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld
from ottla.config.parse import ConfigError, Problem
from ottla.config.values import HIDDEN
from ottla.security.kerberos.gss_context import GssFailed
from ottla.security.kerberos.kerberos_login import SERVICE_SETTING, KerberosLogin, WrongLogin, kerberos_login
from ottla.security.kerberos.library import NoKerberos, initiate, library
from ottla.security.sasl.jaas import JaasEntry
from ottla.security.sasl.mechanism import GSSAPI
from ottla.wire.exchange.login import ClientMechanism


class TicketLogin:
    """Every connection needs a ticket for its broker, which the KDC may have to be asked for: away from the loop."""

    def __init__(self, world: ClientWorld, login: KerberosLogin) -> None:
        self._world = world
        self._login = login

    def mechanism(self, host: str) -> Promise[ClientMechanism]:
        return spawn(self._mechanism(host))

    async def _mechanism(self, host: str) -> ClientMechanism:
        try:
            return await self._world.aside(partial(initiate, self._login, host))
        except GssFailed as problem:
            if problem.may_pass:
                raise Disconnected(f"no KDC can be asked for a ticket: {problem}") from problem
            raise SaslAuthenticationFailed(f"Kerberos gives no ticket for {host}: {problem}") from problem

    def close(self) -> None:
        pass


def ticket_login(world: ClientWorld, settings: ClientSettings, entry: JaasEntry) -> TicketLogin:
    """Raises `ConfigError`."""
    try:
        login = kerberos_login(entry, settings.optional_text(SERVICE_SETTING))
        library()
    except WrongLogin as problem:
        raise ConfigError((Problem("sasl.jaas.config", HIDDEN, str(problem)),)) from None
    except NoKerberos as problem:
        raise ConfigError((Problem("sasl.mechanism", GSSAPI, f"another mechanism, or installed: {problem}"),)) from None
    return TicketLogin(world, login)
