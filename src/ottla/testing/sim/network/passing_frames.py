"""Frames on their way through the network, so that one of them can come twice.

TCP gives every byte once. What repeats is a broken middlebox, or a broken peer: it knows where a frame ends, and sends
it again right behind itself. Over TLS it sees records and no frames, and repeats one of those, behind the handshake: a
client takes a handshake that fails for one that fails again, as Apache Kafka's do.
"""

from random import Random
from typing import Any, Final, NamedTuple

from ottla.records.batch import complete_batches
from ottla.wire.apis import ApiKey
from ottla.wire.frame import decode_request

_SIZE: Final = 4
_RECORD_HEADER: Final = 5
_TLS: Final = (0x16, 0x15)
"""How a connection begins that is encrypted: no frame of Kafka's is so long that its size does."""


_HANDSHAKE_BYTES: Final = 4 << 10
"""More than either side of a handshake sends here."""


class Repeating(NamedTuple):
    """How likely a reply, and a request, is to come twice."""

    chance: Random
    replies: float
    requests: float

    def draws(self, *, is_request: bool) -> bool:
        return self.chance.random() < (self.requests if is_request else self.replies)


class PassingFrames:
    """One direction of a connection. `is_request`: it is the one that requests take."""

    __slots__ = ("_before", "_copy", "_head", "_is_request", "_left", "is_tls")

    def __init__(self, *, is_request: bool) -> None:
        self.is_tls: bool | None = None
        """None until the first byte has passed."""
        self._is_request = is_request
        self._before = 0
        """How many bytes have passed that may be of a handshake."""
        self._head = bytearray()
        """What has passed of the next frame's head, while that is not whole."""
        self._left = 0
        """Bytes of a frame that has begun, until its end."""
        self._copy: bytearray | None = None
        """Of a frame that was chosen."""

    def pass_on(self, data: bytes, repeating: Repeating | None) -> bytes:
        """What comes of it at the other end: the same, or more."""
        if self.is_tls is None:
            self.is_tls = data[0] in _TLS
        if repeating is None and self._is_one_whole(data):
            return data
        if self.is_tls and self._before < _HANDSHAKE_BYTES:
            self._before += len(data)
            repeating = None
        parts: list[bytes | bytearray] = []
        at = begin = 0
        while at < len(data):
            if not self._left:
                at = self._take_head(data, at, repeating)
            taken = data[at : at + self._left]
            at += len(taken)
            self._left -= len(taken)
            if self._copy is not None:
                self._copy += taken
                if not self._left:
                    copy, self._copy = self._copy, None
                    if self.is_tls or not self._is_request or is_told_apart(copy):
                        parts += (data[begin:at], copy)
                        begin = at
        return b"".join((*parts, data[begin:])) if parts else data

    def _is_one_whole(self, data: bytes) -> bool:
        """Mostly a piece is."""
        is_first = not self.is_tls and not self._left and not self._head
        return is_first and len(data) >= _SIZE and int.from_bytes(data[:_SIZE], "big") == len(data) - _SIZE

    def _take_head(self, data: bytes, at: int, repeating: Repeating | None) -> int:
        head, size = self._head, _RECORD_HEADER if self.is_tls else _SIZE
        taken = data[at : at + size - len(head)]
        head += taken
        if len(head) == size:
            self._left = int.from_bytes(head[-2:] if self.is_tls else head, "big")
            if repeating is not None and repeating.draws(is_request=self._is_request):
                self._copy = bytearray(head)
            head.clear()
        return at + len(taken)


def is_told_apart(frame: bytes | bytearray) -> bool:
    """Whether a node that gets this request twice can know that it is one. A batch without a producer id is another
    batch to it each time, and has to be.
    """
    content = bytes(frame[_SIZE:])
    if int.from_bytes(content[:2], "big") != ApiKey.PRODUCE:
        return True
    message: Any = decode_request(content).message
    produced = [one for topic in message.topic_data for one in topic.partition_data]
    return all(header.producer_id >= 0 for one in produced for _, header in complete_batches(one.records or b""))
