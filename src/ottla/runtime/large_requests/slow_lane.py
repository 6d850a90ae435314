"""Requests that take long, worked off a little at every turn of the loop, so that other clients do not notice.

Theory of operation. The work for a request of very many entries is a generator that yields between two of them. The
lane takes it up for a few milliseconds a turn, a few requests by turns, so that neither a hostile request nor a hundred
of them keep others waiting, and only a few are in memory as objects. Between two steps anything may happen: a partition
may go, a setting may change. So each entry is looked up when it is its turn.

Work may yield a `Wait`: it continues when that is over. Work for a client that has gone is dropped where it is.

The garbage collector looks through everything now and then, which takes a fifth of a second where a large request is
half-way. It does not while there is one: such a request goes by its reference count. Young objects are looked through
as ever.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ottla.base.ports import Network
from ottla.runtime.attribution import Attributed, work_for

_STEP_S = 0.005
_SIDE_BY_SIDE = 4
_NEVER = 1 << 30
_FREED_AT_ONCE = 1000


class Wait(Protocol):
    """Something that a step has to wait for."""

    def when_over(self, callback: Callable[[], None]) -> None:
        """Calls back once, when it is over. It is not over when it is yielded."""


Steps = Iterator[Wait | None]
"""Yields between steps."""


def and_then(steps: Steps, callback: Callable[[], None]) -> Steps:
    """Calls back when the last step is done, and not if one fails."""
    yield from steps
    callback()


def let_go(*lists: list[Any]) -> Steps:
    """Empties them. To free so many objects at once takes as long as it took to encode them."""
    for one in lists:
        while one:
            yield None
            del one[-_FREED_AT_ONCE:]


class _Work:
    """`request` fails with what goes wrong; None where the work itself sees to that."""

    __slots__ = ("dropped", "is_wanted", "request", "steps")

    def __init__(
        self,
        request: Attributed | None,
        steps: Steps,
        is_wanted: Callable[[], bool],
        dropped: Callable[[], None] | None,
    ) -> None:
        self.request = request
        self.steps = steps
        self.is_wanted = is_wanted
        self.dropped = dropped


class SlowLane:
    """One for a server. Everything is called on the loop's thread."""

    def __init__(self, network: Network, now_s: Callable[[], float]) -> None:
        self._network = network
        self._now_s = now_s
        self._under_way: deque[_Work] = deque()
        self._waiting: deque[_Work] = deque()
        self._is_running = False
        self._thresholds: tuple[int, int, int] | None = None

    def add(
        self,
        request: Attributed | None,
        steps: Steps,
        is_wanted: Callable[[], bool],
        dropped: Callable[[], None] | None = None,
    ) -> None:
        """Goes through `steps` while it `is_wanted`, and calls `dropped` if it is not any more.

        The first step is made at the end of this turn.
        """
        self._take(_Work(request, steps, is_wanted, dropped))

    def _take(self, work: _Work) -> None:
        if self._thresholds is None:
            self._thresholds = young, middle, _ = gc.get_threshold()
            gc.set_threshold(young, middle, _NEVER)
        (self._under_way if len(self._under_way) < _SIDE_BY_SIDE else self._waiting).append(work)
        self._continue_later()

    def _continue_later(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._network.at_end_of_turn(self._take_turn)

    def _take_turn(self) -> None:
        """A step of the request whose turn it is; the next one's comes at the loop's next turn."""
        self._is_running = False
        if not self._under_way:
            return
        work = self._under_way.popleft()
        try:
            if work.is_wanted():
                work_for(work.request, self._step, work)
            elif work.dropped is not None:
                work.dropped()
        finally:
            while self._waiting and len(self._under_way) < _SIDE_BY_SIDE:
                self._under_way.append(self._waiting.popleft())
            if self._under_way:
                self._continue_later()
            else:
                self._end()

    def _end(self) -> None:
        """Nothing is left to do, for now."""
        thresholds, self._thresholds = self._thresholds, None
        if thresholds is not None:
            gc.set_threshold(*thresholds)

    def _step(self, work: _Work) -> None:
        now_s, ends_s = self._now_s, self._now_s() + _STEP_S
        for wait in work.steps:
            if wait is not None:
                wait.when_over(lambda: self._take(work))
                return
            if now_s() > ends_s:
                self._under_way.append(work)
                return
