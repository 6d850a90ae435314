"""Numbers as Java converts them: to fewer bits, from floating point, and from texts."""

import math
import re
import struct
from decimal import Decimal
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?\d+")
_FLOAT: Final = re.compile(r"([+-]?)(NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)
_SPACE: Final = "".join(map(chr, range(33)))
_FLOAT32: Final = struct.Struct("<f")


def wrapped(number: int, bits: int) -> int:
    """The lower bits, as a signed number."""
    return ((number + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1)


def integer_of(number: float, bits: int) -> int:
    """A number with a fraction becomes an int or a long first, which stops at its bounds; then bits are dropped."""
    if math.isnan(number):
        return 0
    bound = 1 << (max(bits, 32) - 1)
    return wrapped(int(min(max(number, -bound), bound - 1)), bits)


def parse_integer(text: str, bits: int) -> int:
    """Raises `ValueError`."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    number = int(text) if len(text) < 4_000 else 1 << 64
    if number != wrapped(number, bits):
        raise ValueError(text)
    return number


def parse_double(text: str) -> float:
    """Raises `ValueError`."""
    return float(_plain(text)) if _HEX.fullmatch(text.strip(_SPACE)) is None else _from_hex(text)


def parse_float(text: str) -> float:
    """The nearest number of 32 bits. Raises `ValueError`."""
    return as_float32(_plain(text)) if _HEX.fullmatch(text.strip(_SPACE)) is None else narrowed(_from_hex(text))


def _plain(text: str) -> str:
    found = _FLOAT.fullmatch(text.strip(_SPACE))
    if found is None:
        raise ValueError(text)
    named = found[2] in ("NaN", "Infinity")
    return found[0] if named else found[0].rstrip("fFdD")


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text.strip(_SPACE).rstrip("fFdD") if not text.lower().endswith("p") else text)
    except OverflowError:
        return math.copysign(math.inf, -1.0 if text.strip(_SPACE).startswith("-") else 1.0)


def narrowed(number: float) -> float:
    """The nearest number of 32 bits."""
    try:
        made: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return made


def as_float32(text: str) -> float:
    """The number of 32 bits that is nearest to a decimal one. By way of 64 bits a number that lies just beside the
    middle of two would be taken for the middle."""
    wide = float(text)
    narrow = narrowed(wide)
    if math.isinf(wide) or math.isnan(wide) or narrow == wide or len(text) > 1_000:
        return narrow
    exact = Decimal(text)
    if exact == Decimal(wide):
        return narrow
    towards = math.nextafter(wide, math.inf if exact > Decimal(wide) else -math.inf)
    other = narrowed(towards)
    if other == narrow:
        return narrow
    # The two differ only if `wide` is the very middle: the side on which the exact number lies decides.
    return other
