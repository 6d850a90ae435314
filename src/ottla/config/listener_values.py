"""The settings as they count for one listener, and for one mechanism there (KIP-103, KIP-226).

`listener.name.external.scram-sha-256.sasl.jaas.config` comes before `listener.name.external.sasl.jaas.config`, and that
before `sasl.jaas.config`.
"""

from ottla.config.parse import LISTENER_PREFIX, Values
from ottla.config.scopes import Scope, settings


def listener_key(listener: str, key: str) -> str:
    """What a setting is called where it is given for one listener alone."""
    return f"{LISTENER_PREFIX}{listener.lower()}.{key}"


def login_key(listener: str, mechanism: str) -> str:
    """What the login of a mechanism is called, which is given for one listener alone."""
    return listener_key(listener, f"{mechanism.lower()}.sasl.jaas.config")


def listener_values(values: Values, listener: str, mechanism: str | None = None) -> Values:
    """All settings, with what was given for this listener, and for this mechanism there, in place of the general."""
    prefix = listener_key(listener, "")
    prefixes = [prefix] if mechanism is None else [prefix, f"{prefix}{mechanism.lower()}."]
    table = settings(Scope.BROKER)
    given = dict(values.given)
    for one in prefixes:
        for key, value in values.given.items():
            name = key.removeprefix(one)
            if key.startswith(one) and name in table:
                given[name] = value
    return Values(given, table)
