"""Replies that take long to make: in pieces, with the loop's other work in between."""

from collections.abc import Callable, Iterable
from itertools import islice

from ottla.base.ports import Timers


def in_pieces(
    timers: Timers, pieces: Iterable[str], then: Callable[[list[bytes]], None], failed: Callable[[Exception], None]
) -> None:
    """Takes a piece a turn, and gives all to `then`, or what a piece raised to `failed`."""
    remaining = iter(pieces)
    taken: list[bytes] = []

    def take() -> None:
        try:
            for piece in islice(remaining, 1):
                taken.append(piece.encode())
                timers.after(0, take)
                return
        except Exception as problem:
            failed(problem)
        else:
            then(taken)

    take()
