"""Values from texts that say themselves what they are, as Kafka guesses: InsertHeader's literal, and headers that were
written as text (SimpleHeaderConverter).

    parse_literal("42")         # INT8 42
    parse_literal("[1, 300]")   # an array of INT16
    parse_literal("2026-11-18") # a Date
    parse_literal("it is")      # STRING

Numbers are the narrowest that hold them; dates, times and timestamps are ISO 8601 with milliseconds and a `Z`; arrays
and maps have entries of one kind, or such as can become one. Anything else is the text itself.
"""

import re
from decimal import Decimal
from typing import Any, Final, NamedTuple

from ottla.connect.data import schema as schemas
from ottla.connect.data.rows import MOST_DIGITS
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import DataError
from ottla.connect.java_dates import DAY_MS, DateFormat
from ottla.connect.java_numbers import as_float32
from ottla.connect.java_text import trimmed

_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
_TIME: Final = DateFormat("HH:mm:ss.SSS'Z'")
_DATE: Final = DateFormat("yyyy-MM-dd")
_TIMESTAMP: Final = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_WIDER: Final = (*_INTEGERS, Type.FLOAT32, Type.FLOAT64)
_DEEPEST: Final = 50


class Literal(NamedTuple):
    """`schema` is None for null alone."""

    schema: Schema | None
    value: Any


def parse_literal(text: str) -> Literal:
    if not text:
        return Literal(Schema(Type.STRING), "")
    tokens = _Tokens(text)
    try:
        return _parsed(tokens, within=False, depth=0)
    except DataError:
        return Literal(Schema(Type.STRING), text)


class _Tokens:
    """Words of the text, and the marks between them. A backslash takes a mark's meaning away."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._next: str | None = None

    def mark(self) -> int:
        return self.at - (len(self._next) if self._next is not None else 0)

    def rewind(self, at: int) -> None:
        self.at, self._next = at, None

    def has_next(self) -> bool:
        return self._next is not None or self.at < len(self.text)

    def next(self) -> str:
        found, self._next = (self._read() if self._next is None else self._next), None
        return found

    def _read(self) -> str:
        start, escaped = self.at, False
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in '",:[]{}' and not escaped:
                if start == self.at:
                    self.at += 1
                break
            escaped = letter == "\\" and not escaped
            self.at += 1
        return self.text[start : self.at]

    def takes(self, expected: str) -> bool:
        """Whether that comes next; then it is taken. Space around it does not count."""
        if not self.has_next():
            return False
        if self._next is None:
            self._next = self._read()
        while not self._next.strip() and self.at < len(self.text):
            self._next = self._read()
        if trimmed(self._next) != expected:
            return False
        self._next = None
        return True


def _parsed(tokens: _Tokens, *, within: bool, depth: int) -> Literal:
    if not tokens.has_next():
        return Literal(None, None)
    if depth > _DEEPEST:
        raise DataError("nested too deep")
    if within and tokens.takes('"'):
        return _quoted(tokens)
    for word, found in _WORDS.items():
        start = tokens.mark()
        if tokens.takes(word) and (within or not tokens.has_next()):
            return found
        tokens.rewind(start)
    start = tokens.mark()
    try:
        if tokens.takes("["):
            return _array(tokens, depth)
        if tokens.takes("{"):
            return _map(tokens, depth)
    except DataError:
        tokens.rewind(start)
    token = tokens.next()
    if not token.strip():
        return Literal(Schema(Type.STRING), token)
    token = trimmed(token)
    if token[0].isdigit():
        start = tokens.mark()
        following = ""
        for _ in range(4):  # of 12:00:00.000Z, whose colons are marks
            if not tokens.has_next():
                break
            tokens.next()
        else:
            following = tokens.text[start : tokens.at]
        moment = _moment(token + following) if following else None
        if moment is not None:
            return moment
        tokens.rewind(start)
        moment = _moment(token)
        if moment is not None:
            return moment
    if (token[0].isdigit() or token[0] in "+-") and _NUMBER.fullmatch(token):
        return _number(token)
    if within:
        raise DataError("Failed to parse embedded value")
    return Literal(Schema(Type.STRING), tokens.text)


def _quoted(tokens: _Tokens) -> Literal:
    content = ""
    while tokens.has_next() and not tokens.takes('"'):
        content += tokens.next()
    return _moment(content) or Literal(Schema(Type.STRING), content)


def _moment(text: str) -> Literal | None:
    text = text.replace("\\:", ":")
    kinds = {13: (_TIME, schemas.time()), 24: (_TIMESTAMP, schemas.timestamp()), 10: (_DATE, schemas.date())}
    if len(text) not in kinds:
        return None
    dates, schema = kinds[len(text)]
    try:
        ms = dates.moment(text)
    except ValueError:
        return None
    return Literal(schema, ms // DAY_MS if dates is _DATE else ms)


def _number(token: str) -> Literal:
    number = Decimal(token)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) > MOST_DIGITS:
        raise DataError(f"a decimal has more than {MOST_DIGITS} digits")
    if (abs(number) >= 1 or not number) and abs(number) <= Decimal("1e19") and number == number.to_integral_value():
        whole = int(number)
        for kind in _INTEGERS:
            bound = 1 << int(kind.value[3:]) - 1
            if -bound <= whole < bound:
                return Literal(Schema(kind), whole)
    if exponent != 0:
        narrow, wide = as_float32(token), float(token)
        if abs(narrow) != float("inf"):
            return Literal(Schema(Type.FLOAT32), narrow)
        if abs(wide) != float("inf"):
            return Literal(Schema(Type.FLOAT64), wide)
    return Literal(schemas.decimal(-exponent), number)


def _array(tokens: _Tokens, depth: int) -> Literal:
    found: list[Literal] = []
    while tokens.has_next():
        if tokens.takes("]"):
            schema = _common(found)
            return Literal(schemas.array(schema), [_aligned(schema, one) for one in found])
        if tokens.takes(","):
            raise DataError("Unable to parse an empty array element")
        found.append(_parsed(tokens, within=True, depth=depth + 1))
        at = tokens.mark()
        if tokens.takes("]"):
            tokens.rewind(at)
        elif not tokens.takes(","):
            raise DataError("Array elements missing ',' delimiter")
    raise DataError("Array is missing terminating ']'")


def _map(tokens: _Tokens, depth: int) -> Literal:
    found: list[tuple[Literal, Literal]] = []
    while tokens.has_next():
        if tokens.takes("}"):
            keys, items = _common([key for key, _ in found]), _common([item for _, item in found])
            pairs: list[tuple[Any, Any]] = []
            for key, item in found:
                made = _aligned(keys, key)
                pairs = [pair for pair in pairs if pair[0] != made] + [(made, _aligned(items, item))]
            return Literal(schemas.map_of(keys, items), pairs)
        if tokens.takes(","):
            raise DataError("Unable to parse a map entry with no key or value")
        key = _parsed(tokens, within=True, depth=depth + 1)
        if key.value is None:
            raise DataError("Map entry may not have a null key")
        if not tokens.takes(":"):
            raise DataError("Map entry is missing ':'")
        found.append((key, _parsed(tokens, within=True, depth=depth + 1)))
        tokens.takes(",")
    raise DataError("Map is missing terminating '}'")


def _common(found: list[Literal]) -> Schema:
    """One schema for all of them: the widest of numbers. Raises `DataError` if there is none, or nulls are among them.
    Where nothing tells, it is text that may be null."""
    common: Schema | None = None
    nulls = sum(1 for schema, _ in found if schema is None)
    if 0 < nulls < len(found):
        raise DataError("null among entries that may not be null")
    for schema, _ in found:
        if schema is None or common == schema:
            continue
        if common is None:
            common = schema
        elif common.logical is None and schema.logical is None and {common.type, schema.type} <= set(_WIDER):
            common = max(common, schema, key=lambda one: _WIDER.index(one.type))
        else:
            raise DataError("entries have no common schema")
    return common or Schema(Type.STRING, optional=True)


def _aligned(schema: Schema, found: Literal) -> Any:
    return float(found.value) if schema.type is Type.FLOAT32 and isinstance(found.value, int) else found.value


_WORDS: Final = {
    "null": Literal(None, None),
    "true": Literal(Schema(Type.BOOLEAN), True),
    "false": Literal(Schema(Type.BOOLEAN), False),
}
