"""The machines of a simulation and how they reach each other.

Connecting follows TCP: it takes a round trip; where nobody listens it is refused; a machine without power, or behind a
cut link, does not answer, and after some tries, two minutes in all, the one who dials gets an error.
"""

import errno
from collections.abc import Callable, Iterable
from itertools import count
from random import Random
from struct import pack
from typing import TYPE_CHECKING
from zlib import crc32

from ottla.base.ports import Buffer, Transport
from ottla.testing.sim.network.connection_end import ConnectionEnd
from ottla.testing.sim.network.links import Link, Weather
from ottla.testing.step_timers import Agenda

if TYPE_CHECKING:
    from ottla.testing.sim.network.host_network import HostListener, HostNetwork

_FIRST_FREE_PORT = 49152
_MOST_TRIES = 7
_FIRST_TRY_US = 1_000_000


class Host:
    """A machine. `number` tells it from others in the trace."""

    def __init__(self, number: int, address: str) -> None:
        self.number = number
        self.address = address
        self.is_up = True
        self.listeners: dict[int, HostListener] = {}
        self._free_ports = count(_FIRST_FREE_PORT)
        self._when_up: list[Callable[[], None]] = []

    def free_port(self) -> int:
        return next(port for port in self._free_ports if port not in self.listeners)

    def when_up(self, callback: Callable[[], None]) -> None:
        self._when_up.append(callback)

    def power_off(self) -> None:
        self.is_up = False

    def power_on(self) -> None:
        self.is_up = True
        callbacks, self._when_up = self._when_up, []
        for callback in callbacks:
            callback()


class Dialled:
    """A connection in the making."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Fabric:
    """`trace` is notified of every piece that is carried."""

    def __init__(
        self,
        agenda: Agenda,
        random: Random,
        weather: Weather | None = None,
        trace: Callable[[bytes], None] | None = None,
    ) -> None:
        self.agenda = agenda
        self.pieces = 0
        self.weather = weather or Weather()
        self._random = random
        self._trace = trace
        self._numbers = count()
        self._hosts: dict[str, Host] = {}
        self._links: dict[tuple[int, int], Link] = {}

    def add_host(self, address: str, *, is_named: bool = True) -> Host:
        """A machine; others can dial it by its address, unless it `is_named` not."""
        host = Host(next(self._numbers), address)
        if is_named:
            self._hosts[address] = host
        return host

    def link(self, source: Host, target: Host) -> Link:
        key = source.number, target.number
        if key not in self._links:
            self._links[key] = Link(self.agenda, self._random, self.weather)
        return self._links[key]

    def links_between(self, some: Iterable[Host], others: Iterable[Host]) -> list[Link]:
        """Those from each of these to each of those: one direction."""
        others = list(others)
        return [self.link(one, other) for one in some for other in others if one is not other]

    def note(self, end: ConnectionEnd, data: Buffer | None, *, is_encrypted: bool = False) -> None:
        """Of what is encrypted, only how much it is: the bytes are others each time."""
        self.pieces += 1
        if self._trace is not None:
            source, target = end.network.host.number, end.peer.network.host.number
            size = -1 if data is None else len(data)
            checksum = 0 if data is None or is_encrypted else crc32(data)
            self._trace(pack("<qhhiI", self.agenda.clock.elapsed_us(), source, target, size, checksum))

    def connect(self, network: "HostNetwork", address: str, port: int) -> ConnectionEnd:
        """At once. Raises `ConnectionRefusedError` where nobody listens."""
        host = self._hosts.get(address)
        listener = host.listeners.get(port) if host is not None and host.is_up else None
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {address}:{port}")
        return self._join(network, listener, address)

    def dial(
        self,
        network: "HostNetwork",
        address: str,
        port: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> Dialled:
        dialled = Dialled()
        host = self._hosts.get(address)

        def tell(callback: Callable[[], None]) -> None:
            if not dialled.is_cancelled:
                network.process.run(lambda: None if dialled.is_cancelled else callback())

        def later(delay_us: int, callback: Callable[[], None]) -> None:
            self.agenda.call_at(self.agenda.clock.elapsed_us() + delay_us, callback)

        def attempt(number: int) -> None:
            if dialled.is_cancelled or network.process.is_over:
                return
            if host is None:
                later(_FIRST_TRY_US, lambda: tell(lambda: failed(OSError(errno.EHOSTUNREACH, f"no host {address}"))))
                return
            there, back = self.link(network.host, host), self.link(host, network.host)
            if there.is_cut or back.is_cut or not host.is_up:
                if number + 1 == _MOST_TRIES:
                    tell(lambda: failed(TimeoutError(errno.ETIMEDOUT, f"{address} does not answer")))
                else:
                    later(_FIRST_TRY_US << number, lambda: attempt(number + 1))
                return
            later(there.delay_us(0), lambda: arrive(host, back, number))

        def arrive(host: Host, back: Link, number: int) -> None:
            if not host.is_up:
                attempt(number)
                return
            listener = host.listeners.get(port)
            if listener is None:
                refused = ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {address}:{port}")
                later(back.delay_us(0), lambda: tell(lambda: failed(refused)))
                return
            if network.process.is_over:
                return
            end = self._join(network, listener, address)
            later(back.delay_us(0), lambda: dialled_through(end))

        def dialled_through(end: ConnectionEnd) -> None:
            network.process.run(lambda: end.close() if dialled.is_cancelled else then(end))

        later(0, lambda: attempt(0))
        return dialled

    def _join(self, network: "HostNetwork", listener: "HostListener", address: str) -> ConnectionEnd:
        near = network.make_end(address, has_dialled=True)
        far = listener.make_end(network.host.address)
        near.peer, far.peer = far, near
        near.link, far.link = self.link(network.host, far.network.host), self.link(far.network.host, network.host)
        return near
