"""Which records are wanted: by their key, value and headers as text, and by time. All that is asked must hold."""

import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import NamedTuple

Header = tuple[str, bytes | None]


class HeaderWanted(NamedTuple):
    name: str
    pattern: re.Pattern[str] | None
    """None if it is enough that the header is there."""


class RecordFilter(NamedTuple):
    key: re.Pattern[str] | None = None
    value: re.Pattern[str] | None = None
    headers: tuple[HeaderWanted, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def wants(self, key: str | None, value: str | None, headers: Sequence[Header], timestamp_ms: int) -> bool:
        """Patterns match anywhere in the text; nothing matches what is not there."""
        return (
            _matches(self.key, key)
            and _matches(self.value, value)
            and (self.since_ms is None or timestamp_ms >= self.since_ms)
            and (self.until_ms is None or timestamp_ms < self.until_ms)
            and all(_has(headers, wanted) for wanted in self.headers)
        )


def pattern(text: str) -> re.Pattern[str]:
    """For argparse."""
    try:
        return re.compile(text)
    except re.error as problem:
        raise ArgumentTypeError(f"{text!r} is not a regular expression: {problem}") from None


def header_wanted(text: str) -> HeaderWanted:
    """`name`, or `name=pattern`."""
    name, equals, expression = text.partition("=")
    return HeaderWanted(name, pattern(expression) if equals else None)


def _matches(expression: re.Pattern[str] | None, text: str | None) -> bool:
    return expression is None or (text is not None and expression.search(text) is not None)


def _has(headers: Sequence[Header], wanted: HeaderWanted) -> bool:
    return any(
        name == wanted.name and _matches(wanted.pattern, None if content is None else content.decode(errors="replace"))
        for name, content in headers
    )
