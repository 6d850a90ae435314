"""Who waits for an answer that a later decision brings: a request that was parked."""

from collections.abc import Callable
from typing import Any

from ottla.runtime.attribution import current, work_for
from ottla.runtime.request import Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message


class ParkedRequest:
    """Answers a request with a reply, or with what `refuse` makes of an error.

    Once: a write that fails is answered to who asked for it, and to all whom it would have answered, who may be the
    same. What goes wrong with it is the parked request's, not that of the request whose decision answers it.
    """

    __slots__ = ("_refuse", "_request", "_respond")

    def __init__(self, respond: Respond, refuse: Callable[[ErrorCode], Message]) -> None:
        self._respond: Respond | None = respond
        self._refuse = refuse
        self._request = current()

    def then(self, reply: Any, /) -> None:
        respond, self._respond = self._respond, None
        if respond is not None:
            work_for(self._request, respond, reply)

    def failed(self, error: ErrorCode, /) -> None:
        work_for(self._request, self._refuse_now, error)

    def _refuse_now(self, error: ErrorCode) -> None:
        self.then(self._refuse(error))


class Gathered:
    """Calls `done` with all parts, in order, when the last of them is there."""

    __slots__ = ("_done", "_missing", "_parts")

    def __init__(self, count: int, done: Callable[[list[Any]], None]) -> None:
        self._parts: list[Any] = [None] * count
        self._missing = count
        self._done = done
        if not count:
            done([])

    def put(self, index: int, part: Any) -> None:
        self._parts[index] = part
        self._missing -= 1
        if not self._missing:
            self._done(self._parts)
