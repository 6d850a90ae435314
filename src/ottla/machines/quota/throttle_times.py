"""How long clients were told to wait, and how many of them wait now, as Apache Kafka's metrics tell it."""

from heapq import heappop, heappush
from typing import Final

from ottla.machines.quota.sampled_rate import SampledRate, Windows

MOST_WAITS: Final = 100_000


class ThrottleTimes:
    """The mean of the waits that were told within the windows."""

    __slots__ = ("_count", "_total_ms")

    def __init__(self, windows: Windows) -> None:
        self._total_ms = SampledRate(windows)
        self._count = SampledRate(windows)

    def note(self, throttle_ms: int, now_ms: int) -> None:
        self._total_ms.record(throttle_ms, now_ms)
        self._count.record(1, now_ms)

    def mean_ms(self, now_ms: int) -> float:
        """0 if nobody had to wait."""
        told = self._count.measure(now_ms).rate
        return self._total_ms.measure(now_ms).rate / told if told else 0.0


class Waiting:
    """How many waits have not ended yet: `queue-size`. One that ends early, because its client has gone, counts on.

    So a client that comes again and again could make it grow for as long as it is told to wait: no more than
    `MOST_WAITS` are counted.
    """

    __slots__ = ("_ends_ms",)

    def __init__(self) -> None:
        self._ends_ms: list[int] = []

    def add(self, throttle_ms: int, now_ms: int) -> None:
        self.count(now_ms)
        if len(self._ends_ms) < MOST_WAITS:
            heappush(self._ends_ms, now_ms + throttle_ms)

    def count(self, now_ms: int) -> int:
        while self._ends_ms and self._ends_ms[0] <= now_ms:
            heappop(self._ends_ms)
        return len(self._ends_ms)
