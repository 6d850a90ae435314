"""From the text of a properties file to checked values.

All that is wrong is reported at once, so that a file is corrected in one go. What is merely odd (a key nobody knows,
a key this version does not act on) comes back as warnings, which are data: who starts the node decides where they go.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.config.scopes import Scope, Table, settings
from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import HIDDEN, Password, Type, Value


class Problem(NamedTuple):
    """One setting that stops the start."""

    key: str
    text: str | None
    """What was given, hidden if it is a secret; None if it was missing."""
    bound: str
    """Completes "it must be …"."""
    words: str | None = None
    """Instead of all that, where Kafka has words that people look for."""

    def __str__(self) -> str:
        if self.words is not None:
            return self.words
        if self.text is None:
            return f"{self.key} is missing: it must be {self.bound}"
        return f"{self.key}={self.text}: it must be {self.bound}"


class ConfigError(OttlaError):
    """Settings that cannot be used. Raised before anything starts, so it belongs to none of the three families."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Warned(NamedTuple):
    """One setting that was accepted and will not do what its author may expect."""

    key: str
    reason: str
    is_unknown: bool = False
    """No setting has this name: it may be mistyped."""

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}; it is ignored" if self.is_unknown else f"{self.key}: {self.reason}"


class Values(Mapping[str, Value]):
    """Checked values by key, defaults included; `given` are the keys that somebody wrote down.

    The typed readers are for code that names a key: a key of another type there is a bug, not a user's mistake.
    """

    __slots__ = ("_defaults", "given")

    def __init__(self, given: Mapping[str, Value], defaults: Mapping[str, Setting]) -> None:
        self.given = given
        self._defaults = defaults

    def __getitem__(self, key: str) -> Value:
        if key in self.given:
            return self.given[key]
        default = self._defaults[key].default
        assert default is not REQUIRED, f"{key} has no default"
        return default

    def __iter__(self) -> Iterator[str]:
        yield from self.given
        yield from (
            row.name for row in self._defaults.values() if row.name not in self.given and row.default is not REQUIRED
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Values({dict(self.given)!r} over {len(self._defaults)} settings)"

    def flag(self, key: str) -> bool:
        value = self[key]
        assert isinstance(value, bool), f"{key} is not a flag"
        return value

    def integer(self, key: str) -> int:
        value = self[key]
        assert isinstance(value, int), f"{key} is not a whole number"
        return value

    def number(self, key: str) -> float:
        value = self[key]
        assert isinstance(value, float), f"{key} is not a number"
        return value

    def text(self, key: str) -> str:
        value = self[key]
        assert isinstance(value, str), f"{key} is not text"
        return value

    def optional_text(self, key: str) -> str | None:
        return None if self[key] is None else self.text(key)

    def list(self, key: str) -> tuple[str, ...]:
        value = self[key]
        assert isinstance(value, tuple), f"{key} is not a list"
        return value

    def secret(self, key: str) -> Password | None:
        value = self[key]
        assert value is None or isinstance(value, Password), f"{key} is not a secret"
        return value


class Parsed(NamedTuple):
    values: Values
    warnings: tuple[Warned, ...]


def parse(scope: Scope, properties: Mapping[str, str]) -> Parsed:
    """Checks every property against its row. Raises `ConfigError` with all problems if there are any."""
    table = settings(scope)
    given: dict[str, Value] = {}
    problems: list[Problem] = []
    warnings: list[Warned] = []
    for key, text in properties.items():
        row = table.get(key) or (listener_setting(key) if scope is Scope.BROKER else None)
        if row is None:
            warnings.append(_unknown(key, table))
            continue
        try:
            given[key] = row.parse(text)
        except ValueError as expected:
            problems.append(Problem(key, HIDDEN if row.type is Type.PASSWORD else text, str(expected)))
            continue
        if not row.acted_on:
            warnings.append(Warned(key, "this version accepts the setting and does not act on it yet"))
    problems += [
        Problem(row.name, None, str(row.bound) if row.bound else f"given as a {row.type.value}")
        for row in table.values()
        if row.default is REQUIRED and row.name not in properties
    ]
    if problems:
        raise ConfigError(tuple(problems))
    return Parsed(Values(given, table), tuple(warnings))


def _unknown(key: str, table: Table) -> Warned:
    from difflib import get_close_matches  # only a mistyped name pays for it

    nearest = get_close_matches(key, table, n=1)
    hint = f" (did you mean {nearest[0]}?)" if nearest else ""
    return Warned(key, f"no setting has this name{hint}", is_unknown=True)


LISTENER_PREFIX = "listener.name."


def listener_setting(key: str) -> Setting | None:
    """The row behind `listener.name.<listener>.[<mechanism>.]<setting>` (KIP-103, KIP-226), or None."""
    if not key.startswith(LISTENER_PREFIX):
        return None
    table = settings(Scope.BROKER)
    _, _, setting = key.removeprefix(LISTENER_PREFIX).partition(".")
    _, _, without_mechanism = setting.partition(".")
    return table.get(setting) or table.get(without_mechanism)
