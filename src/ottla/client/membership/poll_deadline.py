"""Whether the application still polls: `max.poll.interval.ms` after its last poll a member gives its place up."""

from collections.abc import Callable
from typing import Final

from ottla.base.ports import Timer, Timers

_TICK_S: Final = 0.001
"""Less than this is no time: a timer set for it could fire without any passing."""


class PollDeadline:
    """`on_expired` is called once each time that the interval has passed without a poll.

    Polls are frequent, so a poll only notes the time. The timer looks at it when it fires, and is set again.
    """

    def __init__(self, timers: Timers, interval_ms: int, on_expired: Callable[[], None]) -> None:
        self._timers = timers
        self._interval_s = interval_ms / 1000
        self._on_expired = on_expired
        self._polled_s = timers.now_s()
        self._timer: Timer | None = None
        self.is_expired = False

    def on_poll(self) -> None:
        self._polled_s = self._timers.now_s()
        self.is_expired = False
        if self._timer is None:
            self._timer = self._timers.after(self._interval_s, self._look)

    def stop(self) -> None:
        """No poll is expected any more."""
        self.is_expired = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        left_s = self._polled_s + self._interval_s - self._timers.now_s()
        if left_s > _TICK_S:
            self._timer = self._timers.after(left_s, self._look)
        else:
            self._timer = None
            self.is_expired = True
            self._on_expired()
