"""A bucket of tokens: a rate with room for bursts (KIP-599).

Theory of operation. The bucket fills at the rate of the limit, up to what the limit allows in all windows together. A
change of the cluster takes a token for each partition that it makes or removes. A strict client may make a change
while the bucket is not below zero, and so may overdraw it once. A permissive one may always, and waits afterwards. The
wait is the time until the bucket is back at zero.
"""

from collections import OrderedDict

from ottla.machines.quota.accounts import MOST_ACCOUNTS
from ottla.machines.quota.applicable_limit import Sharers
from ottla.machines.quota.sampled_rate import LONGEST_THROTTLE_MS, SampledRate, Windows
from ottla.machines.quota.throttle_times import ThrottleTimes, Waiting


class TokenBucket:
    """One client's. It begins full. `rate` is what was taken, `limit` the one that it was last held to."""

    __slots__ = ("_is_begun", "_tokens", "_updated_ms", "_windows", "limit", "rate", "throttle_times")

    def __init__(self, windows: Windows) -> None:
        self.limit = 0.0
        self.rate = SampledRate(windows)
        self.throttle_times = ThrottleTimes(windows)
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms = 0
        self._is_begun = False

    def tokens(self, limit: float, now_ms: int) -> float:
        """How many are left; below zero if it is overdrawn."""
        self.limit = limit
        burst = self._windows.number * self._windows.size_ms / 1000 * limit
        if self._is_begun:
            self._tokens = min(burst, self._tokens + limit * (now_ms - self._updated_ms) / 1000)
        else:
            self._tokens, self._is_begun = burst, True
        self._updated_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        self._tokens = self.tokens(limit, now_ms) - count
        self.rate.record(count, now_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long until the bucket is not overdrawn any more; 0 if it is not."""
        tokens = self.tokens(limit, now_ms)
        return int(min(LONGEST_THROTTLE_MS, -tokens / limit * 1000 + 0.5)) if tokens < 0 else 0  # it may be infinite


class TokenBuckets:
    """One for the sharers of each limit. The one that was used longest ago goes when there are very many."""

    def __init__(self, windows: Windows) -> None:
        self.waiting = Waiting()
        self._windows = windows
        self._by_sharers: OrderedDict[Sharers, TokenBucket] = OrderedDict()

    def of(self, sharers: Sharers) -> TokenBucket:
        bucket = self._by_sharers.get(sharers)
        if bucket is None:
            if len(self._by_sharers) >= MOST_ACCOUNTS:
                self._by_sharers.popitem(last=False)
            bucket = self._by_sharers[sharers] = TokenBucket(self._windows)
        else:
            self._by_sharers.move_to_end(sharers)
        return bucket

    def items(self) -> list[tuple[Sharers, TokenBucket]]:
        return list(self._by_sharers.items())
