"""What a value may be, beyond its type. A bound says itself in words, for error messages and the reference page."""

import re
from typing import NamedTuple, Protocol

from ottla.config.values import Value


class Bound(Protocol):
    def allows(self, value: Value) -> bool: ...

    def __str__(self) -> str:
        """Completes the sentence "it must be …"."""
        ...


class Between(NamedTuple):
    """A number from `low` to `high`, both included; `also` is one more number, outside, with a meaning of its own."""

    low: float
    high: float | None = None
    also: int | None = None

    def allows(self, value: Value) -> bool:
        if not isinstance(value, int | float):
            return value is None
        return (self.low <= value and (self.high is None or value <= self.high)) or value == self.also

    def __str__(self) -> str:
        words = f"at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"
        return words if self.also is None else f"{words}, or {self.also}"


class OneOf(NamedTuple):
    names: tuple[str, ...]
    any_case: bool = False

    def allows(self, value: Value) -> bool:
        if not isinstance(value, str):
            return False
        return value in self.names or (self.any_case and value.upper() in map(str.upper, self.names))

    def __str__(self) -> str:
        return f"one of {', '.join(self.names)}{' (in any case)' if self.any_case else ''}"


class Items(NamedTuple):
    """A list without blanks or repeats, of the given names if there are any."""

    names: tuple[str, ...] = ()
    may_be_empty: bool = True
    may_be_null: bool = False

    def allows(self, value: Value) -> bool:
        if value is None:
            return self.may_be_null
        if not isinstance(value, tuple):
            return False
        if not value:
            return self.may_be_empty
        unique = set(value)
        return len(unique) == len(value) and "" not in unique and (not self.names or unique <= set(self.names))

    def __str__(self) -> str:
        what = f"a list of {', '.join(self.names)}" if self.names else "a list"
        return f"{what} without repeats{'' if self.may_be_empty else ', and not empty'}"


class NotEmpty(NamedTuple):
    def allows(self, value: Value) -> bool:
        return value != ""

    def __str__(self) -> str:
        return "not empty"


class Shaped(NamedTuple):
    """Text, or every item of a list, that matches a regular expression; `words` says it to people."""

    pattern: str
    words: str
    alone: tuple[str, ...] = ()
    """Lists that are allowed although their items do not match."""

    def allows(self, value: Value) -> bool:
        if value is None or value == self.alone:
            return True
        items = value if isinstance(value, tuple) else (str(value),)
        return all(re.fullmatch(self.pattern, item) for item in items)

    def __str__(self) -> str:
        return self.words


def at_least(low: int) -> Between:
    return Between(low)
