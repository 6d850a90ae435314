"""Which request the loop is working for, so that a fault is answered to its client and to no other.

Theory of operation. A request is handled in one call, and often continues later: when a partition has grown, when a
disk thread is done, when its time is over. Its connection sets `WORK` while the handler runs; the part that parks work
for later notes `current()`, and comes back with `work_for`. An exception that comes out there is the request's: `fail`
answers it. Without a request an exception propagates to the caller, in the end to the loop.

All of it is on the loop's thread. The threads of disk workers have no request.
"""

from collections.abc import Callable
from typing import Any, Protocol


class Attributed(Protocol):
    """Something that the loop can be working for."""

    def fail(self, problem: Exception) -> None:
        """An exception came out of work for it."""


class _Work:
    """What the loop is doing now. An object, because setting an attribute is what it costs every request."""

    __slots__ = ("about", "request")

    def __init__(self) -> None:
        self.request: Attributed | None = None
        self.about: object = None
        """What the node is handling, in words when it is asked for them (`str`). A fault is reported with them."""


WORK = _Work()


def current() -> Attributed | None:
    """The request that is being worked for, if any."""
    return WORK.request


def work_for(request: Attributed | None, callback: Callable[..., object], *arguments: Any) -> None:
    """Calls back for `request`, which is failed if that raises; without one, the exception propagates."""
    before, WORK.request = WORK.request, request
    try:
        callback(*arguments)
    except Exception as problem:
        if request is None:
            raise
        request.fail(problem)
    finally:
        WORK.request = before


def attributed(callback: Callable[..., None]) -> Callable[..., None]:
    """`callback`, which will be called later for the request that is being worked for now."""
    request = WORK.request
    if request is None:
        return callback
    return lambda *arguments: work_for(request, callback, *arguments)
