"""Requests that wait: for records to read, for replicas to have what was written, for the disk.

An operation waits at one or more partitions and until a moment. When something happens at a partition (an append, a
higher high watermark, the end of its leadership), each operation that waits there looks whether it is done; nobody
looks otherwise. An operation completes exactly once: when it is done, when its time is over, or when it is released
because a partition of its is gone, or its client's right to what it waits for.

An exception in an operation is its request's: it is answered as any other that failed, and the producer whose append
woke it does not notice.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from ottla.base.ports import Timer, Timers
from ottla.runtime.attribution import WORK, Attributed, current
from ottla.runtime.request import ClientConnection

# Until when operations wait, with one timer for all that wait equally long.
#
# Consumers mostly ask to wait as long as each other (`fetch.max.wait.ms`), so operations of one wait end in the order
# in which they began it: a row. The timer of a row is set for the first in it. If that one has gone when the timer
# fires, it is set again for the one that is first now. So an operation that waits and is done in time costs no timer of
# its own.

WaitingT = TypeVar("WaitingT")

# Timers may fire a little early, and deadlines are sums of floats.
_EARLY_S = 0.0005


class Row(Generic[WaitingT]):
    """All that wait for one time. `expire` is called with each whose time is over; it must take it out."""

    __slots__ = ("_deadlines_s", "_expire", "_timer", "_timers", "_wait_s")

    def __init__(self, timers: Timers, wait_s: float, expire: Callable[[WaitingT], None]) -> None:
        self._timers = timers
        self._wait_s = wait_s
        self._expire = expire
        self._deadlines_s: dict[WaitingT, float] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._deadlines_s)

    def add(self, waiting: WaitingT) -> None:
        self._deadlines_s[waiting] = self._timers.now_s() + self._wait_s
        if self._timer is None:
            self._timer = self._timers.after(self._wait_s, self._on_time)

    def remove(self, waiting: WaitingT) -> None:
        del self._deadlines_s[waiting]
        if not self._deadlines_s and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        now_s = self._timers.now_s()
        due = []
        for waiting, deadline_s in self._deadlines_s.items():
            if deadline_s > now_s + _EARLY_S:
                self._timer = self._timers.after(deadline_s - now_s, self._on_time)
                break
            due.append(waiting)
        for waiting in due:
            if waiting in self._deadlines_s:  # What has expired before may have ended the wait of others.
                self._expire(waiting)


class Deadlines(Generic[WaitingT]):
    def __init__(self, timers: Timers, expire: Callable[[WaitingT], None]) -> None:
        self._timers = timers
        self._expire = expire
        self._rows: dict[int, Row[WaitingT]] = {}

    def add(self, waiting: WaitingT, wait_ms: int) -> None:
        row = self._rows.get(wait_ms)
        if row is None:
            row = self._rows[wait_ms] = Row(self._timers, wait_ms / 1000, self._expire)
        row.add(waiting)

    def remove(self, waiting: WaitingT, wait_ms: int) -> None:
        """The wait is over, for whatever reason."""
        row = self._rows[wait_ms]
        row.remove(waiting)
        if not row:
            del self._rows[wait_ms]


_log = logging.getLogger(__name__)
MAX_WAIT_MS = 24 * 60 * 60 * 1000


MayRead: TypeAlias = Callable[[ClientConnection, str | None], bool]
"""Whether a client may read a topic; without one, whether it may follow all of them as a replica."""


class Place(Protocol):
    """Where operations wait. None: nobody does, which is what most partitions are most of the time."""

    waiting: "dict[Operation, None] | None"


class Operation(ABC):
    """Something that waits. How long, at which places, and the request that it waits for are the purgatory's."""

    __slots__ = ("client", "places", "request", "wait_ms")

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        self.places: Sequence[Place] = ()
        self.request: Attributed | None = None
        self.wait_ms = 0

    @abstractmethod
    def is_done(self, place: Place) -> bool:
        """Something happened at `place`. Whether there is now nothing left to wait for."""

    def loses_rights(self, may_read: MayRead) -> bool:
        """Rules of access have changed. Whether the client may no longer have what it waits for; its reply says so."""
        return False

    @abstractmethod
    def complete(self) -> None:
        """Gives the reply out, whatever the reason to do it now."""


class Purgatory:
    def __init__(self, timers: Timers) -> None:
        self._operations: dict[Operation, None] = {}
        self._woken: dict[Place, None] = {}
        self._is_waking = False
        self._deadlines: Deadlines[Operation] = Deadlines(timers, self._complete)

    def __len__(self) -> int:
        return len(self._operations)

    def park(self, operation: Operation, places: Sequence[Place], wait_ms: int) -> None:
        """Lets `operation` wait at `places`, for at most `wait_ms`."""
        operation.places = places
        operation.request = current()
        for place in places:
            if place.waiting is None:
                place.waiting = {}
            place.waiting[operation] = None
        self._operations[operation] = None
        operation.wait_ms = min(wait_ms, MAX_WAIT_MS)
        self._deadlines.add(operation, operation.wait_ms)

    def wake(self, place: Place) -> None:
        """Something happened at `place`.

        What completes may append, and so wake a place itself: those who wait there look when all others have. Else
        the second would be completed within the first, and hundreds of them need a deeper stack than there is.
        """
        if not place.waiting:
            return
        self._woken[place] = None
        if self._is_waking:
            return
        self._is_waking = True
        try:
            while self._woken:
                place = next(iter(self._woken))
                del self._woken[place]
                for operation in list(place.waiting or ()):
                    if operation in self._operations and self._is_done(operation, place):
                        self._complete(operation)
        finally:
            self._is_waking = False

    def release(self, place: Place) -> None:
        """All who wait at `place` are to be answered now."""
        if place.waiting:
            for operation in list(place.waiting):
                self._complete(operation)

    def drop_closed(self) -> None:
        """Forgets the operations of clients that have gone: their replies would reach nobody."""
        for operation in [operation for operation in self._operations if not operation.client.is_open]:
            self._complete(operation)

    def release_without_rights(self, may_read: MayRead) -> None:
        """Answers those who may no longer have what they wait for, which could be written at any later time."""
        for operation in [operation for operation in self._operations if operation.loses_rights(may_read)]:
            self._complete(operation)

    def release_all(self) -> None:
        for operation in list(self._operations):
            self._complete(operation)

    def _is_done(self, operation: Operation, place: Place) -> bool:
        before, WORK.request = WORK.request, operation.request
        try:
            return operation.is_done(place)
        except Exception as problem:
            self._forget(operation)
            _fail(operation, problem)
            return False
        finally:
            WORK.request = before

    def _complete(self, operation: Operation) -> None:
        if operation not in self._operations:
            return
        self._forget(operation)
        before, WORK.request = WORK.request, operation.request
        try:
            operation.complete()
        except Exception as problem:
            _fail(operation, problem)
        finally:
            WORK.request = before

    def _forget(self, operation: Operation) -> None:
        del self._operations[operation]
        self._leave(operation, operation.places)
        self._deadlines.remove(operation, operation.wait_ms)

    @staticmethod
    def _leave(operation: Operation, places: Iterable[Place]) -> None:
        for place in places:
            waiting = place.waiting
            if waiting is not None:
                waiting.pop(operation, None)
                if not waiting:
                    place.waiting = None


def _fail(operation: Operation, problem: Exception) -> None:
    if operation.request is not None:
        operation.request.fail(problem)
    else:
        _log.error("%s failed; no client waits for it", type(operation).__name__, exc_info=problem)
