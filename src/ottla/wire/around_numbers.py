"""What is around the numbers of a request that is sent again and again, with other numbers in it.

Where the numbers are is found out once: such a request is encoded with markers in their place.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

A_NUMBER: Final = 0x5A1C_93E7_0F2D_4B61
"""A marker of 64 bits; the numbers after it are others. No text has their bytes: they are not UTF-8."""

START: Final = 4
"""Of a frame: API key and version. The correlation id follows."""
CORRELATION_END: Final = 8


def layout_around(frame: bytes, markers: Iterable[bytes], form: str) -> Struct:
    """How frames like this one are taken apart, each marker standing for numbers of that `form` (as in `Struct`).

    Into their start and correlation id; then what is before the next numbers, and the numbers, as often as there are
    markers; and what is behind the last. A frame is meant without its size.
    """
    fields, at = [f">{START}s{CORRELATION_END - START}s"], CORRELATION_END
    for marker in markers:
        found = frame.index(marker, at)
        fields.append(f"{found - at}s{form}")
        at = found + len(marker)
    return Struct("".join((*fields, f"{len(frame) - at}s")))
