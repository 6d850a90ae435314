"""A node's side of a connection: replies leave in the order of their requests, whatever the order they are given in."""

from collections import deque
from typing import Any, Protocol, TypeVar


class Place(Protocol):
    """A request's place in the row. `parts` is None until there is a reply, and empty for a reply of no bytes."""

    parts: Any


PlaceT = TypeVar("PlaceT", bound=Place)


class ReplyRow(deque[PlaceT]):
    """One connection's: a request's place is appended, behind all others, and leaves with its reply."""

    __slots__ = ()

    def take_ready(self) -> list[Any]:
        """The parts of all replies whose turn has come. They have left the row."""
        if len(self) == 1:  # as most rows are
            only: list[Any] | None = self[0].parts
            if only is not None:
                self.popleft()
            return only or []
        parts: list[Any] = []
        while self and (ready := self[0].parts) is not None:
            parts += ready
            self.popleft()
        return parts
