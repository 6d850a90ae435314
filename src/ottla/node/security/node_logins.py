"""How a node says who it is to other nodes: the login of their listener, which all nodes of a cluster share."""

from functools import partial
from typing import Final

from ottla.base.ports import Entropy
from ottla.config.parse import LISTENER_PREFIX, ConfigError, Problem, Values
from ottla.node.security.authenticators import new_nonce, server_login
from ottla.runtime.peers.node_login import NewLogin
from ottla.security.sasl.mechanism import PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from ottla.security.sasl.plain import PlainClient
from ottla.security.sasl.scram_client import ScramClient

_USED: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)


def node_login(values: Values, listener: str, setting: str, entropy: Entropy) -> NewLogin:
    """`setting` names the mechanism. Raises `ConfigError` for one without a name and a password."""
    mechanism = values.text(setting)
    if mechanism not in _USED:
        raise ConfigError((Problem(setting, mechanism, f"one that nodes of this version use ({', '.join(_USED)})"),))
    login = server_login(values, listener, mechanism)
    if login is None or not login.options.get("username") or "password" not in login.options:
        key = f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
        raise ConfigError((Problem(key, None, "a login with username and password: nodes use it between each other"),))
    user, password = login.options["username"], login.options["password"]
    if mechanism == PLAIN:
        return partial(PlainClient, user, password)
    return partial(_new_scram, mechanism, user, password, entropy)


def _new_scram(mechanism: str, user: str, password: str, entropy: Entropy) -> ScramClient:
    return ScramClient(mechanism, user, password, new_nonce(entropy))
