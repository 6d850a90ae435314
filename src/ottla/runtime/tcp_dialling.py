"""Connecting to other nodes by TCP. Nothing here waits: names are looked up on a thread of the loop's."""

import errno
import os
import socket
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.ports import Transport
from ottla.runtime.tcp import TcpTransport

if TYPE_CHECKING:
    from ottla.runtime.network import LoopNetwork

_IN_PROGRESS = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY}

_Address = tuple[Any, ...]
"""One row of `getaddrinfo`."""


class TcpDialling:
    """One connection in the making: the addresses of its host are tried one after the other."""

    def __init__(
        self,
        network: "LoopNetwork",
        host: str,
        port: int,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._network = network
        self._host = host
        self._buffers = ((socket.SO_RCVBUF, receive_buffer_bytes), (socket.SO_SNDBUF, send_buffer_bytes))
        self._then = then
        self._failed = failed
        self._left: list[_Address] = []
        self._socket: socket.socket | None = None
        self._is_over = False
        self._look_up(port)

    def cancel(self) -> None:
        self._is_over = True
        self._drop()

    def _look_up(self, port: int) -> None:
        loop = self._network.loop
        addresses = _numeric(self._host, port)
        if addresses is not None:
            loop.call_soon(self._on_addresses, addresses)
            return
        asked: Future[Sequence[_Address]] = loop.run_in_executor(None, _addresses_of, self._host, port)
        asked.add_done_callback(self._on_looked_up)

    def _on_looked_up(self, asked: "Future[Sequence[_Address]]") -> None:
        problem = asked.exception()
        if problem is None:
            self._on_addresses(asked.result())
        elif not self._is_over:
            self._fail(
                OSError(getattr(problem, "errno", errno.EINVAL), f"the name {self._host!r} is not known: {problem}")
            )

    def _on_addresses(self, addresses: Sequence[_Address]) -> None:
        if not self._is_over:
            self._left = list(addresses)
            self._try_next(OSError(errno.EADDRNOTAVAIL, "the host has no address"))

    def _try_next(self, problem: OSError) -> None:
        while self._left:
            family, kind, protocol, _, address = self._left.pop(0)
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
                self._network.watch(sock.fileno(), self, reading=False, writing=True)
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
            peer_host = str(sock.getpeername()[0])
        except OSError:
            return  # not yet: called without being ready
        self._socket = None
        self._is_over = True
        self._network.watch(sock.fileno(), None, reading=False, writing=False)
        self._then(TcpTransport(self._network, sock, peer_host))

    def _drop(self) -> None:
        if self._socket is not None:
            self._network.watch(self._socket.fileno(), None, reading=False, writing=False)
            self._socket.close()
            self._socket = None


def _numeric(host: str, port: int) -> Sequence[_Address] | None:
    """The address, if the host is written as one: that takes no asking."""
    try:
        # As bytes: for text Python loads the tables of international names, half a megabyte, whatever is in it.
        return socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None


def _addresses_of(host: str, port: int) -> Sequence[_Address]:
    """Asks the system's resolver, which may wait. Raises `OSError`, also for what can be nobody's name."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as problem:
        raise OSError(errno.EINVAL, str(problem)) from problem
