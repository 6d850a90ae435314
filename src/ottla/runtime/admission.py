"""Who is let in: how many connections there may be, and how often, in all, to one listener, and from one address.

Beyond `max.connections` a client waits, unaccepted, until another has gone. A protected listener (the one between
brokers, where there are several) is always open: for a broker that comes beyond the limit, the connection elsewhere
that has been idle longest has to go. Beyond `max.connections.per.ip` a client is turned away. How often clients may
come is in `connection_rates`.

A client has arrived when it is accepted, and counts by its address from then on. It has entered when it is a
connection: with TLS that is when its handshake is over, so that clients which say nothing take no place of
`max.connections`.
"""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.machines.quota.rates import SampledRate, ThrottleTimes, Windows

# How often clients may connect: in all, to one listener, and from one address (KIP-612).
#
# A client that comes too often to the broker or the listener waits, accepted but not served, and those behind it wait
# in the listener's backlog. One that comes too often from its address is hung up on after its wait, and does not count.
# No wait is longer than one window. A protected listener counts for itself alone.

_MOST_ADDRESSES = 10_000


class AddressRates(NamedTuple):
    """`connection_creation_rate` by address, and for each that is not named; None is no limit."""

    of_address: Mapping[str, float] = {}
    default: float | None = None

    def limit_of(self, host: str) -> float | None:
        return self.of_address.get(host, self.default)


class ConnectionRates:
    """Counts connections as they come. Times are in milliseconds."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self.of_broker = SampledRate(windows)
        self.of_listeners: dict[str, SampledRate] = {}
        self.of_addresses: OrderedDict[str, SampledRate] = OrderedDict()
        self.waits_at_listeners: dict[str, ThrottleTimes] = {}
        self.waits_of_addresses: dict[str, ThrottleTimes] = {}
        """By listener, too."""

    def on_accepted(
        self, listener: str, now_ms: int, broker_limit: float, listener_limit: float, *, is_protected: bool
    ) -> int:
        """How long a client that came to that listener has to wait; 0 if it has not."""
        of_listener = self.of_listeners.get(listener)
        if of_listener is None:
            of_listener = self.of_listeners[listener] = SampledRate(self._windows)
        wait_ms = 0 if is_protected else self._record(self.of_broker, broker_limit, now_ms)
        wait_ms = max(wait_ms, self._record(of_listener, listener_limit, now_ms))
        self._note(self.waits_at_listeners, listener, wait_ms, now_ms)
        return wait_ms

    def on_address(self, listener: str, host: str, now_ms: int, limit: float | None, *, is_protected: bool) -> int:
        """How long to wait before hanging up on a client from that address; 0 if it is let in."""
        if limit is None:
            return 0
        rate = self.of_addresses.get(host)
        if rate is None:
            if len(self.of_addresses) >= _MOST_ADDRESSES:
                self.of_addresses.popitem(last=False)
            rate = self.of_addresses[host] = SampledRate(self._windows)
        self.of_addresses.move_to_end(host)
        wait_ms = self._record(rate, limit, now_ms)
        if wait_ms:
            for counted in (rate, self.of_listeners[listener], *(() if is_protected else (self.of_broker,))):
                counted.record(-1, now_ms)
        self._note(self.waits_of_addresses, listener, wait_ms, now_ms)
        return wait_ms

    def _note(self, waits: dict[str, ThrottleTimes], listener: str, wait_ms: int, now_ms: int) -> None:
        """A wait of nothing is none."""
        if wait_ms:
            of_listener = waits.get(listener)
            if of_listener is None:
                of_listener = waits[listener] = ThrottleTimes(self._windows)
            of_listener.note(wait_ms, now_ms)

    def _record(self, rate: SampledRate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        return min(rate.measure(now_ms).throttle_ms(limit), self._windows.size_ms)


NO_LIMIT = 0x7FFFFFFF


class ConnectionLimits(NamedTuple):
    """From the broker's settings, which may change while it runs; the names in the comments."""

    max_connections: int = NO_LIMIT  # max.connections
    max_per_listener: Mapping[str, int] = MappingProxyType({})  # listener.name.….max.connections
    max_per_ip: int = NO_LIMIT  # max.connections.per.ip
    max_of_ip: Mapping[str, int] = MappingProxyType({})  # max.connections.per.ip.overrides
    max_rate: int = NO_LIMIT  # max.connection.creation.rate
    max_rate_of_listener: Mapping[str, int] = MappingProxyType({})  # the same after listener.name.….


class Admission:
    """Counts the connections, and holds them against the limits."""

    def __init__(
        self, limits: ConnectionLimits, protected: frozenset[str] = frozenset(), windows: Windows | None = None
    ) -> None:
        self.limits = limits
        self.rates = ConnectionRates(windows or Windows())
        self.address_rates = AddressRates()
        self._protected = protected
        self._total = 0
        self._per_listener: Counter[str] = Counter()
        self._per_host: Counter[str] = Counter()

    def is_protected(self, listener: str) -> bool:
        return listener in self._protected

    def has_place(self, listener: str) -> bool:
        """Whether the next client may be accepted, or has to wait."""
        limits = self.limits
        if self._per_listener[listener] >= limits.max_per_listener.get(listener, NO_LIMIT):
            return False
        return listener in self._protected or self._total < limits.max_connections

    def is_welcome(self, host: str) -> bool:
        """Whether there may be one more from this address."""
        return self._per_host[host] < self.limits.max_of_ip.get(host, self.limits.max_per_ip)

    def wait_at_listener(self, listener: str, now_ms: int) -> int:
        """A client has come. How long it has to wait before it is looked at, in milliseconds."""
        limits = self.limits
        return self.rates.on_accepted(
            listener,
            now_ms,
            limits.max_rate,
            limits.max_rate_of_listener.get(listener, NO_LIMIT),
            is_protected=listener in self._protected,
        )

    def wait_before_refusal(self, listener: str, host: str, now_ms: int) -> int:
        """It is looked at. How long to wait before it is hung up on, in milliseconds; 0 if it may stay."""
        limit = self.address_rates.limit_of(host)
        return self.rates.on_address(listener, host, now_ms, limit, is_protected=listener in self._protected)

    @property
    def is_crowded(self) -> bool:
        """Whether someone has to go, because a protected listener took one more."""
        return self._total > self.limits.max_connections

    def arrived(self, host: str) -> None:
        self._per_host[host] += 1

    def gone(self, host: str) -> None:
        """One that had arrived, whether or not it had entered."""
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]

    def entered(self, listener: str) -> None:
        self._total += 1
        self._per_listener[listener] += 1

    def left(self, listener: str) -> None:
        self._total -= 1
        self._per_listener[listener] -= 1
