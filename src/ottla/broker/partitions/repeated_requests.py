"""What stays the same in requests that come again and again, by who sends them.

`data/repeated_produce.py`, `data/repeated_fetch.py` and `groups/repeated_commit.py` answer such a request without
decoding it: without asking whether its client may use the topic, and without counting it. So what is known was learned
from a request of the same principal from the same host (rights may be by host), to which no limit applies, and is
forgotten when rights, limits or settings change (`forget`). A request that was allowed before that and is answered
after it teaches nothing: `age` tells.
"""

from struct import Struct
from typing import Any, Final
from weakref import WeakValueDictionary

from ottla.runtime.request import ClientConnection

MOST_LESSONS: Final = 64
MOST_KNOWN: Final = 256


class KnownRequests(dict[Any, Any]):
    """What is known by the connections of one principal from one host, or by one of them; gone with the last."""

    __slots__ = ("__weakref__",)


class RepeatedRequests:
    """See the module. `age` is how often all was forgotten."""

    def __init__(self) -> None:
        self.age = 0
        self._by_sender: WeakValueDictionary[tuple[object, ...], KnownRequests] = WeakValueDictionary()

    def of(self, principal: str, host: str, connection_id: int | None = None) -> KnownRequests:
        sender = principal, host, connection_id
        known = self._by_sender.get(sender)
        if known is None:
            known = self._by_sender[sender] = KnownRequests()
        return known

    def forget(self) -> None:
        """What was learned may be wrong by now, and what is being answered was allowed before."""
        self.age += 1
        for known in list(self._by_sender.values()):
            known.clear()


class LearnedNumbers:
    """What one connection has learned of requests of one API that come again with other numbers in them.

    By the size of a frame it is known where the numbers are (`wire.around_numbers`), and by what is around them which
    request it is. A frame of another size is one that was not learned from, or that its client encodes in its own way.
    """

    __slots__ = ("_known", "_layouts", "_lessons")

    def __init__(self, repeated_requests: RepeatedRequests, client: ClientConnection) -> None:
        self._known = repeated_requests.of(client.principal, client.client_host, client.connection_id)
        self._layouts: dict[int, Struct] = {}
        self._lessons = 0

    def _begin_lesson(self) -> bool:
        """False for a client that has sent so many requests, each unlike all before it: it is not learned from."""
        if self._lessons >= MOST_LESSONS:
            return False
        self._lessons += 1
        return True

    def _remember(self, frame_size: int, layout: Struct, around: tuple[bytes, ...], known: Any) -> None:
        if len(self._known) >= MOST_KNOWN or len(self._layouts) >= MOST_KNOWN:
            self._known.clear()
            self._layouts.clear()
        self._layouts[frame_size] = layout
        self._known[around] = known
