"""How a caller waits for a loop without going to sleep at every short pause.

Theory of operation. A thread that sleeps is at work again some fifty microseconds after what it waits for has come: as
long as a broker needs to answer. So after a short wait another short one is expected, and the caller looks again and
again for a moment before it sleeps, as a node does (`runtime/selector.py`). After a wait that was longer than the
moment the next one begins with sleep: a consumer that waits for records sleeps. Other threads run between two looks.
"""

from functools import cache
from time import perf_counter_ns

from ottla.base.processors import processor_count
from ottla.client.io.event_loop import EventLoop

_MOMENT_NS = 200_000
_FEWEST_PROCESSORS = 2


@cache
def moment_ns() -> int:
    """How long to look before sleeping. With a single processor the broker may need it to answer."""
    return _MOMENT_NS if processor_count() >= _FEWEST_PROCESSORS else 0


class ShortWaits:
    """One client's."""

    __slots__ = ("_expects_short_wait", "_loop")

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._expects_short_wait = False

    def turn(self, timeout_s: float) -> None:
        """A turn of the loop. At most `timeout_s` later, with nothing."""
        loop = self._loop
        timeout_s = loop.time_to_sleep_s(timeout_s)
        began_ns = perf_counter_ns()
        if self._expects_short_wait and timeout_s > 0:
            ends_ns = began_ns + min(moment_ns(), int(timeout_s * 1e9))
            while perf_counter_ns() < ends_ns:
                if ready := loop.look(0.0):
                    loop.handle(ready)
                    return
        ready = loop.look(timeout_s)
        self._expects_short_wait = perf_counter_ns() - began_ns < moment_ns()
        loop.handle(ready)
