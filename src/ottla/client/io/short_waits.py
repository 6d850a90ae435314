"""How a caller waits for a loop, or for two, without going to sleep at every short pause.

Theory of operation. A thread that sleeps is at work again some fifty microseconds after what it waits for has come: as
long as a broker needs to answer. So after a short wait another short one is expected, and the caller looks again and
again for a moment before it sleeps, as a node does (`runtime/selector.py`). After a wait that was longer than the
moment the next one begins with sleep: a consumer that waits for records sleeps. Other threads run between two looks.

The second loop is that of a producer which the same thread uses (`LoopThread.takes_along`). One thread that takes up
the answers of both does it one after the other; two would want the interpreter in the same microseconds.
"""

import select
from functools import cache
from time import perf_counter_ns
from typing import Any

from ottla.base.processors import processor_count
from ottla.client.io.event_loop import EventLoop

_MOMENT_NS = 200_000
_FEWEST_PROCESSORS = 2

CAN_WAIT_FOR_TWO = hasattr(select, "poll")


@cache
def moment_ns() -> int:
    """How long to look before sleeping. With a single processor the broker may need it to answer."""
    return _MOMENT_NS if processor_count() >= _FEWEST_PROCESSORS else 0


class ShortWaits:
    """One client's."""

    __slots__ = ("_both", "_expects_short_wait", "_loop", "_second")

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._expects_short_wait = False
        self._second: EventLoop | None = None
        self._both: Any = None
        """What sleeps until one of both is ready."""

    def turn(self, timeout_s: float, second: EventLoop | None = None) -> None:
        """A turn of the loop, or of the second, whichever is ready first. At most `timeout_s` later, with nothing."""
        loop = self._loop
        timeout_s = loop.time_to_sleep_s(timeout_s)
        if second is not None:
            timeout_s = second.time_to_sleep_s(timeout_s)
        began_ns = perf_counter_ns()
        if self._expects_short_wait and timeout_s > 0:
            ends_ns = began_ns + min(moment_ns(), int(timeout_s * 1e9))
            while perf_counter_ns() < ends_ns:
                if ready := loop.look(0.0):
                    loop.handle(ready)
                    return
                if second is not None and (ready := second.look(0.0)):
                    second.handle(ready)
                    return
        if second is None:
            ready = loop.look(timeout_s)
        else:
            self._sleep(second, timeout_s)
            ready = loop.look(0.0)
        self._expects_short_wait = perf_counter_ns() - began_ns < moment_ns()
        loop.handle(ready)
        if second is not None:
            second.handle(second.look(0.0))

    def _sleep(self, second: EventLoop, timeout_s: float) -> None:
        """Until one of both is ready."""
        if self._second is not second:
            self._second, self._both = second, select.poll()
            self._both.register(self._loop.fileno(), select.POLLIN)
            self._both.register(second.fileno(), select.POLLIN)
        self._both.poll(timeout_s * 1000)
