"""What a callback of the application's gets over and over: errors of connections, statistics."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ottla.base.ports import Timer, Timers

_MOST: Final = 100


class ApplicationCallback:
    """Called with each of them. `run` has a callback called, later, where the application's code may run.

    One that nobody runs for long, because the application does not poll or is in another callback, keeps the newest.
    """

    def __init__(self, callback: Callable[[Any], None], run: Callable[[Callable[[Any], None], Any], None]) -> None:
        self._callback = callback
        self._run = run
        self._waiting: deque[Any] = deque(maxlen=_MOST)
        self._is_due = False

    def __call__(self, news: Any) -> None:
        self._waiting.append(news)
        self._have_it_called()

    def _have_it_called(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._run(self._tell, None)

    def _tell(self, _: None) -> None:
        self._is_due = False  # first: what comes from now on is reported by itself
        try:
            while self._waiting:
                self._callback(self._waiting.popleft())
        finally:
            if self._waiting:  # the callback has raised
                self._have_it_called()


class Statistics:
    """One callback that gets a client's numbers every so often. Another one takes its place."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._timer: Timer | None = None

    def tell(self, on_numbers: ApplicationCallback, numbers: Callable[[], dict[str, float]], interval_s: float) -> None:
        if not interval_s > 0:
            raise ValueError(f"the interval of statistics must be more than 0 seconds: {interval_s}")
        self.stop()
        self._timer = self._timers.every(interval_s, lambda: on_numbers(numbers()))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
