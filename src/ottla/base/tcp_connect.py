"""Connecting by TCP, for clients and nodes: a socket that is connected, or why there is none. Nothing here waits."""

import errno
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct
from threading import Thread
from typing import Any, Final, Protocol

from ottla.base.ports import Watcher

_IN_PROGRESS = frozenset({errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY})

_RESET: Final = Struct("ii").pack(1, 0)
_SILENT_FOR_S: Final = 300.0
_MOST_SILENT: Final = 1000

AddressInfo = tuple[Any, ...]
"""A row of `socket.getaddrinfo`."""


class Poller(Protocol):
    """Readiness of sockets, and the addresses of names."""

    def watch(self, fd: int, watcher: Watcher | None, *, reading: bool, writing: bool) -> None: ...

    def resolve(
        self, host: str, port: int, then: Callable[[Sequence[AddressInfo]], None], failed: Callable[[OSError], None]
    ) -> None:
        """The addresses of a host, in a later turn."""
        ...


class SilentAddresses:
    """Those that did not answer in time: they are tried after the others of their host.

    A refusal comes at once, and the next address is tried at once. A firewall that swallows packets says nothing until
    the caller gives up: the next time another address has its turn (`client.dns.lookup=use_all_dns_ips`).

    While another address answers, a silent one is not tried. So it is forgotten after a while, and has its turn again;
    and the oldest are forgotten when there are many, of hosts whose addresses change.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._silent_s: dict[Any, float] = {}
        """Since when, the one that was so longest ago first."""

    def in_order(self, addresses: Sequence[AddressInfo]) -> list[AddressInfo]:
        """Those that were silent last come last, the one that was so longest ago first."""
        limit_s = self._now_s() - _SILENT_FOR_S
        self._silent_s = {address: since_s for address, since_s in self._silent_s.items() if since_s > limit_s}
        places = {address: place for place, address in enumerate(self._silent_s)}
        return sorted(addresses, key=lambda one: places.get(one[4], -1))

    def on_silence(self, address: Any) -> None:
        self._silent_s.pop(address, None)
        self._silent_s[address] = self._now_s()
        if len(self._silent_s) > _MOST_SILENT:
            del self._silent_s[next(iter(self._silent_s))]

    def on_answer(self, address: Any) -> None:
        self._silent_s.pop(address, None)


class TcpDialling:
    """One connection in the making: the addresses of its host are tried one after the other.

    `then` is given the socket, which nobody watches, and the address that it is connected to.
    """

    def __init__(
        self,
        poller: Poller,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[socket.socket, str], None],
        failed: Callable[[OSError], None],
        silent: SilentAddresses | None = None,
    ) -> None:
        self._poller = poller
        self._host = host
        self._silent = SilentAddresses(lambda: 0.0) if silent is None else silent
        self._address: Any = None
        """The one that is being tried."""
        self._buffers = ((socket.SO_RCVBUF, receive_buffer_bytes), (socket.SO_SNDBUF, send_buffer_bytes))
        self._then = then
        self._failed = failed
        self._left: list[AddressInfo] = []
        self._socket: socket.socket | None = None
        self._is_over = False
        poller.resolve(host, port, self._on_addresses, self._on_unresolved)

    def cancel(self) -> None:
        if not self._is_over and self._socket is not None:
            self._silent.on_silence(self._address)
        self._is_over = True
        self._drop()

    def _on_unresolved(self, problem: OSError) -> None:
        if not self._is_over:
            why = problem.strerror or problem
            self._fail(OSError(problem.errno, f"the name {self._host!r} is not known: {why}"))

    def _on_addresses(self, addresses: Sequence[AddressInfo]) -> None:
        if not self._is_over:
            self._left = self._silent.in_order(addresses)
            self._try_next(OSError(errno.EADDRNOTAVAIL, "the host has no address"))

    def _try_next(self, problem: OSError) -> None:
        while self._left:
            family, kind, protocol, _, address = self._left.pop(0)
            self._address = address
            try:
                sock = self._socket = socket.socket(family, kind, protocol)
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for option, size in self._buffers:
                    if size > 0:
                        sock.setsockopt(socket.SOL_SOCKET, option, size)
                status = sock.connect_ex(address)
            except OSError as refused:
                problem = refused
                self._drop()
                continue
            if status == 0 or status in _IN_PROGRESS:
                self._poller.watch(sock.fileno(), self, reading=False, writing=True)
                return
            problem = OSError(status, os.strerror(status))
            self._drop()
        self._fail(problem)

    def _fail(self, problem: OSError) -> None:
        self._is_over = True
        self._failed(problem)

    def on_readable(self) -> None:
        self.on_writable()

    def on_writable(self) -> None:
        """Connected, or refused."""
        sock = self._socket
        if sock is None:
            return
        status = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if status:
            self._drop()
            self._try_next(OSError(status, os.strerror(status)))
            return
        try:
            peer = sock.getpeername()
        except OSError:
            return  # not yet: called without being ready
        if peer == sock.getsockname():
            # Nobody listens there, and the system chose that very port for this end: it talks to itself, and would keep
            # the port from the node that belongs there. Reset, so that nothing of it lingers.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._drop()
            self._try_next(ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)))
            return
        self._socket = None
        self._is_over = True
        self._silent.on_answer(self._address)
        self._poller.watch(sock.fileno(), None, reading=False, writing=False)
        self._then(sock, str(peer[0]))

    def _drop(self) -> None:
        if self._socket is not None:
            self._poller.watch(self._socket.fileno(), None, reading=False, writing=False)
            self._socket.close()
            self._socket = None


def numeric_address(host: str, port: int) -> Sequence[AddressInfo] | None:
    """The address, if the host is written as one: that takes no asking."""
    try:
        # As bytes: for text Python loads the tables of international names, half a megabyte, whatever is in it.
        return socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None


def addresses_of(host: str, port: int) -> Sequence[AddressInfo]:
    """Asks the system's resolver, which may wait. Raises `OSError`, also for what can be nobody's name."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as problem:
        raise OSError(errno.EINVAL, str(problem)) from problem


def resolve(
    host: str,
    port: int,
    then: Callable[[Sequence[AddressInfo]], None],
    failed: Callable[[OSError], None],
    soon: Callable[..., object],
) -> None:
    """`Poller.resolve` for a loop. A name is looked up on a thread of its own: the resolver may take its time.

    `soon` has a callback called on the loop with an argument, from whatever thread.
    """
    known = numeric_address(host, port)
    if known is not None:
        soon(then, known)
        return

    def look_up() -> None:
        try:
            found = addresses_of(host, port)
        except Exception as problem:
            tell(failed, problem if isinstance(problem, OSError) else OSError(errno.EINVAL, str(problem)))
        else:
            tell(then, found)

    def tell(callback: Callable[[Any], None], outcome: object) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits.
            soon(callback, outcome)

    Thread(target=look_up, name=f"look up {host}", daemon=True).start()
