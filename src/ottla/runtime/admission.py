"""Who is let in: how many connections there may be, and how often, in all, to one listener, and from one address.

Beyond `max.connections` a client waits, unaccepted, until another has gone. A protected listener (the one between
brokers, where there are several) is always open: for a broker that comes beyond the limit, the connection elsewhere
that has been idle longest has to go. Beyond `max.connections.per.ip` a client is turned away. How often clients may
come is in `connection_rates`.

A client has arrived when it is accepted, and counts by its address from then on. It has entered when it is a
connection: with TLS that is when its handshake is over, so that clients which say nothing take no place of
`max.connections`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.machines.quota.sampled_rate import Windows
from ottla.runtime.connection_rates import AddressRates, ConnectionRates

NO_LIMIT = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """From the broker's settings, which may change while it runs; the names in the comments."""

    max_connections: int = NO_LIMIT  # max.connections
    max_per_listener: Mapping[str, int] = field(default_factory=dict)  # listener.name.….max.connections
    max_per_ip: int = NO_LIMIT  # max.connections.per.ip
    max_of_ip: Mapping[str, int] = field(default_factory=dict)  # max.connections.per.ip.overrides
    max_rate: int = NO_LIMIT  # max.connection.creation.rate
    max_rate_of_listener: Mapping[str, int] = field(default_factory=dict)  # the same after listener.name.….


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
