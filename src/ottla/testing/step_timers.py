"""Timers that fire when a test moves time.

    clock = FixedClock()
    timers = StepTimers(clock)
    timers.after(0.5, fire)
    timers.advance(500)  # milliseconds; fires

Several nodes may share one `Agenda`: then what is due for any of them comes in the order of time, and at one moment in
the order in which it was set.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from math import ceil, inf
from typing import Protocol

from ottla.runtime.attribution import attributed
from ottla.testing.clock import FixedClock

_US_PER_S = 1_000_000
_ROUNDING_US = 0.001


class Due(Protocol):
    """What an agenda has to do at some moment."""

    is_set: bool

    def fire(self) -> None: ...


class _Call:
    """A callback that is nobody's timer and is never cancelled."""

    __slots__ = ("fire",)

    is_set = True

    def __init__(self, callback: Callable[[], None]) -> None:
        self.fire = callback


class Agenda:
    """What is due when, on one clock. An entry that was cancelled is passed over when its moment comes."""

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.is_firing = False
        """Whether something happens now, and not only a look is taken at what has happened."""
        self._queue: list[tuple[int, int, Due]] = []
        self._count = 0

    def __len__(self) -> int:
        return sum(timer.is_set for _, _, timer in self._queue)

    def add(self, timer: Due, delay_s: float) -> None:
        self._count += 1
        # Never early, and time passes however short the delay: what looks at the clock then must find it due.
        delay_us = max(ceil(delay_s * _US_PER_S - _ROUNDING_US), 1) if delay_s > 0 else 0
        heappush(self._queue, (self.clock.elapsed_us() + delay_us, self._count, timer))

    def call_at(self, due_us: int, callback: Callable[[], None]) -> None:
        """For the test itself or for what a simulator makes up: no node's timer."""
        self._count += 1
        heappush(self._queue, (due_us, self._count, _Call(callback)))

    def run_until(self, end_us: int) -> None:
        """Moves time to that moment, firing on the way what is due, in order."""
        while self.next_us() <= end_us:
            self.fire_next()
        self.clock.advance_to(end_us)

    def next_us(self) -> float:
        """When the next timer that is set is due; infinity if there is none."""
        while self._queue and not self._queue[0][2].is_set:
            heappop(self._queue)
        return self._queue[0][0] if self._queue else inf

    def fire_next(self) -> bool:
        """Moves time to the next timer that is set, and fires it. False if there is none."""
        queue = self._queue
        while queue:
            due_us, _, timer = heappop(queue)
            if timer.is_set:
                break
        else:
            return False
        self.clock.advance_to(due_us)
        self.is_firing = True
        try:
            timer.fire()
        finally:
            self.is_firing = False
        return True


class StepTimer:
    """One that was set."""

    __slots__ = ("_callback", "_interval_s", "_owner", "is_set")

    def __init__(self, owner: "StepTimers", callback: Callable[[], None], interval_s: float | None) -> None:
        self._owner = owner
        self._callback = callback
        self._interval_s = interval_s
        self.is_set = True

    def cancel(self) -> None:
        self.is_set = False
        self._owner.forget(self)

    def fire(self) -> None:
        if not self._owner.may_fire(self):
            return
        if self._interval_s is None:
            self.cancel()
        else:
            self._owner.schedule(self, self._interval_s)
        self._callback()


class StepTimers:
    """One node's timers, each for the request that set it, as the loop's are. `close` takes all of them away."""

    def __init__(self, clock: FixedClock, agenda: Agenda | None = None) -> None:
        self.agenda = Agenda(clock) if agenda is None else agenda
        self.now_s = clock.elapsed_s
        self.is_closed = False
        self._set: dict[StepTimer, None] = {}

    def __len__(self) -> int:
        return len(self._set)

    def after(self, delay_s: float, callback: Callable[[], None]) -> StepTimer:
        return self._add(StepTimer(self, attributed(callback), None), delay_s)

    def every(self, interval_s: float, callback: Callable[[], None], *, first_s: float | None = None) -> StepTimer:
        return self._add(StepTimer(self, callback, interval_s), interval_s if first_s is None else first_s)

    def _add(self, timer: StepTimer, delay_s: float) -> StepTimer:
        if self.is_closed:
            timer.is_set = False
            return timer
        self._set[timer] = None
        self.schedule(timer, delay_s)
        return timer

    def schedule(self, timer: StepTimer, delay_s: float) -> None:
        """Puts a timer on the agenda. A simulator's clocks may run faster or slower than its time."""
        self.agenda.add(timer, delay_s)

    def may_fire(self, timer: StepTimer) -> bool:
        """Whether a timer that is due fires now. A process that is stopped keeps it for later."""
        return True

    def forget(self, timer: StepTimer) -> None:
        self._set.pop(timer, None)

    def advance(self, by_ms: int) -> None:
        """Moves time, firing what is due on the way, in order."""
        self.agenda.run_until(self.agenda.clock.elapsed_us() + by_ms * 1000)

    def close(self) -> None:
        self.is_closed = True
        for timer in list(self._set):
            timer.cancel()
