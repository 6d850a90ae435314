"""JSON as texts of schemas have it: read within limits, and written as Java's Jackson writes it.

Registries compare texts, so what is written must be the same bytes that Confluent's registry would write: no white
space, members in their order, escapes in Jackson's form, floating-point numbers as Java prints them. JSON Schema
keeps decimals exactly (`Decimal`); Avro reads them as doubles, as Java's parser does.

Depth, length of numbers and size are looked at in one pass over the text, before anything is built from it: `json`
itself would end in a RecursionError.
"""

import re
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from json import JSONDecodeError, JSONDecoder
from json.encoder import encode_basestring
from typing import Any, Final

from ottla.schemas.schema import InvalidSchema, Limits

LONGEST_NUMBER: Final = 1_000
"""Digits, as in Jackson."""

_TOKENS: Final = re.compile(
    # What is not ended reaches to the end of the text: it must not be tried again from every character of it.
    r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|[0-9][0-9.eE+-]*+',
    re.DOTALL,
)
_SURROGATES: Final = re.compile(r"\\u[dD][89a-fA-F]")
_CONTROLS: Final = re.compile(r"\\u00[01][a-f0-9]")


def read_json(text: str, limits: Limits, *, comments: bool = False, decimals: bool = False) -> Any:
    """What the text says: dict, list, str, int, bool, None, and float or, with `decimals`, Decimal. Of a member that is
    there twice, the last counts, in the place of the first. With `comments` there may be those of Java. Raises
    `InvalidSchema`."""
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise InvalidSchema("the text has half of a surrogate pair, which UTF-8 cannot encode") from None
    if size > limits.text_bytes:
        raise InvalidSchema(f"the text has {size} bytes, and a schema may have {limits.text_bytes}")
    text = _scanned(text, limits, comments)
    try:
        value = (_EXACT if decimals else _DOUBLES).decode(text)
    except JSONDecodeError as error:
        raise InvalidSchema(f"not JSON: {error.msg}", f"line {error.lineno}, column {error.colno}") from None
    except (ValueError, InvalidOperation) as error:
        raise InvalidSchema(f"not JSON: {error}") from None
    if _SURROGATES.search(text):
        try:
            write_json(value).encode()
        except UnicodeEncodeError:
            raise InvalidSchema("a string has half of a surrogate pair, which UTF-8 cannot encode") from None
    return value


def _scanned(text: str, limits: Limits, comments: bool) -> str:
    """The text without its comments, if it is within limits. What is not JSON at all is found by the decoder."""
    depth = 0
    found_comments = False
    for token in _TOKENS.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
            if depth > limits.nesting:
                raise InvalidSchema(f"JSON is nested deeper than {limits.nesting}", f"character {token.start()}")
        elif first in "]}":
            depth -= 1
        elif first == "/":
            found_comments = True
        elif first != '"' and len(token[0]) > LONGEST_NUMBER:
            raise InvalidSchema(f"a number has more than {LONGEST_NUMBER} digits", f"character {token.start()}")
    if found_comments and comments:
        return _TOKENS.sub(lambda token: " " if token[0][0] == "/" else token[0], text)
    return text


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


_DOUBLES: Final = JSONDecoder(parse_constant=_no_constant)
_EXACT: Final = JSONDecoder(parse_constant=_no_constant, parse_float=Decimal)


def write_json(value: Any) -> str:
    """As Jackson writes a tree: compact, members in their order."""
    pieces: list[str] = []
    _write(value, pieces.append)
    return "".join(pieces)


def _write(value: Any, put: Callable[[str], object]) -> None:
    if isinstance(value, str):
        put(json_string(value))
    elif value is None:
        put("null")
    elif isinstance(value, bool):
        put("true" if value else "false")
    elif isinstance(value, int | Decimal):
        put(str(value))
    elif isinstance(value, float):
        put(java_double(value))
    elif isinstance(value, dict):
        before = "{"
        for name, member in value.items():
            put(before)
            put(json_string(name))
            put(":")
            _write(member, put)
            before = ","
        put("}" if before == "," else "{}")
    else:
        before = "["
        for element in value:
            put(before)
            _write(element, put)
            before = ","
        put("]" if before == "," else "[]")


def json_string(text: str) -> str:
    """A string with its quotes. Control characters have upper-case hexadecimal digits, as Jackson's have."""
    quoted = encode_basestring(text)
    return _CONTROLS.sub(lambda found: "\\u" + found[0][2:].upper(), quoted) if "\\u00" in quoted else quoted


def sorted_json(value: Any) -> Any:
    """The same with the members of all objects in the order of their names, as UTF-16 sorts them."""
    if isinstance(value, dict):
        return {name: sorted_json(value[name]) for name in sorted(value, key=utf_16_order)}
    if isinstance(value, list):
        return [sorted_json(element) for element in value]
    return value


def utf_16_order(text: str) -> bytes:
    """What Java's strings are compared by."""
    return text.encode("utf-16-be", "surrogatepass")


def same_json(one: Any, other: Any) -> bool:
    """Whether both are the same JSON. Python takes True for 1 and 1 for 1.0; JSON has three different values there."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other) or (one != one and other != other)


def java_double(value: float) -> str:
    """A double as Java prints it: 1.0, 1.0E10, 1.0E-5. NaN and infinities are in quotes, as Jackson writes them."""
    return _java_number(value, repr(abs(value)))


def java_float(value: float) -> str:
    """The same of a float of 32 bits: the shortest digits that give it back."""
    try:
        (single,) = _FLOAT.unpack(_FLOAT.pack(value))
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    magnitude = abs(single)
    for digits in range(1, 10):
        shortest = f"{magnitude:.{digits - 1}e}"
        try:
            if _FLOAT.unpack(_FLOAT.pack(float(shortest)))[0] == magnitude:
                return _java_number(single, shortest)
        except OverflowError:
            pass
    return _java_number(single, f"{magnitude:.8e}")


_FLOAT: Final = struct.Struct("<f")


def _java_number(value: float, magnitude: str) -> str:
    if value != value:
        return '"NaN"'
    if value in (float("inf"), float("-inf")):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    _, digit_tuple, exponent = Decimal(magnitude).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, digit_tuple)).lstrip("0")
    exponent += len(digits) - 1
    digits = digits.rstrip("0") or "0"
    sign = "-" if str(value)[0] == "-" else ""
    if value == 0:
        return f"{sign}0.0"
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
