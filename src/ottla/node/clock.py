"""The real clock."""

import time


class SystemClock:
    """What is called often is the system's own function."""

    __slots__ = ()

    elapsed_s = staticmethod(time.monotonic)
    thread_s = staticmethod(time.thread_time)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def java_date(now_ms: int) -> str:
    """A time, as Java writes a date into a properties file."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms // 1000))
