"""How fast something goes, over windows, and how long clients had to wait because of it. Pure."""

from heapq import heappop, heappush
from typing import Final, NamedTuple

# A rate over the last few windows of time, as Apache Kafka samples it.
#
# Theory of operation. What is recorded goes into the newest sample. A sample takes up what comes within one window of
# its start; the first recording after that begins another. A sample counts until its last recording is as old as all
# windows together. The rate is the sum of the samples, divided by the time since the oldest began.
#
# A client that has just come would have any rate whatever, so at least all windows but one count as elapsed. It may
# begin with a burst, which is paid for within those windows; over all of them the rate is the one that was set.
#
# The wait for a client above its limit is the time in which its rate falls to the limit if it sends nothing more.

LONGEST_THROTTLE_MS: Final = 0x7FFFFFFF


class Windows(NamedTuple):
    """`quota.window.num` and `quota.window.size.seconds`, or those of controllers."""

    number: int = 11
    size_ms: int = 1000


class Measured(NamedTuple):
    """A rate per second, and the time that it was measured over."""

    rate: float
    elapsed_ms: int

    def throttle_ms(self, limit: float) -> int:
        """How long to wait until the rate is within the limit; 0 if it is."""
        if self.rate <= limit:
            return 0
        if limit <= 0:
            return LONGEST_THROTTLE_MS
        wait_ms = (self.rate - limit) / limit * self.elapsed_ms + 0.5  # Infinite if the limit is next to nothing.
        return int(min(LONGEST_THROTTLE_MS, wait_ms))


class SampledRate:
    """See the module. A sample is a list: its sum, when it began, when something was last recorded."""

    __slots__ = ("_at", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[list[float]] = []
        self._at = 0

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples:
            samples.append([0.0, now_ms, now_ms])
        sample = samples[self._at]
        if now_ms - sample[1] >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample[0] += value
        sample[2] = now_ms

    def _advance(self, now_ms: int) -> list[float]:
        """The next sample. There is one more than there are windows: the oldest may have begun before them."""
        self._at = (self._at + 1) % (self._windows.number + 1)
        if self._at == len(self._samples):
            self._samples.append([0.0, now_ms, now_ms])
        else:
            self._samples[self._at][:] = 0.0, now_ms, now_ms
        return self._samples[self._at]

    def measure(self, now_ms: int) -> Measured:
        number, size_ms = self._windows
        expired_ms = now_ms - number * size_ms
        total, oldest_ms = 0.0, float(now_ms)
        for sample in self._samples:
            if sample[2] <= expired_ms:
                sample[:] = 0.0, now_ms, now_ms
            total += sample[0]
            oldest_ms = min(oldest_ms, sample[1])
        elapsed_ms = now_ms - int(oldest_ms)
        missing = number - 1 - elapsed_ms // size_ms
        if missing > 0:
            elapsed_ms += missing * size_ms
        elapsed_ms = max(elapsed_ms, 1)
        return Measured(total / (elapsed_ms / 1000), elapsed_ms)


# How long clients were told to wait, and how many of them wait now, as Apache Kafka's metrics tell it.

MOST_WAITS: Final = 100_000


class ThrottleTimes:
    """The mean of the waits that were reported within the windows."""

    __slots__ = ("_count", "_total_ms")

    def __init__(self, windows: Windows) -> None:
        self._total_ms = SampledRate(windows)
        self._count = SampledRate(windows)

    def note(self, throttle_ms: int, now_ms: int) -> None:
        self._total_ms.record(throttle_ms, now_ms)
        self._count.record(1, now_ms)

    def mean_ms(self, now_ms: int) -> float:
        """0 if nobody had to wait."""
        waits = self._count.measure(now_ms).rate
        return self._total_ms.measure(now_ms).rate / waits if waits else 0.0


class ThrottledClients:
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
