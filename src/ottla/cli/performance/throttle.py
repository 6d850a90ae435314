"""A steady rate: sleeps when more was sent than the time allows."""

import time
from collections.abc import Callable

_SLICE_S = 0.1
_LEAST_S = 0.002
"""Shorter sleeps are gathered: the system makes them longer than they should be."""


class Throttle:
    """`is_stopped` ends a wait early."""

    def __init__(self, per_second: float, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._per_second = per_second
        self._is_stopped = is_stopped
        self._began_s = time.monotonic()

    def wait(self, sent: int) -> None:
        """Zero holds everything back, as in Kafka; a rate below zero holds nothing back."""
        if self._per_second < 0:
            return
        due_s = self._began_s + (sent / self._per_second if self._per_second else float("inf"))
        while (ahead_s := due_s - time.monotonic()) >= _LEAST_S and not self._is_stopped():
            time.sleep(min(ahead_s, _SLICE_S))
