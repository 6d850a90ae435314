"""Connections of a fuzz: several requests in flight on each, and many connections at once.

A request may wait for as long as it says (a member of a group, a fetch), and the replies behind it with it. Such a line
is left alone for a while, and then hung up and opened anew: others go on meanwhile.
"""

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.wire.frame import correlation_id_of, decode_response, response_type
from ottla.wire.message import Message

_KINDS_OF_RULES = (
    "resource_type",
    "resource_type_filter",
    "resource_pattern_type",
    "pattern_type_filter",
    "operation",
    "permission_type",
)


class Sent(NamedTuple):
    number: int
    message: Message
    version: int
    frame: bytes

    @property
    def is_answered(self) -> bool:
        return not (type(self.message).__name__ == "ProduceRequest" and self.message.acks == 0)  # type: ignore[attr-defined]

    @property
    def says_unknown(self) -> bool:
        """Whether it is about rules of access and calls something in them UNKNOWN: Kafka hangs up on that, too."""
        entries = {"CreateAclsRequest": "creations", "DeleteAclsRequest": "filters", "DescribeAclsRequest": ""}
        where = entries.get(type(self.message).__name__)
        if where is None:
            return False
        return any(
            getattr(entry, name, None) == 0
            for entry in (getattr(self.message, where) if where else [self.message])
            for name in _KINDS_OF_RULES
        )

    @property
    def is_login(self) -> bool:
        """Whether it says who we are: where a listener asks that, a wrong answer ends the connection."""
        return type(self.message).__name__ in ("SaslHandshakeRequest", "SaslAuthenticateRequest")


class Line:
    """One connection. `waiting` are the requests that are to be answered, the oldest first.

    `login` says who we are on a new connection.
    """

    def __init__(self, address: tuple[str, int], login: Callable[[socket.socket], None] | None = None) -> None:
        self._address = address
        self._login = login
        self.waiting: deque[Sent] = deque()
        self.since_s = 0.0
        self._open()

    def _open(self) -> None:
        self.socket = socket.create_connection(self._address, 20)
        if self._login is not None:
            self._login(self.socket)
        self.socket.setblocking(False)
        self._out = bytearray()
        self._in = bytearray()
        self.waiting.clear()
        self._rounds_since_silent = 9

    @property
    def may_be_hung_up_on(self) -> bool:
        """After a Produce without acks, which has no other way to learn that it failed, and where Kafka does so."""
        return self._rounds_since_silent < 2 or any(sent.says_unknown or sent.is_login for sent in self.waiting)

    def again(self) -> None:
        self.socket.close()
        self._open()

    def close(self) -> None:
        self.socket.close()

    def send(self, sent: Sent) -> None:
        if not self.waiting and not self._out:
            self._rounds_since_silent += 1
        if not sent.is_answered:
            self._rounds_since_silent = 0
        self._out += sent.frame
        if sent.is_answered:
            self.waiting.append(sent)
        self.since_s = time.monotonic()

    @property
    def has_more_to_send(self) -> bool:
        return bool(self._out)

    def push(self) -> bool:
        """Sends what the node takes; False when it has hung up."""
        try:
            while self._out:
                count = self.socket.send(memoryview(self._out)[: 1 << 20])
                del self._out[:count]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def pull(self, take: Callable[[Sent, Any], None]) -> bool:
        """Takes the replies that are there; False when the node has hung up."""
        try:
            while data := self.socket.recv(1 << 18):
                self._in += data
                self._take_frames(take)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _take_frames(self, take: Callable[[Sent, Any], None]) -> None:
        start = 0
        while len(self._in) - start >= 4:
            (size,) = struct.unpack_from(">i", self._in, start)
            if len(self._in) - start - 4 < size:
                break
            frame = bytes(self._in[start + 4 : start + 4 + size])
            start += 4 + size
            sent = self.waiting.popleft()
            message = response_type(sent.message._schema.api_key)
            number = correlation_id_of(frame)
            assert number == sent.number, (
                f"a reply to {number} came before that to {sent.number}: {sent.message!r:.500}"
            )
            _, reply = decode_response(message, frame, _version_of(sent, frame))
            take(sent, reply)
        del self._in[:start]


def _version_of(sent: Sent, frame: bytes) -> int:
    """A node that does not know a version of ApiVersions answers in version 0."""
    if type(sent.message).__name__ == "ApiVersionsRequest" and frame[4:6] == b"\0\x23":
        return 0
    return sent.version


def pump(lines: Sequence[Line], take: Callable[[Sent, Any], None], quiet_s: float, most_s: float) -> list[Line]:
    """Sends and reads until everything is answered or nothing has come for `quiet_s`; gives the lines hung up on."""
    gone: list[Line] = []
    with selectors.DefaultSelector() as ready:
        for line in lines:
            if line.waiting or line.has_more_to_send:
                ready.register(line.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, line)
        deadline = time.monotonic() + most_s
        while ready.get_map() and time.monotonic() < deadline:
            events = ready.select(quiet_s)
            if not events:
                break
            for key, mask in events:
                line = key.data
                alive = line.push() if mask & selectors.EVENT_WRITE else True
                if alive and mask & selectors.EVENT_READ:
                    alive = line.pull(take)
                if not alive:
                    gone.append(line)
                if not alive or not (line.waiting or line.has_more_to_send):
                    ready.unregister(line.socket)
                elif not line.has_more_to_send:
                    ready.modify(line.socket, selectors.EVENT_READ, line)
    return gone
