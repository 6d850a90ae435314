"""Values that must not be seen: what config providers stand for, and settings that are passwords.

A connector's trace or a message about a setting may quote a value. Before it is written to a topic, a log or a reply,
each secret in it is replaced by what the configuration says in its place, or by `[hidden]`.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.config.setting import Setting
from ottla.config.values import HIDDEN, Type

_SHORTEST: Final = 3
"""A shorter value would be found in words that have nothing to do with it."""


class Secrets(NamedTuple):
    """Of one connector's configuration: what is shown in place of which value, longest first."""

    shown: tuple[tuple[str, str], ...]

    def hidden_in(self, text: str) -> str:
        for secret, instead in self.shown:
            text = text.replace(secret, instead)
        return text


def secrets_of(config: Mapping[str, str | None], resolved: Mapping[str, str], rows: Iterable[Setting]) -> Secrets:
    """`resolved` is the configuration with the values of config providers."""
    passwords = {row.name for row in rows if row.type is Type.PASSWORD}
    found: dict[str, str] = {}
    for key, value in resolved.items():
        reference = config.get(key) or ""
        if value != reference:
            found[value] = reference
        elif key in passwords or key.rpartition(".")[2] in ("password", "secret", "token"):
            found[value] = HIDDEN
    kept = [(secret, instead) for secret, instead in found.items() if len(secret) >= _SHORTEST]
    return Secrets(tuple(sorted(kept, key=lambda one: -len(one[0]))))
