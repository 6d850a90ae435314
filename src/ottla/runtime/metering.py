"""What a server asks of the one who counts what clients use, and has them wait (KIP-13, KIP-124, KIP-219).

Theory of operation. A request is charged when its reply is given. If its client is then above a limit, the reply leaves
at once and says for how long the client is to keep quiet (`throttle_time_ms`), and its connection is muted for that
time: what it sends meanwhile is not looked at. The time of sending replies is counted when it is over, as in Apache
Kafka: it can only make the next request wait. A server without limits has no `Metering`, and does nothing of this.
"""

from typing import Protocol

from ottla.runtime.request import ClientConnection, RequestContext
from ottla.wire.message import Message


class Metering(Protocol):
    """Called for every reply while there are limits."""

    def charge(self, context: RequestContext, reply: Message | None) -> int:
        """How long the client of this request is to be muted, in milliseconds. `reply` is None for acks=0."""

    def on_sent(self, client: ClientConnection, took_s: float) -> None:
        """The node's thread has sent replies to the client for so long."""
