"""Settings from a properties file and from `key=value` options, of which the latter win. Older names say so."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cli.failures import Terse
from ottla.cli.options.checks import UsageError
from ottla.cli.options.reading import Given


def one_of(given: Given, old: str, new: str, warning: str) -> str:
    """Which of two names of one option was used. The older one is announced as such."""
    if old not in given:
        return new
    if new in given:
        raise UsageError(f"Options --{new} and --{old} cannot be specified together.")
    print(warning.format(old=old, new=new))
    return old


def read_file(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    from ottla.config.properties import read_properties

    with open(path, "rb") as file:
        return read_properties(file.read())


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """`key=value`; a key alone has the empty value."""
    found = {}
    for text in texts:
        key, _, value = text.partition("=")
        if not key:
            raise Terse(f"Invalid command line properties: {text}")
        found[key] = value
    return found
