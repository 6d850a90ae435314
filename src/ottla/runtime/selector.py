"""Waiting for sockets without going to sleep at every short pause.

A processor that went to sleep takes some fifty microseconds to be at work again, in a virtual machine often more: as
long as a whole request. A client that waits for each reply before it sends its next request would make us pay that
every time. So after a short wait another short one is expected, and the selector looks again and again for a moment
before it sleeps. The moment is about as long as waking up takes, so that it costs at most what it may save; and after
a wait that was longer the next one begins with sleep, so that a node with little to do has little to do.
"""

import selectors
from time import perf_counter_ns

from ottla.base.processors import processor_count

SPIN_US = 100
_FEWEST_PROCESSORS = 2


class EagerSelector(selectors.DefaultSelector):
    """The system's selector for a loop that has a processor to itself and others beside; else it sleeps at once.

    `spin_us` is how long the moment is (`ottla.spin.max.us`).
    """

    def __init__(self, spin_us: int = SPIN_US) -> None:
        super().__init__()
        self._moment_ns = spin_us * 1000 if processor_count() >= _FEWEST_PROCESSORS else 0
        self._expects_short_wait = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        look = super().select
        started_ns = perf_counter_ns()
        if self._expects_short_wait:
            while perf_counter_ns() - started_ns < self._moment_ns:
                if ready := look(0):
                    return ready
        ready = look(timeout)
        self._expects_short_wait = perf_counter_ns() - started_ns < self._moment_ns
        return ready
