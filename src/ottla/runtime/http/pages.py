"""Replies that take long to make: in pieces, with the loop's other work in between."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from ottla.base.ports import Timers


def in_pieces(
    timers: Timers, pieces: Iterable[str], then: Callable[[list[bytes]], None], failed: Callable[[Exception], None]
) -> None:
    """Takes a piece a turn, and gives all to `then`, or what a piece raised to `failed`."""
    _take(timers, iter(pieces), [], then, failed)


def _take(
    timers: Timers,
    remaining: Iterator[str],
    taken: list[bytes],
    then: Callable[[list[bytes]], None],
    failed: Callable[[Exception], None],
) -> None:
    """Not a closure that names itself: that would keep every page until the garbage collector comes by."""
    try:
        for piece in islice(remaining, 1):
            taken.append(piece.encode())
            timers.after(0, lambda: _take(timers, remaining, taken, then, failed))
            return
    except Exception as problem:
        failed(problem)
    else:
        then(taken)
