"""A clock that moves only when told to."""


class FixedClock:
    """`advance` is time that passes; `jump` is somebody setting the clock, which `elapsed_s` does not feel."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._ahead_ms = now_ms
        self._elapsed_us = 0

    def now_ms(self) -> int:
        return self._ahead_ms + self._elapsed_us // 1000

    def elapsed_us(self) -> int:
        """As `elapsed_s`, in whole microseconds, which can be compared and added without rounding."""
        return self._elapsed_us

    def elapsed_s(self) -> float:
        return self._elapsed_us / 1_000_000

    def thread_s(self) -> float:
        """Work takes no time here."""
        return 0.0

    def advance(self, by_ms: int) -> None:
        self._elapsed_us += by_ms * 1000

    def advance_to(self, elapsed_us: int) -> None:
        """Never back."""
        self._elapsed_us = max(self._elapsed_us, elapsed_us)

    def jump(self, by_ms: int) -> None:
        self._ahead_ms += by_ms
