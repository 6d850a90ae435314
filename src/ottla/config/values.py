"""The types of settings, and how text becomes a value of each.

The rules are those of Apache Kafka's `ConfigDef`: text is trimmed first; true and false in any case; integers in
decimal, of 16, 32 or 64 bits; a list is split at commas; and a class is a dotted name, which is kept as text here
because nothing of Java's can be loaded.
"""

import re
from enum import Enum
from typing import Final


class Type(Enum):
    """The names DescribeConfigs and the reference page use."""

    BOOLEAN = "boolean"
    STRING = "string"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"


class Password:
    """A secret. It shows itself only through `secret`: never in a log line, an error or a repr."""

    __slots__ = ("secret",)

    def __init__(self, secret: str) -> None:
        self.secret: Final = secret

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self.secret == other.secret

    def __hash__(self) -> int:
        return hash(self.secret)


HIDDEN: Final = "[hidden]"

Value = bool | int | float | str | tuple[str, ...] | Password | None

_BITS: Final = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}

# Java trims every character up to the space, and nothing else; Python's strip() would also take a no-break space.
_JAVA_BLANK: Final = "".join(map(chr, range(33)))

# A trailing type letter is allowed, as in a literal; so is hexadecimal in Java, which nobody writes.
_JAVA_DOUBLE: Final = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[dDfF]?")


def parse_value(type: Type, text: str) -> Value:
    """The value that `text` stands for. Raises `ValueError` saying what was expected instead."""
    text = text.strip(_JAVA_BLANK)
    match type:
        case Type.BOOLEAN:
            return _parse_boolean(text)
        case Type.SHORT | Type.INT | Type.LONG:
            return _parse_integer(text, _BITS[type])
        case Type.DOUBLE:
            return _parse_double(text)
        case Type.LIST:
            return tuple(item.strip() for item in text.split(",")) if text else ()
        case Type.PASSWORD:
            return Password(text)
        case Type.STRING | Type.CLASS:
            return text


def _parse_boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("true or false")


def _parse_integer(text: str, bits: int) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    # int() alone would take underscores and blanks too; isdecimal() takes the digits of every script, as Java does.
    if digits.isdecimal() and len(digits) < 5_000 and -(1 << bits - 1) <= (number := int(text)) < 1 << bits - 1:
        return number
    raise ValueError(f"a whole number of {bits} bits")


def _parse_double(text: str) -> float:
    if match := _JAVA_DOUBLE.fullmatch(text):
        return float(match[1])
    raise ValueError("a number")


def value_text(value: Value) -> str:
    """A value as a person or DescribeConfigs reads it; a secret stays hidden."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case _:
            return str(value)
