"""As much of DER as certificates need to be asked who they name: elements, one inside the other.

Certificates come here after OpenSSL has checked them. What is malformed all the same raises `ValueError`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

_LONG_FORM: Final = 0x80
_MOST_LENGTH_BYTES: Final = 4


class Element(NamedTuple):
    tag: int
    content: bytes
    encoded: bytes
    """All of it, with tag and length."""

    def children(self) -> list["Element"]:
        return list(elements(self.content))


def elements(data: bytes) -> Iterator[Element]:
    """Those that follow each other in `data`."""
    at = 0
    while at < len(data):
        start = at
        if len(data) < at + 2:
            raise ValueError("an element is cut off")
        tag, length = data[at], data[at + 1]
        at += 2
        if length & _LONG_FORM:
            count = length & ~_LONG_FORM
            if not 0 < count <= _MOST_LENGTH_BYTES:
                raise ValueError(f"a length of {count} bytes")
            length = int.from_bytes(data[at : at + count], "big")
            at += count
        if len(data) < at + length:
            raise ValueError("an element is cut off")
        at += length
        yield Element(tag, data[at - length : at], data[start:at])


def first_element(data: bytes) -> Element:
    for element in elements(data):
        return element
    raise ValueError("there is no element")


def object_id(content: bytes) -> str:
    """An object identifier in dotted form."""
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("an empty object identifier")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
