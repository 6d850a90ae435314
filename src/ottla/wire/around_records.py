"""What is around the records of a request: a producer sends the same again and again, and other records in it.

A request with one records field is its start, the records with their length in front, and its end. Whether start and
end are those of an earlier request is one comparison, and then nothing of them has to be decoded. The correlation id,
another in each request, does not count.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.base.lent import Lent, lend
from ottla.wire.faults import VarintError
from ottla.wire.frame import encode_request_parts
from ottla.wire.message import Message
from ottla.wire.varint import MAX_BYTES, encode_varint, read_varint

SplitAround = Callable[[Lent | memoryview, int, bool], tuple[bytes, int, Lent] | None]
_compiled_split: SplitAround | None
try:
    from ottla.wire._native import split_around as _compiled_split
except ImportError:  # there was no C compiler when the package was installed
    _compiled_split = None

_SIZE = 4
_START = 4  # API key and version
_CORRELATION_END = 8
_LENGTH = 4


class Around(NamedTuple):
    """`at` is where the length of the records is in a frame, a varint if it is `compact`."""

    at: int
    compact: bool
    surroundings: bytes


def around_records(message: Message, version: int, client_id: str | None) -> Around | None:
    """What is around the records of that request as most clients encode it; None if its records are not one field."""
    parts: Any = encode_request_parts(message, version, 0, client_id)
    if not 1 < len(parts) < 4:
        return None
    head, records, *ends = parts
    compact = version in message._schema.flexible
    at = len(head) - _SIZE - (len(encode_varint(len(records) + 1)) if compact else _LENGTH)
    frame = head[_SIZE:]
    return Around(at, compact, frame[:_START] + frame[_CORRELATION_END:at] + b"".join(ends))


def split_in_python(frame: Lent | memoryview, at: int, compact: bool) -> tuple[bytes, int, Lent] | None:
    """A frame's surroundings, correlation id and records, if the length of the records is at `at`. None if that
    cannot be, or there are none.
    """
    if at < _CORRELATION_END or at + MAX_BYTES > len(frame):
        return None
    if compact:
        try:
            length, records_at = read_varint(frame, at)
        except VarintError:
            return None
        length -= 1
    else:
        length, records_at = int.from_bytes(frame[at : at + _LENGTH], "big"), at + _LENGTH
    end = records_at + length
    if length <= 0 or end > len(frame):
        return None
    around = bytes(frame[:_START]) + bytes(frame[_CORRELATION_END:at]) + bytes(frame[end:])
    correlation_id = int.from_bytes(frame[_START:_CORRELATION_END], "big", signed=True)
    return around, correlation_id, lend(memoryview(frame)[records_at:end])


split: SplitAround = _compiled_split or split_in_python
