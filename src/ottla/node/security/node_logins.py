"""How a node says who it is to other nodes: the login of their listener, which all nodes of a cluster share."""

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.base.ports import Entropy
from ottla.config.listener_values import login_key
from ottla.config.parse import ConfigError, Problem, Values
from ottla.node.security.authenticators import new_nonce, server_login
from ottla.runtime.world import World
from ottla.security.sasl.jaas import JaasEntry
from ottla.security.sasl.mechanism import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from ottla.security.sasl.plain import PlainClient
from ottla.security.sasl.scram_client import ScramClient
from ottla.wire.exchange.client_connection import NewLogin
from ottla.wire.exchange.login import ClientMechanism

_USED: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, GSSAPI)


def node_login(world: World, values: Values, listener: str, setting: str) -> NewLogin:
    """`setting` names the mechanism. Raises `ConfigError` for one that has nothing to show."""
    mechanism = values.text(setting)
    if mechanism not in _USED:
        raise ConfigError((Problem(setting, mechanism, f"one that nodes of this version use ({', '.join(_USED)})"),))
    key = login_key(listener, mechanism)
    login = server_login(values, listener, mechanism)
    if login is None:
        raise ConfigError((Problem(key, None, "given: nodes use it between each other"),))
    if mechanism == OAUTHBEARER:
        from ottla.node.security.node_tokens import token_login

        return token_login(world, values, listener, login)
    if mechanism == GSSAPI:
        from ottla.node.security.node_tickets import ticket_login

        return ticket_login(world, values, listener, setting, login)
    if not login.options.get("username") or "password" not in login.options:
        raise ConfigError((Problem(key, None, "a login with username and password: nodes use it between each other"),))
    return partial(_by_password, mechanism, login, world.entropy)


def _by_password(
    mechanism: str,
    login: JaasEntry,
    entropy: Entropy,
    _host: str,
    then: Callable[[ClientMechanism], None],
    _failed: Callable[[Exception], None],
) -> None:
    user, password = login.options["username"], login.options["password"]
    if mechanism == PLAIN:
        then(PlainClient(user, password))
    else:
        then(ScramClient(mechanism, user, password, new_nonce(entropy)))
