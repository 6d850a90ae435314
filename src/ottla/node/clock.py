"""The real clock."""

import time


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def java_date() -> str:
    """Now, as Java writes a date into a properties file."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime())
