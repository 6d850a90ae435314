"""Timers on the loop that are all cancelled at the end; none fires after it."""

from collections.abc import Callable
from time import monotonic

from ottla.runtime.attribution import attributed
from ottla.runtime.loop import Loop, TimedCall


def _nothing() -> None:
    """What a timer does that is over."""


class LoopTimer:
    """One that was set: it fires once, or again and again, until it is cancelled.

    When it is over it lets go of its callback, whose owner mostly holds the timer: the two would stay until the garbage
    collector comes, with the request that they were for.
    """

    __slots__ = ("_callback", "_handle", "_interval_s", "_timers")

    def __init__(self, timers: "LoopTimers", callback: Callable[[], None], interval_s: float | None) -> None:
        self._timers = timers
        self._callback = callback
        self._interval_s = interval_s
        self._handle: TimedCall | None = None

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._timers._set.discard(self)
        self._callback = _nothing

    def _arm(self, delay_s: float) -> None:
        if self._timers.is_closed:
            self._callback = _nothing
            return
        self._handle = self._timers.loop.call_later(delay_s, self._fire)
        self._timers._set.add(self)

    def _move(self, by_s: float) -> None:
        if self._handle is not None:
            due_s = self._handle.when() + by_s
            self._handle.cancel()
            self._handle = self._timers.loop.call_at(due_s, self._fire)

    def _fire(self) -> None:
        self._handle = None
        if self._interval_s is None:
            self._timers._set.discard(self)
            callback, self._callback = self._callback, _nothing
            callback()
            return
        try:
            self._callback()
        finally:
            if self in self._timers._set:
                self._arm(self._interval_s)


class LoopTimers:
    """Sets timers and remembers them.

    One that is set `after` a while fires for the request that it was set for, if any: what it raises is that request's.
    Else an exception goes to the loop's exception handler.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.now_s = monotonic
        """The time that a loop counts in, without asking the loop: it is read at every request."""
        self.is_closed = False
        self._set: set[LoopTimer] = set()

    def __len__(self) -> int:
        return len(self._set)

    def after(self, delay_s: float, callback: Callable[[], None]) -> LoopTimer:
        timer = LoopTimer(self, attributed(callback), None)
        timer._arm(delay_s)
        return timer

    def every(self, interval_s: float, callback: Callable[[], None], *, first_s: float | None = None) -> LoopTimer:
        timer = LoopTimer(self, callback, interval_s)
        timer._arm(interval_s if first_s is None else first_s)
        return timer

    def bring_nearer(self, by_s: float) -> None:
        """Every timer fires so much earlier, in the same order: time is said to have passed."""
        for timer in self._set:
            timer._move(-by_s)

    def close(self) -> None:
        self.is_closed = True
        for timer in list(self._set):
            timer.cancel()
