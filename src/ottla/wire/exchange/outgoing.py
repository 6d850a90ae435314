"""A client's requests on their way out of one connection: what its transport has not taken yet.

A request without a response (Produce with acks=0) is over when its bytes are gone: `leaves_after` and `left`.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

from ottla.base.ports import Buffer, Transport

AskedT = TypeVar("AskedT")

_MOST_PARTS: Final = 64


class Outgoing(Generic[AskedT]):
    """Sending raises `OSError` when the transport is broken. What it does not take at once waits for `go_on`."""

    __slots__ = ("_leaving", "_parts_queued", "_parts_sent", "_unsent")

    def __init__(self) -> None:
        self._unsent: deque[Buffer] = deque()
        self._parts_queued = self._parts_sent = 0
        self._leaving: deque[tuple[int, AskedT]] = deque()
        """Requests without a response, until as many parts are sent."""

    def send(self, transport: Transport, parts: list[Any]) -> bool:
        """Behind all that waits. Returns whether everything is sent."""
        if self._unsent or len(parts) > _MOST_PARTS:
            has_to_wait = bool(self._unsent)
            self._queue(parts)
            return not has_to_wait and self.go_on(transport)
        try:
            sent = transport.send_parts(parts, more=False)
        except BlockingIOError:
            sent = 0
        if sent == sum(map(len, parts)):  # mostly
            self._parts_queued += len(parts)
            self._parts_sent += len(parts)
            return True
        self._queue(parts)
        self._drop_sent(sent, parts)
        return False

    def go_on(self, transport: Transport) -> bool:
        """The transport may take more. Returns whether everything is sent."""
        unsent = self._unsent
        has_to_wait = False
        try:
            while unsent and not has_to_wait:
                parts = list(unsent) if len(unsent) <= _MOST_PARTS else [unsent[index] for index in range(_MOST_PARTS)]
                has_to_wait = self._drop_sent(transport.send_parts(parts, more=False), parts)
        except BlockingIOError:
            pass
        return not unsent

    def leaves_after(self, parts: int, asked: AskedT) -> None:
        """A request without a response. It is over when so many parts are sent that are not handed over yet."""
        self._leaving.append((self._parts_queued + parts, asked))

    def left(self) -> Iterator[AskedT]:
        """The requests without a response whose bytes are sent. They are told once."""
        while self._leaving and self._leaving[0][0] <= self._parts_sent:
            yield self._leaving.popleft()[1]

    def leaving(self) -> list[AskedT]:
        """Those whose bytes are not sent yet."""
        return [asked for _, asked in self._leaving]

    def clear(self) -> None:
        self._unsent.clear()
        self._leaving.clear()

    def _queue(self, parts: list[Any]) -> None:
        self._unsent.extend(parts)
        self._parts_queued += len(parts)

    def _drop_sent(self, sent: int, parts: list[Buffer]) -> bool:
        """Returns whether something of these parts was not taken."""
        for part in parts:
            if sent < len(part):
                self._unsent[0] = memoryview(part)[sent:]
                return True
            sent -= len(part)
            self._unsent.popleft()
            self._parts_sent += 1
        return False
