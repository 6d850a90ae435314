"""The rates of all clients that have a limit of one kind: what they used, and how long they have to wait for it.

There is an account for the sharers of each limit, made when one of them first uses something. An account that nobody
uses for an hour is forgotten, and with very many accounts the one that was used longest ago: a client that names itself
anew with every request must not fill the memory.

A client that waits as Apache Kafka computes its wait gets a tenth more than its limit: the wait ends before what was
used too much has left the windows (110 % on average, and 115 % in the first ten seconds, with requests of 50 kB; Apache
Kafka 4.3.1 itself gave a consumer 109 to 113 %). So rates are held against a little less than the limit,
and what clients get is within a tenth of it over ten seconds: from 90.1 %, for a client that needs just its limit, to
110 %, for one that takes all it can. With any other share one of the two would be further off.
"""

from collections import OrderedDict
from typing import Final

from ottla.machines.quota.applicable_limit import Limit, Sharers
from ottla.machines.quota.sampled_rate import SampledRate, Windows
from ottla.machines.quota.throttle_times import ThrottleTimes, Waiting

IDLE_MS: Final = 3_600_000
MOST_ACCOUNTS: Final = 10_000
_HELD_SHARE: Final = 0.918


class Account:
    """What the sharers of one limit used, and how long they had to wait."""

    __slots__ = ("limit", "rate", "throttle_times", "used_ms")

    def __init__(self, windows: Windows) -> None:
        self.rate = SampledRate(windows)
        self.limit = 0.0
        self.used_ms = 0
        self.throttle_times = ThrottleTimes(windows)


class Accounts:
    """See the module. `longest_throttle_ms` bounds the wait for one request, if it is given."""

    def __init__(self, windows: Windows, longest_throttle_ms: int | None = None) -> None:
        self.windows = windows
        self.waiting = Waiting()
        self._longest_throttle_ms = longest_throttle_ms
        self._by_sharers: OrderedDict[Sharers, Account] = OrderedDict()

    def charge(self, limit: Limit, value: float, now_ms: int) -> int:
        """So much was used. Returns how long to wait, in milliseconds."""
        account = self._account(limit, now_ms)
        account.rate.record(value, now_ms)
        throttle_ms = account.rate.measure(now_ms).throttle_ms(limit.per_second * _HELD_SHARE)
        if self._longest_throttle_ms is not None:
            throttle_ms = min(throttle_ms, self._longest_throttle_ms)
        return throttle_ms

    def note(self, limit: Limit, value: float, now_ms: int) -> None:
        """The same, for what nobody waits for. A negative value takes back what was charged and not used after all."""
        self._account(limit, now_ms).rate.record(value, now_ms)

    def note_throttle(self, limit: Limit, throttle_ms: int, now_ms: int) -> None:
        """A client was told to wait."""
        self._account(limit, now_ms).throttle_times.note(throttle_ms, now_ms)
        self.waiting.add(throttle_ms, now_ms)

    def is_unused(self, limit: Limit, now_ms: int) -> bool:
        """Whether nothing was used within the windows."""
        account = self._by_sharers.get(limit.sharers)
        return account is None or not account.rate.measure(now_ms).rate

    def most_at_once(self, limit: Limit) -> float:
        """What may be used at once after a time of rest without having to wait."""
        return limit.per_second * _HELD_SHARE * (self.windows.number - 1) * self.windows.size_ms / 1000

    def expire(self, now_ms: int) -> None:
        """Forgets the accounts that nobody has used for long."""
        accounts = self._by_sharers
        while accounts and next(iter(accounts.values())).used_ms <= now_ms - IDLE_MS:
            accounts.popitem(last=False)

    def items(self) -> list[tuple[Sharers, Account]]:
        return list(self._by_sharers.items())

    def _account(self, limit: Limit, now_ms: int) -> Account:
        accounts = self._by_sharers
        account = accounts.get(limit.sharers)
        if account is None:
            if len(accounts) >= MOST_ACCOUNTS:
                accounts.popitem(last=False)
            account = accounts[limit.sharers] = Account(self.windows)
        else:
            accounts.move_to_end(limit.sharers)
        account.limit, account.used_ms = limit.per_second, now_ms
        return account
