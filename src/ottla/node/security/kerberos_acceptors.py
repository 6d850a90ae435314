"""A listener's end of GSSAPI, from its settings: its principal's key, and the rules for its clients' names."""

from functools import partial
from typing import Final

from ottla.config.listener_values import login_key
from ottla.config.parse import ConfigError, Problem, Values
from ottla.config.values import HIDDEN
from ottla.runtime.authentication.authenticator import NewMechanism
from ottla.security.kerberos.gss_context import GssFailed
from ottla.security.kerberos.gssapi_server import GssapiServer
from ottla.security.kerberos.kerberos_login import SERVICE_SETTING, KerberosLogin, WrongLogin, kerberos_login
from ottla.security.kerberos.library import Acceptor, NoKerberos, default_realm
from ottla.security.kerberos.principals import SETTING, ShortNames
from ottla.security.sasl.jaas import KERBEROS_MODULE, JaasEntry
from ottla.security.sasl.mechanism import GSSAPI

_ENABLED: Final = "sasl.enabled.mechanisms"


def kerberos_mechanism(values: Values, listener: str, entry: JaasEntry | None) -> NewMechanism:
    """`values` are the listener's own. Raises `ConfigError`; so a key table without the key is reported at start."""
    login = listener_login(values, listener, entry)
    if login.key_table is None or login.principal is None:
        raise wrong_login(
            listener, "a login with useKeyTab=true, keyTab and principal: a node accepts clients by its key"
        )
    try:
        acceptor = Acceptor(login.principal, login.key_table)
        names = ShortNames(values.list(SETTING), default_realm())
    except NoKerberos as problem:
        raise without_library(_ENABLED, problem) from None
    except GssFailed as problem:
        raise wrong_login(listener, f"a login whose key table has the key of its principal ({problem})") from None
    return partial(_new_server, acceptor, names)


def listener_login(values: Values, listener: str, entry: JaasEntry | None) -> KerberosLogin:
    """Raises `ConfigError`."""
    if entry is None:
        raise wrong_login(listener, f"a login of {KERBEROS_MODULE}")
    try:
        return kerberos_login(entry, values.optional_text(SERVICE_SETTING))
    except WrongLogin as problem:
        raise wrong_login(listener, str(problem)) from None


def without_library(setting: str, problem: NoKerberos) -> ConfigError:
    return ConfigError((Problem(setting, GSSAPI, f"another mechanism, or installed: {problem}"),))


def wrong_login(listener: str, wanted: str) -> ConfigError:
    return ConfigError((Problem(login_key(listener, GSSAPI), HIDDEN, wanted),))


def _new_server(acceptor: Acceptor, names: ShortNames) -> GssapiServer:
    return GssapiServer(acceptor.new_context(), names)
