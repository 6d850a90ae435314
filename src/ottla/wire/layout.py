"""How wide things are on the wire, and precompiled `struct` codecs for runs of them.

A run of fixed-width fields is one `struct.Struct`. What follows a length prefix is variable, but lengths are small
and few: an `Unpackers` or `Packers` table keeps one `Struct` per length that has been seen, with the fixed-width fields
around it in the same format, so that a string and what surrounds it cost one call.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct, calcsize
from typing import Any

from ottla.wire import schema

FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}

SMALL = 128
"""Compact lengths below this fit one byte; tables hold no other lengths, which bounds their memory."""


def width(run: str) -> int:
    return calcsize(">" + run)


def array_format(element: str, count: int) -> str:
    """`struct` repeats counts for numbers only: `3i` is three numbers, but `316s` is one string."""
    return element * count if element.endswith("s") else f"{count}{element}"


class Unpackers(dict[int, Callable[..., tuple[Any, ...]]]):
    """Length to `unpack_from` of that many elements (`s`: bytes as one value), then the run `after`.

    `bias` is what the length on the wire has on top of the element count: 1 in compact encodings.
    """

    def __init__(self, element: str, bias: int, after: str) -> None:
        self.element, self.bias, self.after = element, bias, after

    def __missing__(self, length: int) -> Callable[..., tuple[Any, ...]]:
        count = length - self.bias
        content = f"{count}s" if self.element == "s" else array_format(self.element, count)
        unpack = self[length] = Struct(">" + content + self.after).unpack_from
        return unpack


class Packers(dict[int, Callable[..., bytes]]):
    """Count to `pack` of the run `before`, then that many elements."""

    def __init__(self, before: str, element: str) -> None:
        self.before, self.element = before, element

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = self[count] = Struct(">" + self.before + array_format(self.element, count)).pack
        return pack


@cache
def unpackers(element: str, bias: int, after: str) -> Unpackers:
    return Unpackers(element, bias, after)


@cache
def packers(before: str, element: str) -> Packers:
    return Packers(before, element)


@cache
def unpacker(run: str) -> Callable[..., tuple[Any, ...]]:
    return Struct(">" + run).unpack_from


@cache
def packer(run: str) -> Callable[..., bytes]:
    return Struct(">" + run).pack


def is_flexible(message: schema.Message, field: schema.Field, version: int) -> bool:
    """Whether a field's lengths are compact. One field, the request header's client id, never follows its message."""
    return version in (message.flexible if field.flexible is None else field.flexible)


def length_format(field_type: str, is_array: bool, flexible: bool) -> str:
    if flexible:
        return "B"
    return "h" if field_type == "string" and not is_array else "i"


def least_size(message: schema.Message, struct: schema.Struct, version: int) -> int:
    """The fewest bytes a struct takes: what bounds how many of them may be announced."""
    size = 1 if version in message.flexible else 0
    for field in struct.fields:
        if field.mandatory_in(version):
            size += _least_field_size(message, field, version)
    return size


def _least_field_size(message: schema.Message, field: schema.Field, version: int) -> int:
    if field.is_array or field.type in ("string", "bytes", "records"):
        return width(length_format(field.type, field.is_array, is_flexible(message, field, version)))
    if field.struct is None:
        return width(FORMATS[field.type])
    return 1 if version in field.nullable else least_size(message, field.struct, version)
