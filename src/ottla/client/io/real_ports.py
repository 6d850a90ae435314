"""The system's clocks and chance."""

import os
from time import monotonic, thread_time, time_ns
from typing import TypeVar

ItemT = TypeVar("ItemT")

_NS_PER_MS = 1_000_000


class RealClock:
    now_ns = staticmethod(time_ns)
    """As `now_ms`, finer, and without a call of Python's own."""

    def now_ms(self) -> int:
        return time_ns() // _NS_PER_MS

    def elapsed_s(self) -> float:
        return monotonic()

    def thread_s(self) -> float:
        return thread_time()


class RealEntropy:
    """Straight from the system. Python's `random` would take longer to load than a tool has time for."""

    def randbytes(self, count: int, /) -> bytes:
        return os.urandom(count)

    def randrange(self, stop: int, /) -> int:
        return int.from_bytes(os.urandom(8), "little") % stop

    def shuffle(self, items: list[ItemT], /) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self.randrange(last + 1)
            items[last], items[other] = items[other], items[last]


def log_problem(problem: BaseException) -> None:
    """What nobody can catch, and the client continues: what a callback has raised, with its traceback, or a loss."""
    from logging import getLogger  # only for those who have something to tell

    if problem.__traceback__ is None:
        getLogger("ottla.client").error("%s", problem)
    else:
        getLogger("ottla.client").error("a callback failed: %s", problem, exc_info=problem)
