"""MySQL's binary form of JSON, as the binary log has it, to text.

A value is a byte of its kind and its bytes. Objects and arrays have a table of offsets, of two bytes each, or of four
in the large kinds; short numbers and literals are in the table itself. Text is without spaces, as Debezium writes it.
"""

import json
import struct
from typing import Any, Final

from ottla.connect.errors import DataError

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = 0, 1, 2, 3, 4
_NUMBERS: Final = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", 11: "<d"}
_STRING, _OPAQUE = 12, 15
_INLINE: Final = {_LITERAL, 5, 6}
_INLINE_LARGE: Final = {*_INLINE, 7, 8}
_LITERALS: Final = {0: None, 1: True, 2: False}
_DECIMAL, _DATE, _TIME, _DATETIME, _TIMESTAMP = 246, 10, 11, 12, 7


def text_of(raw: bytes) -> str:
    """Raises `DataError` if the bytes are no JSON."""
    if not raw:
        return "null"
    try:
        value = _value(raw[0], raw[1:])
    except (IndexError, struct.error, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"a JSON value of the binary log cannot be read: {error}") from None
    return _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{_shown(one)}" for name, one in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(_shown, value)) + "]"
    return value.text if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


class _Number:
    """A decimal, whose digits stay as they are."""

    def __init__(self, text: str) -> None:
        self.text = text


def _value(kind: int, body: bytes) -> Any:
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY):
        return _container(kind, body)
    if kind == _LITERAL:
        return _LITERALS[body[0]]
    if kind in _NUMBERS:
        return struct.unpack_from(_NUMBERS[kind], body)[0]
    if kind == _STRING:
        length, at = _length(body, 0)
        return body[at : at + length].decode()
    if kind == _OPAQUE:
        length, at = _length(body, 1)
        return _opaque(body[0], body[at : at + length])
    raise DataError(f"a JSON value has the kind {kind}, which is not known")


def _length(body: bytes, at: int) -> tuple[int, int]:
    length, shift = 0, 0
    while True:
        byte = body[at]
        at += 1
        length |= (byte & 0x7F) << shift
        if byte < 128:
            return length, at
        shift += 7


def _container(kind: int, body: bytes) -> Any:
    is_large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
    width = 4 if is_large else 2

    def number(at: int, size: int = width) -> int:
        return int.from_bytes(body[at : at + size], "little")

    count = number(0)
    at = 2 * width
    is_object = kind in (_SMALL_OBJECT, _LARGE_OBJECT)
    names: list[str] = []
    if is_object:
        for place in range(count):
            entry = at + place * (width + 2)
            start = number(entry)
            names.append(body[start : start + number(entry + width, 2)].decode())
        at += count * (width + 2)
    values: list[Any] = []
    for place in range(count):
        entry = at + place * (width + 1)
        inner = body[entry]
        if inner in (_INLINE_LARGE if is_large else _INLINE):
            values.append(_value(inner, body[entry + 1 : entry + 1 + width]))
        else:
            values.append(_value(inner, body[number(entry + 1) :]))
    return dict(zip(names, values, strict=True)) if is_object else values


def _opaque(kind: int, raw: bytes) -> Any:
    if kind == _DECIMAL:
        return _Number(_decimal(raw[0], raw[1], raw[2:]))
    if kind in (_DATE, _DATETIME, _TIMESTAMP, _TIME):
        return _moment(kind, int.from_bytes(raw, "little", signed=True))
    return raw.decode("utf-8", "replace")


def _decimal(precision: int, scale: int, raw: bytes) -> str:
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    is_negative = raw[0] < 128
    content = bytes([raw[0] ^ 0x80]) + raw[1:]
    if is_negative:
        content = bytes(byte ^ 0xFF for byte in content)
    whole = precision - scale
    at, text = 0, ""
    for digits in [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]:
        if digits:
            size = sizes[digits]
            text += str(int.from_bytes(content[at : at + size], "big")).rjust(digits, "0")
            at += size
    shown = text[:whole].lstrip("0") or "0"
    if scale:
        shown += "." + text[whole:]
    return "-" + shown if is_negative else shown


def _moment(kind: int, packed: int) -> str:
    sign = "-" if packed < 0 else ""
    size = abs(packed)
    fraction, whole = size & 0xFFFFFF, size >> 24
    clock = whole & 0x1FFFF
    shown = f"{clock >> 6 & 63:02}:{clock & 63:02}.{fraction:06}"
    if kind == _TIME:
        return f"{sign}{whole >> 12:02}:{shown}"
    day = whole >> 17
    date = f"{(day >> 5) // 13:04}-{(day >> 5) % 13:02}-{day & 31:02}"
    return date if kind == _DATE else f"{date} {clock >> 12:02}:{shown}"
