"""Waiting for sockets without going to sleep at every short pause.

A processor that went to sleep takes some fifty microseconds to be at work again, in a virtual machine often more: as
long as a whole request. A client that waits for each reply before it sends its next request would make us pay that
every time. So after a short wait another short one is expected, and the selector looks again and again for a moment
before it sleeps. The moment is about as long as waking up takes, so that it costs at most what it may save; and after
a wait that was longer the next one begins with sleep, so that a node with little to do has little to do.
"""

import os
import selectors
from time import perf_counter_ns

_MOMENT_NS = 100_000


class EagerSelector(selectors.DefaultSelector):
    """The system's selector for a loop that has a processor to itself; with only one in all, it sleeps at once."""

    def __init__(self) -> None:
        super().__init__()
        self._others_can_run = _processor_count() > 1
        self._expects_short_wait = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        look = super().select
        started_ns = perf_counter_ns()
        if self._expects_short_wait:
            while perf_counter_ns() - started_ns < _MOMENT_NS:
                if ready := look(0):
                    return ready
        ready = look(timeout)
        self._expects_short_wait = self._others_can_run and perf_counter_ns() - started_ns < _MOMENT_NS
        return ready


def _processor_count() -> int:
    """How many this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
