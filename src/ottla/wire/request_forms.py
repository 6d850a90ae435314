"""Requests that a client sends again and again, with a number or with records that differ: encoded once, filled in.

A form is made of a request as the codec encodes it, and fills in bytes that the codec would have made: the tests hold
them against each other. What goes into its header is the same for all requests of a connection.
"""

from struct import Struct
from typing import Any, Final

from ottla.base.ports import Buffer
from ottla.wire.frame import encode_request, encode_request_parts
from ottla.wire.message import Message
from ottla.wire.varint import encode_varint

_START = Struct(">ihhi")
_SIZE = 4
_CORRELATION_AT, _CORRELATION_END = 8, 12
A_NUMBER: Final = 0x5A1C_93E7_0F2D_4B61
"""Marks the place of a number of 64 bits. No text has its bytes: they are not UTF-8."""
_A_NUMBER = A_NUMBER.to_bytes(8, "big")
_INT32 = Struct(">i")


class NumberForm:
    """A request in which one 64-bit number differs: where `message` has `A_NUMBER`, once."""

    __slots__ = ("_layout", "_pieces", "api_key")

    def __init__(self, message: Message, version: int, client_id: str | None) -> None:
        whole = encode_request(message, version, 0, client_id)
        at = whole.index(_A_NUMBER)
        assert whole.find(_A_NUMBER, at + 1) < 0, "the marker is there twice"
        self.api_key: int = message._schema.api_key
        start, middle, end = whole[:_CORRELATION_AT], whole[_CORRELATION_END:at], whole[at + len(_A_NUMBER) :]
        self._pieces = start, middle, end
        self._layout = Struct(f">{len(start)}si{len(middle)}sq{len(end)}s")

    def fill(self, correlation_id: int, number: int) -> list[Any]:
        start, middle, end = self._pieces
        return [self._layout.pack(start, correlation_id, middle, number, end)]


class RecordsForm:
    """A request with one records field, whose records differ. `of` returns None where it has none, or several."""

    __slots__ = ("_compact", "_end", "_middle", "_version", "api_key")

    def __init__(self, api_key: int, version: int, middle: bytes, end: bytes, *, compact: bool) -> None:
        self.api_key = api_key
        self._version = version
        self._middle = middle
        self._end = end
        self._compact = compact

    @classmethod
    def of(cls, message: Message, version: int, client_id: str | None) -> "RecordsForm | None":
        parts: Any = encode_request_parts(message, version, 0, client_id)
        if not 1 < len(parts) < 4:
            return None
        head, records, *ends = parts
        compact = version in message._schema.flexible
        length_size = len(encode_varint(len(records) + 1)) if compact else _INT32.size
        middle = head[_CORRELATION_END : len(head) - length_size]
        return cls(message._schema.api_key, version, middle, b"".join(ends), compact=compact)

    def fill(self, correlation_id: int, records: Buffer) -> list[Any]:
        count = len(records)
        length = encode_varint(count + 1) if self._compact else _INT32.pack(count)
        size = _START.size - _SIZE + len(self._middle) + len(length) + count + len(self._end)
        head = b"".join((_START.pack(size, self.api_key, self._version, correlation_id), self._middle, length))
        return [head, records, self._end] if self._end else [head, records]


class Filled:
    """A form with what differs: a request that lacks only its correlation id."""

    __slots__ = ("_content", "_form", "api_key")

    def __init__(self, form: NumberForm | RecordsForm, content: Any) -> None:
        self.api_key = form.api_key
        self._form = form
        self._content = content

    def parts(self, correlation_id: int) -> list[Any]:
        """The frame, its size in front."""
        return self._form.fill(correlation_id, self._content)
