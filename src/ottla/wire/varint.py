"""Unsigned varints: seven bits a byte, lowest first, a set top bit meaning that more follow.

Almost all that appear in messages are lengths below 127 and so one byte long. The generated codecs
read and write those in line and come here for the rest.
"""

from ottla.base.lent import Seen
from ottla.wire.faults import TruncatedError, VarintError

MAX_BYTES = 5


def encode_varint(value: int) -> bytes:
    assert 0 <= value < 1 << 32, "varints are unsigned and of 32 bits"
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(buffer: Seen, position: int) -> tuple[int, int]:
    """The value at `position`, and the position after it."""
    if position >= len(buffer):
        raise TruncatedError("a varint is missing", position)
    first = buffer[position]
    if first < 128:
        return first, position + 1
    return continue_varint(buffer, position + 1, first)


def continue_varint(buffer: Seen, position: int, first: int) -> tuple[int, int]:
    """The same when the first byte has been read and promises more, which start at `position`."""
    value = first & 127
    for index in range(1, MAX_BYTES):
        if position >= len(buffer):
            raise TruncatedError("a varint is cut off", position)
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << 7 * index
        if byte < 128:
            if value >> 32:
                raise VarintError("a varint has more than 32 bits", position - MAX_BYTES)
            return value, position
    raise VarintError(f"a varint has more than {MAX_BYTES} bytes", position - MAX_BYTES)
