"""What a command was given, as JSON: each value taken by name and type, and none left over."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from ottla.base.errors import OttlaError

_MOST = 1 << 40


class WrongCommand(OttlaError):
    """A command that cannot be carried out as it was given; the message says why, for the one who wrote it."""


class Parameters:
    """Taken one by one; then `finish` refuses what nobody has taken."""

    def __init__(self, given: object) -> None:
        if not isinstance(given, dict):
            raise WrongCommand("the body must be a JSON object")
        self._given = dict(given)
        self._known: list[str] = []

    def text(self, name: str) -> str:
        value = self.maybe_text(name)
        if value is None:
            raise WrongCommand(f"{name} is missing")
        return value

    def maybe_text(self, name: str) -> str | None:
        value = self._take(name)
        if value is None or (isinstance(value, str) and value):
            return value
        raise WrongCommand(f"{name} must be a text, and is {value!r}")

    def integer(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        value = self.maybe_integer(name, default, least=least)
        if value is None:
            raise WrongCommand(f"{name} is missing")
        return value

    def maybe_integer(self, name: str, default: int | None = None, *, least: int = 1) -> int | None:
        """Null is None, and not the default."""
        value = self._take(name, default)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST:
            return value
        raise WrongCommand(f"{name} must be a whole number of at least {least}, and is {value!r}")

    def flag(self, name: str, default: bool) -> bool:
        value = self._take(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        raise WrongCommand(f"{name} must be true or false, and is {value!r}")

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        value = self.maybe_text(name)
        if value is None or value in choices:
            return value or default
        raise WrongCommand(f"{name} must be {' or '.join(choices)}, and is {value!r}")

    def finish(self) -> None:
        for name in self._given:
            raise WrongCommand(f"there is no {name}{nearest(name, self._known)}")

    def _take(self, name: str, default: object = None) -> object:
        self._known.append(name)
        return self._given.pop(name, default)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the name that was probably meant; empty if there is none near."""
    lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), lower, 1)
    return f"; did you mean {lower[found[0]]}?" if found else ""
