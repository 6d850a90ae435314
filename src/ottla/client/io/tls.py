"""TLS over a connected socket: the handshake, and a transport whose bytes are encrypted.

Theory of operation. OpenSSL works on the socket itself, which never blocks: a call that would wait says whether it
wants to read or to write. While a dialling shakes hands, that decides what is watched. Afterwards the transport behaves
like one of plain TCP, with one difference inside: OpenSSL hands out a record (16 KB) at a time and may hold what the
selector cannot see, so `receive_into` goes on until the buffer is full or nothing is left.
"""

import errno
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ottla.base.ports import Buffer, Transport
from ottla.client.io.tcp import Poller, SocketTransport, TcpDialling, TcpTransport
from ottla.client.io.tls_failures import failure
from ottla.client.settings import ClientSettings
from ottla.client.world import TlsFailed
from ottla.security.tls.contexts import allowed_suites, client_context

_JOINED_BYTES: Final = 64 << 10
"""Parts are joined up to this size: each write is a TLS record of its own."""
_WOULD_WAIT: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TlsTransport(SocketTransport):
    """One socket after its handshake. `where` is the address that errors name."""

    __slots__ = ("_where",)

    def __init__(self, poller: Poller, secured: ssl.SSLSocket, peer_host: str, where: str) -> None:
        super().__init__(poller, secured, peer_host)
        self._where = where

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        size = len(buffer)
        count = 0
        view = memoryview(buffer)
        try:
            while count < size:
                received = self._socket.recv_into(view[count:])
                if not received:
                    break
                count += received
        except _WOULD_WAIT:
            if not count:
                raise BlockingIOError(errno.EAGAIN, "nothing has come") from None
        except OSError as problem:
            if not count:  # Else it is met again by the next call.
                raise self._told(problem) from None
        return count

    def send(self, data: Buffer, /) -> int:
        return self.send_parts((data,), more=False)

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        """What OpenSSL could not send it must be offered again: callers send the same bytes, and perhaps more."""
        sent = 0
        try:
            for piece in _pieces(parts):
                view = memoryview(piece)
                while view:
                    count = self._socket.send(view)
                    sent += count
                    view = view[count:]
        except _WOULD_WAIT:
            if not sent:
                raise BlockingIOError(errno.EAGAIN, "no room") from None
        except OSError as problem:
            raise self._last_words(problem) from None
        return sent

    def _told(self, problem: OSError) -> OSError:
        return failure(problem, self._where) if _is_telling(problem) else problem

    def _last_words(self, problem: OSError) -> OSError:
        """Why the broker hung up while we sent, if it said so before: with TLS 1.3 it refuses our certificate only
        after our side of the handshake is done.
        """
        try:
            self._socket.recv(1)
        except OSError as said:
            return self._told(said if _is_telling(said) else problem)
        return problem


def _is_telling(problem: OSError) -> bool:
    return isinstance(problem, ssl.SSLError) and not isinstance(problem, (ssl.SSLEOFError, *_WOULD_WAIT))


class TlsDialling:
    """One connection in the making: TCP first, then the handshake. Its limit in time is the caller's."""

    def __init__(
        self,
        poller: Poller,
        context: ssl.SSLContext,
        suites: frozenset[str] | None,
        host: str,
        port: int,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._poller = poller
        self._context = context
        self._suites = suites
        self._host = host
        self._where = f"{host}:{port}"
        self._then = then
        self._failed = failed
        self._secured: ssl.SSLSocket | None = None
        self._peer_host = host
        self._tcp = TcpDialling(poller, host, port, receive_buffer_bytes, send_buffer_bytes, self._on_connected, failed)

    def cancel(self) -> None:
        self._tcp.cancel()
        self._drop()

    def on_readable(self) -> None:
        self._shake_hands()

    def on_writable(self) -> None:
        self._shake_hands()

    def _on_connected(self, transport: Transport) -> None:
        assert isinstance(transport, TcpTransport), "TLS is spoken over TCP"
        self._peer_host = transport.peer_host
        self._secured = self._wrapped(transport.take_socket())
        if self._secured is not None:
            self._shake_hands()

    def _wrapped(self, sock: socket.socket) -> ssl.SSLSocket | None:
        try:
            return self._context.wrap_socket(sock, do_handshake_on_connect=False, server_hostname=self._host)
        except (OSError, ValueError) as problem:  # The other side has ended already, or the name is none.
            sock.close()
            is_certain = isinstance(problem, ValueError)
            self._failed(
                TlsFailed(f"{self._where}: {problem}") if is_certain else OSError(errno.ECONNRESET, str(problem))
            )
            return None

    def _shake_hands(self) -> None:
        secured = self._secured
        if secured is None:
            return
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            self._poller.watch(secured.fileno(), self, reading=True, writing=False)
        except ssl.SSLWantWriteError:
            self._poller.watch(secured.fileno(), self, reading=False, writing=True)
        except OSError as problem:
            self._drop()
            self._failed(failure(problem, self._where))
        else:
            suite = secured.cipher()
            if self._suites is not None and (suite is None or suite[0] not in self._suites):
                self._drop()
                self._failed(TlsFailed(f"no TLS with {self._where}: it has none of ssl.cipher.suites"))
                return
            self._secured = None
            self._poller.watch(secured.fileno(), None, reading=False, writing=False)
            self._then(TlsTransport(self._poller, secured, self._peer_host, self._where))

    def _drop(self) -> None:
        if self._secured is not None:
            self._poller.watch(self._secured.fileno(), None, reading=False, writing=False)
            self._secured.close()
            self._secured = None


class TlsDialer:
    """Keys and certificates are read once, when the client is made."""

    def __init__(self, poller: Poller, settings: ClientSettings) -> None:
        self._poller = poller
        self._context = client_context(settings)
        self._suites = allowed_suites(settings)

    def dial(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> TlsDialling:
        return TlsDialling(
            self._poller, self._context, self._suites, host, port, receive_buffer_bytes, send_buffer_bytes, then, failed
        )


def _pieces(parts: Sequence[Buffer]) -> Iterator[Buffer]:
    """Small parts joined, large ones as they are. The same parts are joined in the same way again."""
    small: list[Buffer] = []
    size = 0
    for part in parts:
        if len(part) >= _JOINED_BYTES and not small:
            yield part
            continue
        small.append(part)
        size += len(part)
        if size >= _JOINED_BYTES:
            yield b"".join(small)
            small, size = [], 0
    if small:
        yield b"".join(small)
