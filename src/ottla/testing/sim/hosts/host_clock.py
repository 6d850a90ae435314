"""A machine's clock in a simulation. It follows the simulation's time, as badly as it is told to.

`elapsed_s` never jumps, as on a real machine, but it may run a little fast or slow. `now_ms` follows it, and besides is
wrong by `ahead_ms`, is set by `jump`, and stands still between `stall` and `resume`.
"""

from ottla.testing.clock import FixedClock


class HostClock:
    """`rate` is how many of its seconds pass in one of the simulation's."""

    def __init__(self, time: FixedClock, *, ahead_ms: int = 0, rate: float = 1.0) -> None:
        self.rate = rate
        self._time = time
        self._began_us = time.elapsed_us()
        self._ahead_ms = time.now_ms() + ahead_ms
        self._stands_at_ms: int | None = None

    def now_ms(self) -> int:
        if self._stands_at_ms is not None:
            return self._stands_at_ms
        return self._ahead_ms + self._elapsed_us() // 1000

    def elapsed_s(self) -> float:
        return (self._began_us + self._elapsed_us()) / 1_000_000

    def thread_s(self) -> float:
        """Work takes no time here."""
        return 0.0

    def jump(self, by_ms: int) -> None:
        self._ahead_ms += by_ms

    def stall(self) -> None:
        self._stands_at_ms = self.now_ms()

    def resume(self) -> None:
        """The hour is right again, as far as it was before."""
        self._stands_at_ms = None

    def _elapsed_us(self) -> int:
        passed_us = self._time.elapsed_us() - self._began_us
        return passed_us if self.rate == 1.0 else int(passed_us * self.rate)
