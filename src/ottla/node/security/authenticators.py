"""A listener's mechanisms, from its settings: which are enabled, and what clients are checked against."""

from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.base.ports import Entropy
from ottla.config.listener_values import listener_values, login_key
from ottla.config.parse import ConfigError, Problem, Values
from ottla.config.values import HIDDEN
from ottla.node.listeners import Listener
from ottla.node.security.credentials import Credentials
from ottla.runtime.authentication.authenticator import Authenticator, NewMechanism
from ottla.runtime.world import World
from ottla.security.sasl.jaas import (
    KERBEROS_MODULE,
    OAUTHBEARER_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    JaasEntry,
    WrongJaas,
    parse_login,
)
from ottla.security.sasl.mechanism import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from ottla.security.sasl.plain import Passwords, PlainServer
from ottla.security.sasl.scram_server import ScramServer

if TYPE_CHECKING:
    from ottla.node.security.token_checks import TokenChecks

_ENABLED: Final = "sasl.enabled.mechanisms"
_HANDLER: Final = "sasl.server.callback.handler.class"
_MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    SCRAM_SHA_256: SCRAM_MODULE,
    SCRAM_SHA_512: SCRAM_MODULE,
    OAUTHBEARER: OAUTHBEARER_MODULE,
    GSSAPI: KERBEROS_MODULE,
}
_OWN_HANDLERS: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler",
    SCRAM_SHA_256: "org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler",
    SCRAM_SHA_512: "org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler",
    GSSAPI: "org.apache.kafka.common.security.authenticator.SaslServerCallbackHandler",
}
_NONCE_BYTES: Final = 24


class Authenticators:
    """Makes the authenticators of a node's listeners, and makes them anew when settings have changed."""

    def __init__(self, world: World, credentials: Credentials) -> None:
        self._world = world
        self._credentials = credentials
        self._token_checks: TokenChecks | None = None

    def make_all(self, values: Values, listeners: Sequence[Listener]) -> dict[str, Authenticator]:
        """By the names of the listeners that have SASL. Raises `ConfigError` that names what is wrong."""
        return {listener.name: self._make(values, listener.name) for listener in listeners if listener.has_sasl}

    def _make(self, values: Values, listener: str) -> Authenticator:
        of_listener = listener_values(values, listener)
        enabled = of_listener.list(_ENABLED)
        if not enabled:
            raise _wrong(_ENABLED, "", f"given: listener {listener} has SASL")
        mechanisms = {name: self._mechanism(values, listener, name) for name in enabled}
        return Authenticator(
            mechanisms,
            max_receive_bytes=of_listener.integer("sasl.server.max.receive.size"),
            failure_delay_ms=of_listener.integer("connection.failed.authentication.delay.ms"),
            max_reauth_ms={
                name: listener_values(values, listener, name).integer("connections.max.reauth.ms") for name in enabled
            },
            now_ms=self._world.clock.now_ms,
        )

    def _mechanism(self, values: Values, listener: str, name: str) -> NewMechanism:
        if name not in _MODULES:
            raise _wrong(_ENABLED, name, f"a list of mechanisms that this version serves ({', '.join(_MODULES)})")
        own = listener_values(values, listener, name)
        if name == OAUTHBEARER:
            from ottla.node.security.token_checks import TokenChecks

            self._token_checks = self._token_checks or TokenChecks(self._world)
            return self._token_checks.make(own, listener, server_login(values, listener, name))
        handler = own[_HANDLER]
        if handler not in (None, _OWN_HANDLERS[name]):
            raise _wrong(_HANDLER, str(handler), f"left out for {name}: no class of Java's can be loaded")
        login = server_login(values, listener, name)
        if name == GSSAPI:
            from ottla.node.security.kerberos_acceptors import kerberos_mechanism

            return kerberos_mechanism(own, listener, login)
        if name == PLAIN:
            if login is None:
                raise _wrong(login_key(listener, name), None, f"a login of {PLAIN_MODULE} with the users of PLAIN")
            return partial(PlainServer, Passwords(login.users()))
        return partial(_new_scram, name, self._credentials, self._world.entropy)


def server_login(values: Values, listener: str, mechanism: str) -> JaasEntry | None:
    """A listener's login for a mechanism, which must be given for both, as in Kafka. Raises `ConfigError`."""
    key = login_key(listener, mechanism)
    if key not in values.given:
        return None
    login = values.secret(key)
    assert login is not None
    try:
        entry = parse_login(login.secret)
    except WrongJaas as problem:
        raise _wrong(key, HIDDEN, f"one login: {problem}") from problem
    if entry.module != _MODULES[mechanism]:
        raise _wrong(key, HIDDEN, f"a login of {_MODULES[mechanism]}")
    return entry


def _new_scram(mechanism: str, credentials: Credentials, entropy: Entropy) -> ScramServer:
    return ScramServer(mechanism, credentials.of_scram(mechanism), new_nonce(entropy), credentials.salt_secret)


def new_nonce(entropy: Entropy) -> str:
    """Printable, without a comma."""
    return b64encode(entropy.randbytes(_NONCE_BYTES)).decode()


def _wrong(key: str, text: str | None, bound: str) -> ConfigError:
    return ConfigError((Problem(key, text, bound),))
