"""Settings of a client from a properties file that several clients may share, as Kafka's tools take it.

Settings of other clients are passed over; a name that no client knows is reported with the nearest one, and passed
over.
"""

import sys

from ottla.config.properties import read_properties
from ottla.config.scopes import Scope, settings

_CLIENTS = (Scope.PRODUCER, Scope.CONSUMER, Scope.ADMIN)


def settings_in_file(path: str | None, scope: Scope) -> dict[str, object]:
    """Raises `OSError` for a file that cannot be read, and `ValueError` for one that is no properties file."""
    if path is None:
        return {}
    with open(path, "rb") as file:
        given = read_properties(file.read())
    for name in given:
        if not any(name in settings(client) for client in _CLIENTS):
            print(f"{path}: {_unknown(name, scope)}", file=sys.stderr)
    return {name: value for name, value in given.items() if name in settings(scope)}


def _unknown(name: str, scope: Scope) -> str:
    from difflib import get_close_matches  # only a mistyped name pays for it

    nearest = get_close_matches(name, settings(scope), n=1)
    hint = f" (did you mean {nearest[0]}?)" if nearest else ""
    return f"{name}: no setting has this name{hint}; it is ignored"
