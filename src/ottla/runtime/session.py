"""The session over a connection: who speaks, how much may be under way, and since when nothing has moved.

A client may send many requests before it reads a reply, and may never read one. What that can cost is bounded: by the
requests that are not answered yet, and by the bytes of the replies that it has not taken, counted when a reply is made
and not when its turn comes. At either bound no more of its requests are looked at until half of it is gone. Files that
are on their way count nothing, since they are not in memory.

A client that used more than its quotas allow is muted: none of its requests are looked at until its time is over.
"""

from collections.abc import Callable
from typing import Protocol

from ottla.base.ports import Timer, Timers
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.wire.message import Message

MAX_UNANSWERED = 256
MAX_UNSENT_BYTES = 4 << 20


class Session:
    """One client's. `active_s` is when it last sent something or took something, by the loop's clock. `unmute`
    is the timer that ends its being muted; None if it is not.
    """

    __slots__ = ("_muted_until_s", "active_s", "client", "unmute", "unsent_bytes")

    def __init__(self, client: ClientConnection, now_s: float) -> None:
        self.client = client
        self.active_s = now_s
        self.unsent_bytes = 0
        self._muted_until_s = 0.0
        self.unmute: Timer | None = None

    def has_room(self, unanswered: int) -> bool:
        """Whether one that had to wait may continue."""
        return (
            not self.client.is_paused
            and self.unmute is None
            and unanswered < MAX_UNANSWERED // 2
            and self.unsent_bytes <= MAX_UNSENT_BYTES // 2
        )

    def mute(self, delay_s: float, timers: Timers, when_over: Callable[[], None]) -> None:
        """Until so much later, or until a moment that was set before and is later still."""
        until_s = timers.now_s() + delay_s
        if until_s <= self._muted_until_s:
            return

        def unmute() -> None:
            self.unmute = None
            when_over()

        self.end_muting()
        self._muted_until_s = until_s
        self.unmute = timers.after(delay_s, unmute)

    def end_muting(self) -> None:
        """Nothing happens any more when the time is over."""
        if self.unmute is not None:
            self.unmute.cancel()
            self.unmute = None


# What a server asks of the one who counts what clients use, and has them wait (KIP-13, KIP-124, KIP-219).
#
# Theory of operation. A request is charged when its reply is given. If its client is then above a limit, the reply
# leaves at once and says for how long the client is to keep quiet (`throttle_time_ms`), and its connection is muted for
# that time: what it sends meanwhile is not looked at. The time of sending replies is counted when it is over, as in
# Apache Kafka: it can only make the next request wait. A server without limits has no `Metering`, and does nothing of
# this.


class Metering(Protocol):
    """Called for every reply while there are limits."""

    def charge(self, context: RequestContext, reply: Message | None) -> int:
        """How long the client of this request is to be muted, in milliseconds. `reply` is None for acks=0."""

    def on_sent(self, client: ClientConnection, took_s: float) -> None:
        """The node's thread has sent replies to the client for so long."""
