"""The session over a connection: who speaks, how much may be under way, and since when nothing has moved.

A client may send many requests before it reads a reply, and may never read one. What that can cost is bounded: by the
requests that are not answered yet, and by the bytes of the replies that it has not taken, counted when a reply is made
and not when its turn comes. At either bound no more of its requests are looked at until half of it is gone. Files that
are on their way count nothing, since they are not in memory.
"""

from ottla.runtime.request import ClientConnection

MAX_UNANSWERED = 256
MAX_UNSENT_BYTES = 4 << 20


class Session:
    """One client's. `active_s` is when it last sent something or took something, by the loop's clock."""

    __slots__ = ("active_s", "client", "unsent_bytes")

    def __init__(self, client: ClientConnection, now_s: float) -> None:
        self.client = client
        self.active_s = now_s
        self.unsent_bytes = 0

    def is_full(self, unanswered: int) -> bool:
        """Whether the client has to wait before its next request is looked at."""
        return unanswered >= MAX_UNANSWERED or self.unsent_bytes > MAX_UNSENT_BYTES

    def has_room(self, unanswered: int) -> bool:
        """Whether one that had to wait may go on."""
        return (
            not self.client.is_paused
            and unanswered < MAX_UNANSWERED // 2
            and self.unsent_bytes <= MAX_UNSENT_BYTES // 2
        )
