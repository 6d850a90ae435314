"""Values that must not be seen: what config providers stand for, and settings that are passwords.

A connector's trace or a message about a setting may quote a value. Before it is written to a topic, a log or a reply,
each secret in it is replaced by what the configuration says in its place, or by `[hidden]`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

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


def is_named_as_secret(key: str) -> bool:
    return key.rpartition(".")[2] in ("password", "secret", "token")


def secrets_of(
    config: Mapping[str, str | None],
    resolved: Mapping[str, str],
    rows: Iterable[Setting],
    values: Mapping[str, str] | None = None,
) -> Secrets:
    """`resolved` is the configuration with the values of config providers, and `values` has these alone, with their
    references: a URL may have a password in it, which a trace quotes without the rest."""
    passwords = {row.name for row in rows if row.type is Type.PASSWORD}
    found: dict[str, str] = dict(values or {})
    for key, value in resolved.items():
        reference = config.get(key) or ""
        if value != reference:
            found[value] = reference
        elif key in passwords or is_named_as_secret(key):
            found[value] = HIDDEN
    forms = {form: instead for secret, instead in found.items() for form in _forms(secret)}
    kept = [(form, instead) for form, instead in forms.items() if len(form) >= _SHORTEST]
    return Secrets(tuple(sorted(kept, key=lambda one: -len(one[0]))))


def _forms(secret: str) -> Iterable[str]:
    """As it is, without the line's end that a file has, and as Python, JSON and a URL quote it."""
    bare = secret.strip()
    return (secret, bare, repr(bare)[1:-1], json.dumps(bare)[1:-1], quote(bare, safe=""))
