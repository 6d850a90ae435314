"""A client's bytes on their way out of one connection: what its transport has not taken yet."""

from collections import deque
from typing import Any, Final

from ottla.base.ports import Buffer, Transport

_MOST_PARTS: Final = 64


class Outgoing:
    """Sending raises `OSError` when the transport is broken. What it does not take at once waits for `send_rest`.

    `parts_sent` counts all that have left.
    """

    __slots__ = ("_unsent", "parts_sent")

    def __init__(self) -> None:
        self._unsent: deque[Buffer] = deque()
        self.parts_sent = 0

    def send(self, transport: Transport, parts: list[Any]) -> bool:
        """Behind all that waits. Returns whether everything is sent."""
        if self._unsent or len(parts) > _MOST_PARTS:
            has_to_wait = bool(self._unsent)
            self._unsent.extend(parts)
            return not has_to_wait and self.send_rest(transport)
        try:
            sent = transport.send_parts(parts, more=False)
        except BlockingIOError:
            sent = 0
        if sent == sum(map(len, parts)):  # mostly
            self.parts_sent += len(parts)
            return True
        self._unsent.extend(parts)
        self._drop_sent(sent, parts)
        return False

    def send_rest(self, transport: Transport) -> bool:
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

    def clear(self) -> None:
        self._unsent.clear()

    def _drop_sent(self, sent: int, parts: list[Buffer]) -> bool:
        """Returns whether something of these parts was not taken."""
        for part in parts:
            if sent < len(part):
                self._unsent[0] = memoryview(part)[sent:]
                return True
            sent -= len(part)
            self._unsent.popleft()
            self.parts_sent += 1
        return False
