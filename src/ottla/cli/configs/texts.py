"""Settings as they are written on a command line, and as kafka-configs prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ottla.cli.failures import Terse

if TYPE_CHECKING:
    from ottla.client.admin.configs import ConfigEntry


def parse_settings(text: str) -> dict[str, str]:
    """`k1=v1,k2=[v1,v2]`: brackets hold together what has commas in it."""
    found = {}
    for pair in _split_outside_brackets(text):
        name, _, value = pair.partition("=")
        name, value = name.strip(), value.strip()
        if not name or not value:
            raise Terse(
                "requirement failed: Invalid entity config: all configs to be added must be in the format "
                '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        found[name] = value[1:-1].strip() if value.startswith("[") and value.endswith("]") else value
    return found


def _split_outside_brackets(text: str) -> Iterator[str]:
    begin = depth = 0
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth = max(depth - 1, 0)
        elif letter == "," and not depth:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def setting_lines(entries: Iterable[ConfigEntry]) -> Iterator[str]:
    """By name, each with the values that would apply without it."""
    for entry in sorted(entries, key=lambda entry: entry.name):
        synonyms = ", ".join(
            f"{synonym.source.name}_CONFIG:{synonym.name}={_value(synonym.value)}" for synonym in entry.synonyms
        )
        sensitive = str(entry.is_sensitive).lower()
        yield f"  {entry.name}={_value(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value


def java_double(number: float) -> str:
    """As Java prints a double: `1024.0`, and from ten million on `1.0E7`."""
    text = repr(float(number))
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return text
    from decimal import Decimal  # for few, and only to count digits

    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int), "a quota is a finite number"
    figures = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{figures[0]}.{figures[1:] or '0'}E{len(digits) - 1 + exponent}"
