"""Options of converters, transforms and predicates: rows of the house's settings tables, read in Kafka's words.

    ROWS = (Flag("schemas.enable", True, ANY, HIGH, "…"),)
    options = read_options(ROWS, {"schemas.enable": "false"})
    options.flag("schemas.enable")

What is wrong is told as Kafka tells it (`ConfigException`): people and tools look for these sentences. As there, the
first that is wrong is told, and names that no row has are ignored: they may be somebody else's.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.config.bounds import Bound, Items, NotEmpty, OneOf
from ottla.config.parse import Values
from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import Type, Value, parse_value
from ottla.connect.errors import ConnectError

_EXPECTED: Final = {
    Type.BOOLEAN: "Expected value to be either true or false",
    Type.SHORT: "Not a number of type SHORT",
    Type.INT: "Not a number of type INT",
    Type.LONG: "Not a number of type LONG",
    Type.DOUBLE: "Not a number of type DOUBLE",
}


class InvalidOption(ConnectError):
    """An option that cannot be used: Kafka's ConfigException."""


def invalid(name: str, value: object, reason: str) -> InvalidOption:
    """`Invalid value … for configuration …: …`"""
    return InvalidOption(f"Invalid value {_shown(value)} for configuration {name}: {reason}")


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def read_options(rows: Sequence[Setting], given: Mapping[str, str | None]) -> Values:
    """The values of these rows. Raises `InvalidOption`."""
    read: dict[str, Value] = {}
    for row in rows:
        text = given.get(row.name)
        if text is None and row.name in given and row.default is not REQUIRED:
            value: Value = None
        elif text is not None:
            try:
                value = parse_value(row.type, text)
            except ValueError as expected:
                raise invalid(row.name, text, _EXPECTED.get(row.type, str(expected))) from None
        elif row.default is REQUIRED:
            raise InvalidOption(f'Missing required configuration "{row.name}" which has no default value.')
        else:
            continue
        if isinstance(value, tuple) and isinstance(row.bound, Items):
            value = tuple(dict.fromkeys(value))  # what is named twice counts once (KIP-1161)
        if row.bound is not None:
            hold(row.name, row.bound, value)
        read[row.name] = value
    return Values(read, {row.name: row for row in rows})


def hold(name: str, bound: Bound, value: Value) -> None:
    """Holds a value to its bound. Raises `InvalidOption`, in Kafka's words for bounds that Kafka has."""
    if isinstance(bound, NotEmpty) and value is None:
        return
    if bound.allows(value):
        return
    if isinstance(bound, OneOf):
        # A bound that is for any case has its names in the order in which Kafka tells them, that of a hash table.
        case = " (case insensitive)" if bound.any_case else ""
        raise invalid(name, value, f"String must be one of{case}: {', '.join(bound.names)}")
    if isinstance(bound, NotEmpty):
        raise invalid(name, value, "String must be non-empty")
    if isinstance(bound, Items):
        if value is None:
            raise InvalidOption(f"Configuration '{name}' values must not be null.")
        assert isinstance(value, tuple)
        if not value:
            raise InvalidOption(f"Configuration '{name}' must not be empty. Valid values include: any non-empty value")
        raise InvalidOption(f"Configuration '{name}' values must not be empty.")
    raise invalid(name, value, f"it must be {bound}")
