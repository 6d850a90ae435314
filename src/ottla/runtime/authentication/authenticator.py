"""What one listener asks of its clients before it listens to them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.base.ports import Transport
from ottla.runtime.authentication.gated_connection import GatedConnection
from ottla.runtime.request import ClientConnection
from ottla.security.sasl.mechanism import ServerMechanism

if TYPE_CHECKING:
    from ottla.runtime.server import Server

NewMechanism = Callable[[], ServerMechanism]


class Authenticator:
    """`mechanisms` are those that are enabled, in the order in which clients get them.

    `max_reauth_ms` is `connections.max.reauth.ms` by mechanism: 0 is never.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, NewMechanism],
        *,
        max_receive_bytes: int,
        failure_delay_ms: int,
        max_reauth_ms: Mapping[str, int],
        now_ms: Callable[[], int],
    ) -> None:
        self.mechanisms = mechanisms
        self.max_receive_bytes = max_receive_bytes
        self.failure_delay_ms = failure_delay_ms
        self.max_reauth_ms = max_reauth_ms
        self.now_ms = now_ms

    def new_connection(self, server: "Server", transport: Transport, client: ClientConnection) -> GatedConnection:
        return GatedConnection(server, transport, client, self)

    def session_ms(self, mechanism: str, expires_ms: int | None) -> int | None:
        """How long a session that begins now may last; None if for ever (KIP-368)."""
        longest_ms = self.max_reauth_ms.get(mechanism, 0)
        lifetimes = [longest_ms] if longest_ms > 0 else []
        if expires_ms is not None:
            lifetimes.append(max(expires_ms - self.now_ms(), 0))
        return min(lifetimes, default=None)
