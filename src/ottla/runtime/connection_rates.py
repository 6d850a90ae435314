"""How often clients may connect: in all, to one listener, and from one address (KIP-612).

A client that comes too often to the broker or the listener waits, accepted but not served, and those behind it wait in
the listener's backlog. One that comes too often from its address is hung up on after its wait, and does not count. No
wait is longer than one window. A protected listener counts for itself alone.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from ottla.machines.quota.sampled_rate import SampledRate, Windows
from ottla.machines.quota.throttle_times import ThrottleTimes

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
