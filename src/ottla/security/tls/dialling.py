"""Connecting by TLS, above any other way to connect. Nothing here waits."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.base.ports import Dialer, Dialling, Transport

if TYPE_CHECKING:
    import ssl

    from ottla.security.tls.handshake import Handshake
    from ottla.security.tls.transport import Later


class TlsDialer:
    """Connects with `context()`, which is asked every time: certificates and settings change while a program runs.

    `suites()` are the cipher suites that may be used, as they are then; None is any. `heard` is called after every
    handshake that failed: to whom, and why. `scratch` is as for `Handshake`.
    """

    def __init__(
        self,
        dialer: Dialer,
        context: "Callable[[], ssl.SSLContext]",
        later: "Later",
        suites: "Callable[[], frozenset[str] | None]",
        heard: Callable[[str, OSError], None] | None = None,
        scratch: memoryview | None = None,
    ) -> None:
        self._dialer = dialer
        self._context = context
        self._later = later
        self._suites = suites
        self._heard = heard
        self._scratch = scratch

    def dial(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> "TlsDialling":
        def on_refused(problem: OSError) -> None:
            if self._heard is not None:
                self._heard(f"{host}:{port}", problem)
            failed(problem)

        def shake_hands(transport: Transport) -> "Handshake":
            from ottla.security.tls.handshake import Handshake

            return Handshake(
                transport,
                self._context(),
                later=self._later,
                then=then,
                failed=on_refused,
                host=host.rstrip(".") or None,
                suites=self._suites(),
                scratch=self._scratch,
            )

        dialling = TlsDialling(shake_hands)
        dialling.inner = self._dialer.dial(
            host,
            port,
            receive_buffer_bytes=receive_buffer_bytes,
            send_buffer_bytes=send_buffer_bytes,
            then=dialling.on_connected,
            failed=failed,
        )
        return dialling


class TlsDialling:
    """First the connection, then the handshake over it."""

    def __init__(self, shake_hands: "Callable[[Transport], Handshake]") -> None:
        self.inner: Dialling | None = None
        self._shake_hands = shake_hands
        self._handshake: Handshake | None = None

    def on_connected(self, transport: Transport) -> None:
        self.inner = None
        self._handshake = self._shake_hands(transport)
        self._handshake.start()

    def cancel(self) -> None:
        if self.inner is not None:
            self.inner.cancel()
            self.inner = None
        if self._handshake is not None:
            self._handshake.cancel()
