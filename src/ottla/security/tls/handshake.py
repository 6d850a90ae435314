"""What comes before a TLS connection can be used: a few messages each way, bounded, and without waiting.

One step takes what has come, has OpenSSL think about it, and sends what it answers. The step in which a private key is
used costs about a millisecond; `pace` may put it off until others have had their turn. How long a handshake may take as
a whole is its owner's affair, who cancels it.
"""

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ottla.base.errors import OttlaError
from ottla.base.lent import give_back
from ottla.base.ports import Transport
from ottla.security.tls.transport import Later, TlsTransport, explained, shared_scratch

MOST_BYTES: Final = 128 << 10
"""More than any handshake needs: certificates are a few kilobytes each."""

_UNEXPECTED_MESSAGE: Final = b"\x15\x03\x03\x00\x02\x02\x0a"
"""A fatal alert."""
_STEP_BYTES: Final = 16 << 10
_TLS_RECORDS: Final = (0x16, 0x15)
"""What a connection can begin with: a handshake, or an alert that refuses one."""


class HandshakeFailed(OttlaError, ConnectionAbortedError):
    """The message says what happened, in one sentence. `problem` is what OpenSSL or the network said, if they did."""

    def __init__(self, message: str, problem: OSError | None = None) -> None:
        super().__init__(message)
        self.problem = problem


class Handshake:
    """One connection's. Calls `then` or `failed`, once, and neither after `cancel`.

    `host` is whom a client wants to reach: its certificate is to be for that name, if the context checks names.
    `suites` are the cipher suites that the outcome may have; None is any. `scratch` is for all connections of a thread;
    None is that of the node's.
    """

    def __init__(
        self,
        inner: Transport,
        context: ssl.SSLContext,
        *,
        later: Later,
        then: Callable[[TlsTransport], None],
        failed: Callable[[HandshakeFailed], None],
        host: str | None = None,
        is_server: bool = False,
        suites: frozenset[str] | None = None,
        pace: Callable[[Callable[[], None]], None] | None = None,
        scratch: memoryview | None = None,
    ) -> None:
        self.inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._context = context
        self._host = host
        self._is_server = is_server
        self._later = later
        self._then = then
        self._failed = failed
        self._suites = suites
        self._pace = pace
        self._scratch = shared_scratch if scratch is None else scratch
        self._unsent: memoryview | None = None
        self._received_bytes = 0
        self._is_agreed = False
        self._is_over = False
        self._is_due = False

    def start(self) -> None:
        """A client speaks first; a server waits."""
        try:
            self._tls = self._context.wrap_bio(
                self._incoming, self._outgoing, server_side=self._is_server, server_hostname=self._host
            )
        except (ValueError, TypeError) as problem:
            self._fail(f"{self._host!r} can be in no certificate: {problem}")
            return
        if self._is_server:
            self.inner.watch(self, reading=True, writing=False)
        else:
            self._advance()

    def cancel(self) -> None:
        """Gives up, and closes the connection."""
        if not self._is_over:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        self.inner.close()

    # What the network calls

    def on_readable(self) -> None:
        if self._pace is None:
            self._receive()
        elif not self._is_due:
            self._is_due = True
            self._pace(self._receive)

    def on_writable(self) -> None:
        if not self._is_over:
            self._flush()

    def _receive(self) -> None:
        self._is_due = False
        if self._is_over or self._is_agreed:
            return
        try:
            count = self.inner.receive_into(self._scratch[:_STEP_BYTES])
        except BlockingIOError:
            return
        except OSError as problem:
            self._fail(f"the connection was lost during the TLS handshake: {problem.strerror or problem}", problem)
            return
        if not count:
            self._fail("the other side ended the connection during the TLS handshake", ConnectionResetError())
            return
        if not self._received_bytes and self._scratch[0] not in _TLS_RECORDS:
            if self._is_server:
                with suppress(OSError):  # As OpenSSL and Java do: so the client learns what is spoken here.
                    self.inner.send(_UNEXPECTED_MESSAGE)
            self._fail(_not_tls(bytes(self._scratch[: min(count, 4)]), is_server=self._is_server))
            return
        self._received_bytes += count
        if self._received_bytes > MOST_BYTES:
            self._fail(f"a TLS handshake of more than {MOST_BYTES} bytes")
            return
        self._incoming.write(self._scratch[:count])
        give_back(self._scratch, count)
        self._advance()

    def _advance(self) -> None:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
            self._is_agreed = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as problem:
            self._tell()
            self._fail(explained(problem), problem)
            return
        self._flush()

    def _tell(self) -> None:
        """Sends the alert that says why, if it goes at once."""
        with suppress(OSError):
            self.inner.send(self._outgoing.read())

    def _flush(self) -> None:
        """Sends what there is; when all of it has gone and the two agree, the handshake is over."""
        if self._outgoing.pending:
            self._unsent = memoryview(bytes(self._unsent or b"") + self._outgoing.read())
        try:
            while self._unsent:
                self._unsent = self._unsent[self.inner.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError as problem:
            self._fail(f"the connection was lost during the TLS handshake: {problem.strerror or problem}", problem)
            return
        if self._unsent or not self._is_agreed:
            self.inner.watch(self, reading=not self._is_agreed, writing=bool(self._unsent))
        else:
            self._finish()

    def _finish(self) -> None:
        assert self._tls is not None
        transport = TlsTransport(self.inner, self._tls, self._incoming, self._outgoing, self._scratch, self._later)
        if self._suites is not None and transport.version == "TLSv1.3" and transport.cipher_suite not in self._suites:
            self._fail(f"the other side has chosen {transport.cipher_suite}, which ssl.cipher.suites does not have")
            return
        self._is_over = True
        self.inner.watch(None, reading=False, writing=False)
        self._then(transport)

    def _fail(self, reason: str, problem: OSError | None = None) -> None:
        self._end()
        self._failed(HandshakeFailed(reason, problem))


def _not_tls(beginning: bytes, *, is_server: bool) -> str:
    if is_server:
        return f"the other side does not speak TLS: it sent {beginning.hex(' ')}, which is plain text on a TLS listener"
    return f"the other side does not speak TLS: it sent {beginning.hex(' ')}; its listener may be PLAINTEXT"
