"""Until when operations wait, with one timer for all that wait equally long.

Consumers mostly ask to wait as long as each other (`fetch.max.wait.ms`), so operations of one wait end in the order in
which they began it: a row. The timer of a row is set for the first in it. If that one has gone when the timer fires, it
is set again for the one that is first now. So an operation that waits and is done in time costs no timer of its own.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from ottla.base.ports import Timer, Timers

WaitingT = TypeVar("WaitingT")

# Timers may fire a little early, and deadlines are sums of floats.
_EARLY_S = 0.0005


class Row(Generic[WaitingT]):
    """All that wait for one time. `expire` is called with each whose time is over; it must take it out."""

    __slots__ = ("_deadlines_s", "_expire", "_timer", "_timers", "_wait_s")

    def __init__(self, timers: Timers, wait_s: float, expire: Callable[[WaitingT], None]) -> None:
        self._timers = timers
        self._wait_s = wait_s
        self._expire = expire
        self._deadlines_s: dict[WaitingT, float] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._deadlines_s)

    def add(self, waiting: WaitingT) -> None:
        self._deadlines_s[waiting] = self._timers.now_s() + self._wait_s
        if self._timer is None:
            self._timer = self._timers.after(self._wait_s, self._on_time)

    def remove(self, waiting: WaitingT) -> None:
        del self._deadlines_s[waiting]
        if not self._deadlines_s and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        now_s = self._timers.now_s()
        due = []
        for waiting, deadline_s in self._deadlines_s.items():
            if deadline_s > now_s + _EARLY_S:
                self._timer = self._timers.after(deadline_s - now_s, self._on_time)
                break
            due.append(waiting)
        for waiting in due:
            if waiting in self._deadlines_s:  # What has expired before may have ended the wait of others.
                self._expire(waiting)


class Deadlines(Generic[WaitingT]):
    def __init__(self, timers: Timers, expire: Callable[[WaitingT], None]) -> None:
        self._timers = timers
        self._expire = expire
        self._rows: dict[int, Row[WaitingT]] = {}

    def add(self, waiting: WaitingT, wait_ms: int) -> None:
        row = self._rows.get(wait_ms)
        if row is None:
            row = self._rows[wait_ms] = Row(self._timers, wait_ms / 1000, self._expire)
        row.add(waiting)

    def remove(self, waiting: WaitingT, wait_ms: int) -> None:
        """The wait is over, for whatever reason."""
        row = self._rows[wait_ms]
        row.remove(waiting)
        if not row:
            del self._rows[wait_ms]
