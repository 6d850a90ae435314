"""What is encrypted goes into the trace before it is: afterwards it is other bytes each time."""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.security.tls.transport import TlsTransport
from ottla.testing.sim.canaries.switched import switched
from ottla.testing.sim.network.connection_end import ConnectionEnd


@contextmanager
def plaintext_is_traced() -> Iterator[None]:
    """Within it."""
    encrypt = TlsTransport._encrypt

    def noted(transport: TlsTransport, data: memoryview) -> int:
        if isinstance(transport._inner, ConnectionEnd):
            transport._inner.note_plaintext(data)
        return encrypt(transport, data)

    with switched(TlsTransport, "_encrypt", noted):
        yield
