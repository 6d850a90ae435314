"""Room for what is decompressed, made without holding the interpreter up.

A `bytearray` of a hundred megabytes is filled with zeros when it is made, which takes the system a tenth of a second,
and no other thread runs meanwhile. Anonymous memory costs nothing until it is written to, which the codecs do while
other threads run.
"""

from mmap import mmap
from typing import Final

from ottla.base.ports import Buffer

LARGE_BYTES: Final = 1 << 20


def room_for(size: int) -> memoryview:
    """So many bytes, to be written to."""
    return memoryview(mmap(-1, size) if size >= LARGE_BYTES else bytearray(size))


def joined(parts: list[bytes], size: int) -> Buffer:
    """The parts, one after the other. Between two large ones other threads can run."""
    if len(parts) == 1:
        return parts[0]
    if size < LARGE_BYTES:
        return b"".join(parts)
    room = room_for(size)
    position = 0
    for part in parts:
        room[position : position + len(part)] = part
        position += len(part)
    return room
