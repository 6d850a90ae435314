"""The slow paths of generated decoders: long, null and broken items. The fast paths are in line.

Every size is held against the bytes that are left before anything of that size is made.
"""

from struct import unpack_from
from typing import Any

from ottla.base.lent import Seen
from ottla.wire.faults import (
    DecodeError,
    InvalidTextError,
    OversizeError,
    TruncatedError,
    UnexpectedNullError,
)
from ottla.wire.layout import array_format, width
from ottla.wire.varint import continue_varint, read_varint

MAX_STRING_BYTES = 0x7FFF


def compact_length(buffer: Seen, position: int, first: int) -> tuple[int, int]:
    """A compact length (-1: null) whose first byte, before `position`, was `first`; and the position after it."""
    if first > 127:
        first, position = continue_varint(buffer, position, first)
    return first - 1, position


def check_size(buffer: Seen, position: int, size: int) -> None:
    """`size` bytes must be left; -1, for null, must have been handled where the schema allows it."""
    if size == -1:
        raise UnexpectedNullError("null where the schema allows none", position)
    if size < 0:
        raise OversizeError(f"a negative size of {size}", position)
    if size > len(buffer) - position:
        raise OversizeError(f"a size of {size} with {len(buffer) - position} bytes left", position)


def check_count(buffer: Seen, position: int, count: int, least_size: int) -> None:
    """`count` elements of at least `least_size` bytes must fit in what is left."""
    if count == -1:
        raise UnexpectedNullError("null where the schema allows none", position)
    if count < 0:
        raise OversizeError(f"a negative count of {count}", position)
    if count * least_size > len(buffer) - position:
        raise OversizeError(f"a count of {count} with {len(buffer) - position} bytes left", position)


def read_bytes(buffer: Seen, position: int, size: int) -> tuple[bytes, int]:
    check_size(buffer, position, size)
    end = position + size
    return bytes(buffer[position:end]), end


def read_text(buffer: Seen, position: int, size: int) -> tuple[str, int]:
    """A string; longer ones than 32,767 bytes are refused in every encoding, as Kafka does."""
    if size > MAX_STRING_BYTES:
        raise OversizeError(f"a string of {size} bytes", position)
    content, end = read_bytes(buffer, position, size)
    try:
        return content.decode(), end
    except UnicodeDecodeError as error:
        raise invalid_text(position + error.start) from None


def read_numbers(buffer: Seen, position: int, count: int, element: str) -> tuple[tuple[Any, ...], int]:
    """An array of fixed-width elements."""
    size = width(element)
    check_count(buffer, position, count, size)
    return unpack_from(">" + array_format(element, count), buffer, position), position + count * size


def read_unknown_tags(buffer: Seen, position: int, count: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """Tagged fields of a struct that has none in its schema; `count` is the first byte of their number."""
    if count > 127:
        count, position = continue_varint(buffer, position, count)
    check_count(buffer, position, count, 2)
    tags = []
    for _ in range(count):
        tag, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        content, position = read_bytes(buffer, position, size)
        tags.append((tag, content))
    return tuple(tags), position


def invalid_text(position: int) -> DecodeError:
    return InvalidTextError("a string is not UTF-8", position)


def truncated(buffer: Seen, position: int) -> DecodeError:
    return TruncatedError(f"the message needs more than the {max(0, len(buffer) - position)} bytes left", position)
