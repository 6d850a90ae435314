"""A node's side of a connection: replies leave in the order of their requests, whatever the order they are given in."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar


class Place(Protocol):
    """A request's place in the row. `parts` is None until there is a reply, and empty for a reply of no bytes."""

    parts: Any


PlaceT = TypeVar("PlaceT", bound=Place)


class ReplyRow(Generic[PlaceT]):
    """One connection's."""

    __slots__ = ("_places", "add")

    def __init__(self) -> None:
        self._places: deque[PlaceT] = deque()
        self.add = self._places.append
        """Gives a request its place, behind all others. (A bound method: it is called for every request.)"""

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[PlaceT]:
        return iter(self._places)

    @property
    def has_ready(self) -> bool:
        """Whether the reply whose turn it is has been given."""
        return bool(self._places) and self._places[0].parts is not None

    def take_ready(self) -> list[Any]:
        """The parts of all replies whose turn has come. They have left the row."""
        places = self._places
        parts: list[Any] = []
        while places and (ready := places[0].parts) is not None:
            parts += ready
            places.popleft()
        return parts

    def clear(self) -> None:
        """Nobody waits for the replies any more."""
        self._places.clear()
