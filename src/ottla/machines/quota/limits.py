"""Which limit applies to a client, and what all clients that have one have taken: over windows, or from a bucket."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from ottla.machines.metadata.image.quotas_image import QuotaEntity
from ottla.machines.quota.rates import LONGEST_THROTTLE_MS, SampledRate, ThrottledClients, ThrottleTimes, Windows

# Which of the limits that operators have set applies to a user and a client id (KIP-55).
#
# Limits of one kind are looked for in this order, and the first that is found counts:
#
# 1. of this user with this client id      4. of any user with this client id      7. of this client id
# 2. of this user with any client id       5. of any user with any client id       8. of any client id
# 3. of this user                          6. of any user
#
# A limit for any user, or any client id, is one for each of them and not for all together. Clients share a limit if
# they are the same in all that it names: a limit of a user is for all its client ids together.
#
# A client without a client id has no limit that names one, as in Apache Kafka.

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_UNNAMED: Final = ""

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
"""The kinds of limits."""


Quotas: TypeAlias = Mapping[QuotaEntity, Mapping[str, float]]
"""As the metadata has them: `QuotasImage.by_entity`."""


class Sharers(NamedTuple):
    """The clients that share a limit: of one user, of one client id, or of both. An empty name is all."""

    user: str
    client_id: str


class Limit(NamedTuple):
    per_second: float
    sharers: Sharers


def find_limit(quotas: Quotas, key: str, user: str, client_id: str) -> Limit | None:
    """What applies to a client of the limits of a kind; None if nothing does."""
    for entity, sharers in _in_order(user, client_id):
        values = quotas.get(entity)
        if values is not None and key in values:
            if client_id or (len(entity) == 1 and sharers.user):
                return Limit(values[key], sharers)
            return _of_user_alone(quotas, key, user)
    return None


def _of_user_alone(quotas: Quotas, key: str, user: str) -> Limit | None:
    for name in (user, None):
        values = quotas.get(frozenset({(USER, name)}))
        if values is not None and key in values:
            return Limit(values[key], Sharers(user, _UNNAMED))
    return None


def _in_order(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Sharers]]:
    of_both, of_user, of_client = Sharers(user, client_id), Sharers(user, _UNNAMED), Sharers(_UNNAMED, client_id)
    for user_name in (user, None):
        yield frozenset({(USER, user_name), (CLIENT_ID, client_id)}), of_both
        yield frozenset({(USER, user_name), (CLIENT_ID, None)}), of_both
        yield frozenset({(USER, user_name)}), of_user
    yield frozenset({(CLIENT_ID, client_id)}), of_client
    yield frozenset({(CLIENT_ID, None)}), of_client


# The rates of all clients that have a limit of one kind: what they used, and how long they have to wait for it.
#
# There is an account for the sharers of each limit, made when one of them first uses something. An account that nobody
# uses for an hour is forgotten, and with very many accounts the one that was used longest ago: a client that names
# itself anew with every request must not fill the memory.
#
# A client that waits as Apache Kafka computes its wait gets a tenth more than its limit: the wait ends before what was
# used too much has left the windows (110 % on average, and 115 % in the first ten seconds, with requests of 50 kB;
# Apache Kafka 4.3.1 itself gave a consumer 109 to 113 %). So rates are held against a little less than the limit, and
# what clients get is within a tenth of it over ten seconds: from 90.1 %, for a client that needs just its limit, to 110
# %, for one that takes all it can. With any other share one of the two would be further off.

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
        self.waiting = ThrottledClients()
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


# A bucket of tokens: a rate with room for bursts (KIP-599).
#
# Theory of operation. The bucket fills at the rate of the limit, up to what the limit allows in all windows together. A
# change of the cluster takes a token for each partition that it makes or removes. A strict client may make a change
# while the bucket is not below zero, and so may overdraw it once. A permissive one may always, and waits afterwards.
# The wait is the time until the bucket is back at zero.


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
        self.waiting = ThrottledClients()
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
