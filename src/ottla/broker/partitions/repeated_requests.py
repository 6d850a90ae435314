"""What stays the same in requests that come again and again, by who sends them.

`data/repeated_produce.py`, `data/repeated_fetch.py` and `groups/repeated_commit.py` answer such a request without
decoding it: without asking whether its client may use the topic, and without counting it. So what is known was learned
from a request of the same principal from the same host (rights may be by host), to which no limit applies, and is
forgotten when rights, limits or settings change (`forget`).
"""

from typing import Any
from weakref import WeakValueDictionary


class KnownRequests(dict[Any, Any]):
    """What is known by the connections of one principal from one host, or by one of them; gone with the last."""

    __slots__ = ("__weakref__",)


class RepeatedRequests:
    """See the module."""

    def __init__(self) -> None:
        self._by_sender: WeakValueDictionary[tuple[object, ...], KnownRequests] = WeakValueDictionary()

    def of(self, principal: str, host: str, connection_id: int | None = None) -> KnownRequests:
        sender = principal, host, connection_id
        known = self._by_sender.get(sender)
        if known is None:
            known = self._by_sender[sender] = KnownRequests()
        return known

    def forget(self) -> None:
        """What was learned may be wrong by now."""
        for known in list(self._by_sender.values()):
            known.clear()
