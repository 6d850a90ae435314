"""A connected socket as a transport, and what connects it (`base.tcp_connect`)."""

import socket
from collections.abc import Callable, Sequence

from ottla.base.ports import Buffer, ColdSend, File, Transport, Watcher
from ottla.base.tcp_connect import Poller, SilentAddresses, TcpDialling

_MORE = getattr(socket, "MSG_MORE", 0)


class TcpTransport:
    """One connected socket. What is called for every response is the socket's own method."""

    __slots__ = ("_fd", "_poller", "_socket", "_watched", "peer_host", "receive_into", "send")

    can_send_files = False
    peer_principal: str | None = None

    def __init__(self, poller: Poller, sock: socket.socket, peer_host: str) -> None:
        self.peer_host = peer_host
        self.receive_into = sock.recv_into
        self.send = sock.send
        self._poller = poller
        self._socket = sock
        self._fd = sock.fileno()
        self._watched: tuple[Watcher | None, bool, bool] = (None, False, False)

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        return self._socket.sendmsg(parts, (), _MORE if more else 0)

    def send_file(self, file: File, position: int, size: int) -> int:
        raise AssertionError("a client sends no files")

    def cold_send(self, file: File, position: int, size: int) -> ColdSend:
        raise AssertionError("a client sends no files")

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        wanted = (watcher, reading, writing)
        if wanted != self._watched:
            self._watched = wanted
            self._poller.watch(self._fd, watcher, reading=reading, writing=writing)

    def close(self) -> None:
        self.watch(None, reading=False, writing=False)
        self._socket.close()


class TcpDialer:
    def __init__(self, poller: Poller, now_s: Callable[[], float]) -> None:
        self._poller = poller
        self._silent = SilentAddresses(now_s)

    def dial(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> TcpDialling:
        return TcpDialling(
            self._poller,
            host,
            port,
            receive_buffer_bytes=receive_buffer_bytes,
            send_buffer_bytes=send_buffer_bytes,
            then=lambda sock, peer_host: then(TcpTransport(self._poller, sock, peer_host)),
            failed=failed,
            silent=self._silent,
        )
