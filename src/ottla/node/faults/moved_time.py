"""Time that goes ahead when a test says so: the node's clocks, and its timers with them.

The hour and the time that passes move together, as on a machine that slept. A timer that is due by then fires once, in
order; one that fires again and again fires once for all the times that it has missed.
"""

import time

from ottla.runtime.loop import Loop
from ottla.runtime.timers import LoopTimers


class MovedClock:
    def __init__(self) -> None:
        self._ahead_s = 0.0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + round(self._ahead_s * 1000)

    def elapsed_s(self) -> float:
        return time.monotonic() + self._ahead_s

    def thread_s(self) -> float:
        return time.thread_time()

    def advance(self, by_s: float) -> None:
        self._ahead_s += by_s


class MovedTimers(LoopTimers):
    """Timers in the time of a `MovedClock`."""

    def __init__(self, loop: Loop, clock: MovedClock) -> None:
        super().__init__(loop)
        self.now_s = clock.elapsed_s
        self._clock = clock

    def advance(self, by_s: float) -> None:
        self._clock.advance(by_s)
        self.bring_nearer(by_s)
