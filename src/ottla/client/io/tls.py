"""Connecting to brokers by TLS: that of `security.tls`, and what failed in words for a client's user."""

from collections.abc import Callable
from functools import partial

from ottla.base.ports import Dialer, Timers, Transport
from ottla.client.io.tls_failures import handshake_failure, later_failure
from ottla.client.settings import ClientSettings
from ottla.security.tls.contexts import allowed_suites, client_context
from ottla.security.tls.dialling import TlsDialer, TlsDialling
from ottla.security.tls.transport import SCRATCH_BYTES, TlsTransport


class TlsToBrokers:
    """Keys and certificates are read once, when the client is made. What is received goes through a buffer of the
    client's own: others of the process may be at work at the same time. `dialer` makes the connections below.
    """

    def __init__(self, dialer: Dialer, timers: Timers, settings: ClientSettings) -> None:
        context, suites = client_context(settings), allowed_suites(settings)
        self._dialer = TlsDialer(
            dialer,
            lambda: context,
            lambda callback: _soon(timers, callback),
            lambda: suites,
            scratch=memoryview(bytearray(SCRATCH_BYTES)),
        )

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
        where = f"{host}:{port}"

        def on_secured(transport: Transport) -> None:
            assert isinstance(transport, TlsTransport)
            transport.failure = partial(later_failure, where=where)
            then(transport)

        return self._dialer.dial(
            host,
            port,
            receive_buffer_bytes=receive_buffer_bytes,
            send_buffer_bytes=send_buffer_bytes,
            then=on_secured,
            failed=lambda problem: failed(handshake_failure(problem, where)),
        )


def _soon(timers: Timers, callback: Callable[[], None]) -> None:
    timers.after(0, callback)
