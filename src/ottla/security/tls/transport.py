"""A connection's bytes over TLS, above any other transport: of a node, of a client, or of a network in memory.

Theory of operation. OpenSSL works between two buffers in memory. What comes is received into a scratch buffer that all
connections share, handed to OpenSSL a slice at a time, and decrypted straight into the reader's buffer; so nothing
large belongs to one connection, and one call receives many TLS records. What goes is encrypted some records at a time
and sent with one call.

Bytes may be decrypted, or ready to be, when the socket has no more to tell of. Then the watcher is called all the same,
soon (`later`).

A record is sent whole or the connection is broken. If the transport below takes only a part of what was encrypted, the
bytes in it do not count as sent until its rest is: the sender has to come again with the same bytes, as every sender
here does after `BlockingIOError` and after a count that is less than it gave.

What the other side can make us keep is bounded: OpenSSL bounds records and messages, and answers that it gives by
itself (key updates, refused renegotiations) end the connection when they pile up unsent.
"""

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from ottla.base.lent import give_back
from ottla.base.ports import Buffer, ColdSend, File, Transport, Watcher

Later = Callable[[Callable[[], None]], None]
"""Has something called soon, in another turn."""

SCRATCH_BYTES: Final = 128 << 10
_SLICE_BYTES: Final = 32 << 10
_RECORD_BYTES: Final = 16 << 10
_SENT_AT_ONCE_BYTES: Final = 128 << 10
# What is received beyond the reader's room stays with OpenSSL: what records have around their bytes, and little more.
_AROUND_BYTES: Final = 512
_MOST_OWN_ANSWERS_BYTES: Final = 16 << 10

shared_scratch: Final = memoryview(bytearray(SCRATCH_BYTES))
"""For connections of one thread. Nothing stays in it."""


def broken(problem: ssl.SSLError) -> OSError:
    """What a connection ends with when OpenSSL gives up."""
    return ConnectionAbortedError(problem.errno, explained(problem))


class TlsTransport:
    """After its handshake: see `handshake`. `peer_certificate` is in DER, and None if the other side showed none.

    `failure` makes of OpenSSL's words what is raised.
    """

    __slots__ = (
        "_has_more",
        "_incoming",
        "_inner",
        "_is_reading",
        "_is_waking",
        "_later",
        "_outgoing",
        "_scratch",
        "_tls",
        "_unsent",
        "_unsent_plain_bytes",
        "_watcher",
        "failure",
        "peer_host",
        "peer_principal",
    )

    can_send_files = False

    def __init__(
        self,
        inner: Transport,
        tls: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        scratch: memoryview,
        later: Later,
    ) -> None:
        self.peer_host = inner.peer_host
        self.peer_principal: str | None = None
        self.failure: Callable[[ssl.SSLError], OSError] = broken
        self._inner = inner
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._scratch = scratch
        self._later = later
        self._watcher: Watcher | None = None
        self._is_reading = False
        self._is_waking = False
        self._has_more = incoming.pending > 0
        self._unsent: memoryview | None = None
        self._unsent_plain_bytes = 0

    @property
    def peer_certificate(self) -> bytes | None:
        return self._tls.getpeercert(binary_form=True)

    @property
    def version(self) -> str:
        return str(self._tls.version())

    @property
    def cipher_suite(self) -> str:
        cipher = self._tls.cipher()
        return cipher[0] if cipher else ""

    # In

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        try:
            return self._receive_into(buffer)
        except ssl.SSLWantReadError:
            self._send_own_answers()
            raise BlockingIOError from None
        except ssl.SSLError as problem:
            self._tell_alert()
            raise self.failure(problem) from problem

    def _receive_into(self, buffer: bytearray | memoryview) -> int:
        size = len(buffer)
        if self._has_more:
            self._has_more = False
            with suppress(ssl.SSLWantReadError):  # The beginning of a record may be all that there was.
                return self._fill(buffer, 0, size)
        scratch = self._scratch
        count = self._inner.receive_into(scratch if size >= len(scratch) else scratch[: size + _AROUND_BYTES])
        if not count:
            return 0  # Frames have lengths: a stream that is cut off is noticed without TLS saying so.
        try:
            filled = self._decrypt(scratch[:count], buffer)
        finally:
            give_back(scratch, count)
        self._send_own_answers()
        return filled

    def _decrypt(self, received: memoryview, buffer: bytearray | memoryview) -> int:
        """Returns how full the buffer is. Raises `SSLWantReadError` where there is not a whole record yet."""
        count, size = len(received), len(buffer)
        if count <= _SLICE_BYTES:
            self._incoming.write(received)
            return self._fill(buffer, 0, size)
        filled = 0
        for at in range(0, count, _SLICE_BYTES):
            self._incoming.write(received[at : at + _SLICE_BYTES])
            if filled < size:
                with suppress(ssl.SSLWantReadError):
                    filled = self._fill(buffer, filled, size)
        if not filled:
            raise ssl.SSLWantReadError
        if filled == size:  # A slice may have come behind the one that filled it.
            self._note_more(self._incoming.pending > 0 or self._tls.pending() > 0)
        return filled

    def _fill(self, buffer: bytearray | memoryview, filled: int, size: int) -> int:
        """Decrypts what is there, as far as there is room, and returns how full the buffer is. Raises
        `SSLWantReadError` where there was nothing.
        """
        tls, incoming = self._tls, self._incoming
        read: Callable[[int, Any], Any] = tls.read  # a count, where it is given a buffer
        start = filled
        view = memoryview(buffer)
        try:
            while True:
                count = read(size - filled, view[filled:] if filled else view)
                if not count:
                    return filled  # The other side has said that it is done; the socket's end follows.
                filled += count
                if filled == size:
                    self._note_more(incoming.pending > 0 or tls.pending() > 0)
                    return filled
                if not incoming.pending and not tls.pending():
                    return filled
        except ssl.SSLWantReadError:
            if filled == start:
                raise
            return filled
        finally:
            view.release()

    def _note_more(self, has_more: bool) -> None:
        self._has_more = has_more
        if has_more and self._is_reading:
            self._wake_later()

    def _wake_later(self) -> None:
        if not self._is_waking:
            self._is_waking = True
            self._later(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        if self._has_more and self._is_reading and self._watcher is not None:
            self._watcher.on_readable()

    # Out

    def send(self, data: Buffer, /) -> int:
        total = len(data)
        sent = 0 if self._unsent is None else self._send_rest()
        with memoryview(data) as view:
            while sent < total:
                size = self._encrypt(view[sent : sent + _SENT_AT_ONCE_BYTES])
                if not self._send_encrypted(size):
                    break
                sent += size
        if not sent and total:
            raise BlockingIOError
        return sent

    def _encrypt(self, data: memoryview) -> int:
        """OpenSSL takes a record at a time."""
        done, size = 0, len(data)
        try:
            while done < size:
                done += self._tls.write(data[done : done + _RECORD_BYTES])
        except ssl.SSLError as problem:
            raise self.failure(problem) from problem
        return size

    def _send_encrypted(self, plain_bytes: int) -> bool:
        """Sends what OpenSSL has ready, with so many of the sender's bytes in it. What is not taken is kept; returns
        whether nothing was.
        """
        encrypted = self._outgoing.read()
        try:
            count = self._inner.send(encrypted)
        except BlockingIOError:
            count = 0
        except OSError as problem:
            raise self._last_words(problem) from None
        if count < len(encrypted):
            self._unsent = memoryview(encrypted)[count:]
            self._unsent_plain_bytes = plain_bytes
        return self._unsent is None

    def _last_words(self, problem: OSError) -> OSError:
        """Why the other side hung up while we sent, if it said so before: with TLS 1.3 it refuses our certificate only
        after our side of the handshake is done.
        """
        try:
            self._receive_into(bytearray(1))
        except ssl.SSLWantReadError:
            return problem
        except ssl.SSLError as said:
            return self.failure(said)
        except OSError:
            return problem
        return problem

    def _send_rest(self) -> int:
        """Sends what is left of what was encrypted before, and returns how many of the sender's bytes that were."""
        assert self._unsent is not None
        while self._unsent:
            count = self._inner.send(self._unsent)
            self._unsent = self._unsent[count:]
        self._unsent = None
        return self._unsent_plain_bytes

    def _send_own_answers(self) -> None:
        """What OpenSSL answers by itself: to key updates, for one. It leaves at once, or before the next bytes."""
        if not self._outgoing.pending:
            return
        if self._unsent is None:
            self._send_encrypted(0)
        elif self._outgoing.pending > _MOST_OWN_ANSWERS_BYTES:
            raise ConnectionAbortedError("the other side asks TLS for answers and takes none")

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        if len(parts) == 1 or len(parts[0]) >= _SENT_AT_ONCE_BYTES:
            return self.send(parts[0])
        joined = bytearray()
        behind_bytes = 0
        for part in parts:
            if len(joined) >= _SENT_AT_ONCE_BYTES:
                # A little behind it goes with it: by itself it would be a record, and a packet, of its own.
                behind_bytes += len(part)
                if behind_bytes > _RECORD_BYTES:
                    break
            joined += part
        return self.send(joined)

    def send_file(self, file: File, position: int, size: int) -> int:
        raise AssertionError("files are read before they are encrypted")

    def cold_send(self, file: File, position: int, size: int) -> ColdSend:
        raise AssertionError("files are read before they are encrypted")

    # The rest

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self._watcher, self._is_reading = watcher, reading
        self._inner.watch(watcher, reading=reading, writing=writing)
        if reading and self._has_more:
            self._wake_later()

    def close(self) -> None:
        """Says so to the other side, if it takes that at once."""
        self._watcher, self._is_reading = None, False
        if self._unsent is None:
            with suppress(OSError, ValueError):
                self._tls.unwrap()
            self._tell_alert()
        self._inner.close()

    def _tell_alert(self) -> None:
        """Sends what OpenSSL has to say by itself, if it goes at once."""
        if self._unsent is None and self._outgoing.pending:
            with suppress(OSError):
                self._inner.send(self._outgoing.read())


def explained(problem: ssl.SSLError) -> str:
    """One sentence about what went wrong, for a log."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"the certificate of the other side is not accepted: {problem.verify_message.rstrip('.')}"
    reason = problem.reason or str(problem)
    return _EXPLANATIONS.get(reason) or f"TLS failed: {reason.lower().replace('_', ' ')}"


_EXPLANATIONS: Final = {
    "WRONG_VERSION_NUMBER": "the other side does not speak TLS (or another protocol is on this port)",
    "HTTP_REQUEST": "the other side speaks HTTP, not TLS",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the other side has shown no certificate, and ssl.client.auth requires one",
    "NO_SHARED_CIPHER": "no cipher suite is known to both sides (ssl.cipher.suites)",
    "UNSUPPORTED_PROTOCOL": "no TLS version is enabled on both sides (ssl.enabled.protocols)",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no TLS version is enabled on both sides (ssl.enabled.protocols)",
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust who signed our certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the other side requires a certificate of ours (ssl.keystore.location)",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired, says the other side",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the other side does not accept our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the other side does not accept our certificate",
}
