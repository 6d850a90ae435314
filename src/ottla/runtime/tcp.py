"""Plain TCP: sockets that do not wait, as transports and listeners of a network."""

import os
import select
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.base.ports import Buffer, File, Watcher
from ottla.runtime.outbox import send_file

if TYPE_CHECKING:
    from ottla.runtime.network import LoopNetwork

# How long a disk thread waits for a client to take what is there. Others need the thread, too.
_PATIENCE_MS = 5
_MORE = getattr(socket, "MSG_MORE", 0)


class TcpColdSend:
    """A part of a file that a disk thread sends, as far as the client takes it without making the thread wait.

    It has descriptors of its own: the connection may be closed meanwhile.
    """

    def __init__(self, sock: socket.socket, file: File, position: int, size: int) -> None:
        self._socket = os.dup(sock.fileno())
        self._file = file
        self._file.pin()
        self._position = position
        self._left = size

    def run(self) -> int:
        sent = 0
        writable = select.poll()
        writable.register(self._socket, select.POLLOUT)
        while sent < self._left:
            try:
                sent += send_file(self._socket, self._file, self._position + sent, self._left - sent)
            except BlockingIOError:
                if not writable.poll(_PATIENCE_MS):
                    break
        return sent

    def end(self) -> None:
        os.close(self._socket)
        self._file.unpin()


class TcpTransport:
    """One accepted socket. What is called for every request is the socket's own method."""

    __slots__ = ("_fd", "_network", "_socket", "peer_host", "receive_into", "send")

    can_send_files = True
    peer_principal: str | None = None

    def __init__(self, network: "LoopNetwork", sock: socket.socket, peer_host: str) -> None:
        self._network = network
        self._socket = sock
        self._fd = sock.fileno()
        self.peer_host = peer_host
        self.receive_into = sock.recv_into
        self.send = sock.send

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        return self._socket.sendmsg(parts, (), _MORE if more else 0)

    def send_file(self, file: File, position: int, size: int) -> int:
        return send_file(self._fd, file, position, size)

    def cold_send(self, file: File, position: int, size: int) -> TcpColdSend:
        return TcpColdSend(self._socket, file, position, size)

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self._network.watch(self._fd, watcher, reading=reading, writing=writing)

    def close(self) -> None:
        self._network.watch(self._fd, None, reading=False, writing=False)
        self._socket.close()


class TcpListener:
    """One address. A client that is gone before it could be set up is an error like others, of that client alone."""

    def __init__(self, network: "LoopNetwork", sock: socket.socket, send_buffer_bytes: int) -> None:
        self._network = network
        self._socket = sock
        self._send_buffer_bytes = send_buffer_bytes
        self.address: tuple[str, int] = sock.getsockname()[:2]

    def accept(self) -> TcpTransport:
        sock, address = self._socket.accept()
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        except OSError as problem:
            sock.close()
            raise ConnectionAbortedError(problem.errno, f"gone before it was accepted: {problem}") from problem
        return TcpTransport(self._network, sock, str(address[0]))

    def watch(self, watcher: Watcher | None) -> None:
        self._network.watch(self._socket.fileno(), watcher, reading=watcher is not None, writing=False)

    def close(self) -> None:
        self.watch(None)
        self._socket.close()


def listening_socket(host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> socket.socket:
    """Raises `OSError` when the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.bind((host, port))
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
