"""Avro's JSON encoding: what console tools print and read. Bytes to it and back, without values in between.

A value of a union names its branch: `{"string": "soon"}`, and null is null. Bytes and fixeds are text of the letters
U+0000 to U+00FF. Logical types are what they stand on. NaN and the infinities are text, as JSON has none.
"""

import math
import struct
from typing import Any, Final

from ottla.schemas.avro.types import Array, AvroType, Enum, Field, Fixed, Map, Record, Union
from ottla.schemas.faults import CannotDecode, CannotEncode

_DEEPEST: Final = 200
_MOST_EMPTY: Final = 1_000_000
"""Elements that take no bytes: a short record could claim any number of them."""
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_INT, _LONG = 1 << 31, 1 << 63


def to_json_form(type: AvroType, content: bytes, start: int = 0) -> Any:
    """What JSON is to say. Raises `CannotDecode`."""
    reading = _Reading(content, start)
    value = reading.value(type, 0)
    if reading.at != len(content):
        raise CannotDecode(f"the record ends {len(content) - reading.at} bytes later than its schema says")
    return value


def from_json_form(type: AvroType, value: Any) -> bytes:
    """Raises `CannotEncode`, with the path to what is wrong."""
    written = bytearray()
    _write(written, type, value, ())
    return bytes(written)


class _Reading:
    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self.at = at
        self._empty = 0

    def value(self, type: AvroType, depth: int) -> Any:
        if depth > _DEEPEST:
            raise CannotDecode(f"values lie deeper than {_DEEPEST} within each other")
        match type:
            case Record():
                return {field.name: self.value(field.type, depth + 1) for field in type.fields}
            case Union():
                place = self._long()
                if not 0 <= place < len(type.branches):
                    raise CannotDecode(f"branch {place} of a union that has {len(type.branches)}")
                branch = type.branches[place]
                value = self.value(branch, depth + 1)
                return None if branch.kind == "null" else {branch.full_name: value}
            case Enum():
                place = self._long()
                if not 0 <= place < len(type.symbols):
                    raise CannotDecode(f"symbol {place} of {type.full_name}, which has {len(type.symbols)}")
                return type.symbols[place]
            case Fixed():
                return self._bytes(type.size).decode("latin-1")
            case Array():
                return [self.value(type.items, depth + 1) for _ in self._elements()]
            case Map():
                return {self._text(): self.value(type.values, depth + 1) for _ in self._elements()}
        return self._primitive(type.kind)

    def _primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._bytes(1) != b"\0"
            case "float":
                return _finite(struct.unpack("<f", self._bytes(4))[0])
            case "double":
                return _finite(struct.unpack("<d", self._bytes(8))[0])
            case "string":
                return self._text()
            case "bytes":
                return self._bytes(self._long()).decode("latin-1")
        value = self._long()
        if kind == "int" and not -_INT <= value < _INT:
            raise CannotDecode(f"{value} is no int")
        return value

    def _elements(self) -> Any:
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # how many bytes they take
            for _ in range(count):
                before = self.at
                yield None
                self._empty += self.at == before
                if self._empty > _MOST_EMPTY:
                    raise CannotDecode(f"more than {_MOST_EMPTY} elements that take no bytes")

    def _text(self) -> str:
        try:
            return self._bytes(self._long()).decode()
        except UnicodeDecodeError as problem:
            raise CannotDecode(f"a string is not UTF-8: {problem}") from None

    def _bytes(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self._content):
            raise CannotDecode("the record ends too early")
        self.at += count
        return self._content[self.at - count : self.at]

    def _long(self) -> int:
        number = shift = 0
        while True:
            if self.at >= len(self._content) or shift > 63:
                raise CannotDecode("the record ends too early" if shift <= 63 else "a number has more than 64 bits")
            byte = self._content[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        number &= (1 << 64) - 1
        return (number >> 1) ^ -(number & 1)


def _finite(number: float) -> float | str:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _write(out: bytearray, type: AvroType, value: Any, path: tuple[str, ...]) -> None:
    if len(path) > _DEEPEST:
        raise CannotEncode(f"values lie deeper than {_DEEPEST} within each other")
    match type:
        case Record():
            members = _as(dict, value, type, path)
            if unknown := members.keys() - {field.name for field in type.fields}:
                raise CannotEncode(f"{type.full_name} has no field {sorted(unknown)[0]!r}", path)
            for field in type.fields:
                _write(out, field.type, _member(members, field, path), (*path, field.name))
        case Union():
            place, inner = _branch(type, value, path)
            _long(out, place)
            _write(out, type.branches[place], inner, path)
        case Enum():
            if value not in type.symbols:
                raise CannotEncode(f"{type.full_name} has no symbol {value!r}", path)
            _long(out, type.symbols.index(value))
        case Fixed():
            content = _latin(value, type, path)
            if len(content) != type.size:
                raise CannotEncode(f"{type.full_name} has {type.size} bytes, and not {len(content)}", path)
            out += content
        case Array():
            elements = _as(list, value, type, path)
            if elements:
                _long(out, len(elements))
                for place, one in enumerate(elements):
                    _write(out, type.items, one, (*path, str(place)))
            out.append(0)
        case Map():
            members = _as(dict, value, type, path)
            if members:
                _long(out, len(members))
                for name, one in members.items():
                    _text(out, name.encode())
                    _write(out, type.values, one, (*path, name))
            out.append(0)
        case _:
            _write_primitive(out, type, value, path)


def _write_primitive(out: bytearray, type: AvroType, value: Any, path: tuple[str, ...]) -> None:
    match type.kind:
        case "null":
            if value is not None:
                raise CannotEncode(f"{value!r} is not null", path)
        case "boolean":
            out.append(_as(bool, value, type, path))
        case "string":
            _text(out, _as(str, value, type, path).encode())
        case "bytes":
            _text(out, _latin(value, type, path))
        case "float" | "double":
            number = _NOT_FINITE.get(value, value) if isinstance(value, str) else value
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise CannotEncode(f"{value!r} is no {type.kind}", path)
            try:
                out += struct.pack("<f" if type.kind == "float" else "<d", number)
            except OverflowError:
                raise CannotEncode(f"{value!r} is too large for a {type.kind}", path) from None
        case _:
            limit = _INT if type.kind == "int" else _LONG
            if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
                raise CannotEncode(f"{value!r} is no {type.kind}", path)
            _long(out, value)


def _member(members: dict[str, Any], field: Field, path: tuple[str, ...]) -> Any:
    if field.name not in members:
        raise CannotEncode(f"there is no field {field.name!r}; Avro's JSON has each, defaults too", path)
    return members[field.name]


def _branch(type: Union, value: Any, path: tuple[str, ...]) -> tuple[int, Any]:
    names = [branch.full_name for branch in type.branches]
    if value is None and "null" in names:
        return names.index("null"), None
    if isinstance(value, dict) and len(value) == 1 and (name := next(iter(value))) in names:
        return names.index(name), value[name]
    shown = next((name for name in names if name != "null"), "null")
    raise CannotEncode(f'a value of a union names its branch, as {{"{shown}": …}}; it is one of {names}', path)


def _as(kind: type[Any], value: Any, type: AvroType, path: tuple[str, ...]) -> Any:
    if not isinstance(value, kind):
        raise CannotEncode(f"{value!r} is no {type.full_name}", path)
    return value


def _latin(value: Any, type: AvroType, path: tuple[str, ...]) -> bytes:
    try:
        return bytes(_as(str, value, type, path).encode("latin-1"))
    except UnicodeEncodeError:
        raise CannotEncode(f"{value!r} has letters beyond U+00FF, and is no {type.full_name}", path) from None


def _text(out: bytearray, content: bytes) -> None:
    _long(out, len(content))
    out += content


def _long(out: bytearray, number: int) -> None:
    zigzag = ((number << 1) ^ (number >> 63)) & ((1 << 64) - 1)
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)
