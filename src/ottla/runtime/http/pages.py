"""Replies that take long to make: in pieces, with the loop's other work in between."""

from collections.abc import Callable, Iterable
from itertools import islice

from ottla.base.ports import Timers


def in_pieces(timers: Timers, pieces: Iterable[str], then: Callable[[str], None]) -> None:
    """Takes a piece a turn, and tells the whole."""
    remaining = iter(pieces)
    taken: list[str] = []

    def take() -> None:
        for piece in islice(remaining, 1):
            taken.append(piece)
            timers.after(0, take)
            return
        then("".join(taken))

    take()
