"""The rarer parts of encoding that generated encoders call: long arrays, tag sections, payload sizes."""

from collections.abc import Sequence
from struct import pack
from typing import Any

from ottla.wire.layout import array_format
from ottla.wire.reading import MAX_STRING_BYTES
from ottla.wire.varint import encode_varint


def write_numbers(values: Sequence[Any], element: str, flexible: bool) -> bytes:
    """Count and elements of an array of fixed-width elements."""
    count = len(values)
    length = encode_varint(count + 1) if flexible else pack(">i", count)
    return length + pack(">" + array_format(element, count), *values)


def check_text(length: int) -> None:
    """A compact length could announce a longer string than any receiver accepts."""
    if length - 1 > MAX_STRING_BYTES:
        raise ValueError(f"a string of {length - 1} bytes")


def check_uuid(value: bytes) -> None:
    """`struct` would pad or cut it without a word."""
    if len(value) != 16:
        raise ValueError(f"a UUID of {len(value)} bytes")


def payload_size(payload: Any) -> int:
    """The size in bytes of a records payload: a buffer, or a span of a file with a length."""
    return payload.nbytes if type(payload) is memoryview else len(payload)


def tag_section(tags: list[tuple[int, bytes]]) -> bytes:
    """Tagged fields, known and unknown, in the ascending order that KIP-482 asks for."""
    tags.sort(key=lambda tag: tag[0])
    section = [encode_varint(len(tags))]
    for tag, content in tags:
        section += encode_varint(tag), encode_varint(len(content)), content
    return b"".join(section)
