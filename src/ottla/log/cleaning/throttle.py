"""Not faster than so many bytes a second, on average and without bursts (`log.cleaner.io.max.bytes.per.second`)."""

from collections.abc import Callable

_PERIOD_S = 0.3


class Throttle:
    """Given the bytes after they have been read or written, it waits as long as they should have taken."""

    def __init__(self, bytes_per_s: float, elapsed_s: Callable[[], float], wait_s: Callable[[float], None]) -> None:
        self._bytes_per_s = bytes_per_s
        self._elapsed_s = elapsed_s
        self._wait_s = wait_s
        self._since_s = elapsed_s()
        self._count = 0

    def on_bytes(self, count: int) -> None:
        self._count += count
        due_s = self._count / self._bytes_per_s
        if due_s < _PERIOD_S:
            return  # A look at the clock costs more than a small batch.
        took_s = self._elapsed_s() - self._since_s
        if took_s < due_s:
            self._wait_s(due_s - took_s)
        self._since_s = self._elapsed_s()
        self._count = 0
