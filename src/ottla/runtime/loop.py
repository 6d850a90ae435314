"""The loop of a node: descriptors that are ready, timers that are due, and what other threads bring.

Theory of operation. A round waits until a descriptor is ready or a timer is due, calls the callbacks of what is ready,
then those of timers, then those that were to be called soon, in the order in which they came. What a callback wants to
be called soon comes in the next round, so that nothing keeps descriptors waiting. A callback that raises costs itself:
`on_exception` is called. Other threads leave calls, and wake the loop through a descriptor.

asyncio's loops can do all of this. They are not used because of what comes with them: importing asyncio takes as long
as a quarter of a node's start, and each of its callbacks is an object with a context that nobody here needs. A program
that is given a `Loop` also works on one of asyncio's.
"""

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from heapq import heapify, heappop, heappush
from selectors import EVENT_READ, EVENT_WRITE, SelectorKey
from time import monotonic
from typing import Any, Final, Protocol

from ottla.runtime.selector import SPIN_US, EagerSelector

_MANY_CANCELLED: Final = 100
_WAKING: Final = b"\0"
_MANY: Final = 4096


class TimedCall(Protocol):
    def cancel(self) -> None: ...
    def when(self) -> float: ...


class Loop(Protocol):
    """What timers, workers and the network ask of a loop. Only `call_soon_threadsafe` is for other threads."""

    def time(self) -> float: ...
    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> object: ...
    def call_soon_threadsafe(self, callback: Callable[..., object], *arguments: Any) -> object: ...
    def call_later(self, delay: float, callback: Callable[..., object], *arguments: Any) -> TimedCall: ...
    def call_at(self, when: float, callback: Callable[..., object], *arguments: Any) -> TimedCall: ...
    def add_reader(self, fd: Any, callback: Callable[..., object], *arguments: Any) -> None: ...
    def remove_reader(self, fd: Any) -> bool: ...
    def add_writer(self, fd: Any, callback: Callable[..., object], *arguments: Any) -> None: ...
    def remove_writer(self, fd: Any) -> bool: ...
    def call_exception_handler(self, context: dict[str, Any]) -> None: ...


class LoopTimes(Protocol):
    """How busy a loop is: seconds in which it has worked, and its longest round without looking for more to do."""

    busy_s: float
    longest_s: float
    rounds: int


class _TimedCall:
    __slots__ = ("_loop", "_when_s", "arguments", "callback")

    def __init__(
        self, loop: "NodeLoop", when_s: float, callback: Callable[..., object], arguments: tuple[Any, ...]
    ) -> None:
        self._loop = loop
        self._when_s = when_s
        self.callback: Callable[..., object] | None = callback
        self.arguments = arguments

    def when(self) -> float:
        return self._when_s

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback, self.arguments = None, ()
            self._loop.on_cancelled()


class NodeLoop:
    """See the module. `spin_us` is how long it looks for more to do before it sleeps (`ottla.spin.max.us`)."""

    def __init__(self, spin_us: int = SPIN_US) -> None:
        self.time = monotonic
        self.on_exception: Callable[[str, BaseException | None], None] = _raise
        self.busy_s = self.longest_s = 0.0
        self.rounds = 0
        self._selector = EagerSelector(spin_us)
        self._soon: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._timed: list[tuple[float, int, _TimedCall]] = []
        self._timed_count = 0
        self._cancelled_count = 0
        self._is_running = False
        self._is_closed = False
        self._wakened, self._waker = socket.socketpair()
        self._wakened.setblocking(False)
        self._waker.setblocking(False)
        self.add_reader(self._wakened.fileno(), self._drain_waker)

    # What is to be called

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._soon.append((callback, arguments))

    def call_soon_threadsafe(self, callback: Callable[..., object], *arguments: Any) -> None:
        """From any thread. Raises `RuntimeError` when the loop is closed."""
        if self._is_closed:
            raise RuntimeError("the loop is closed")
        self._soon.append((callback, arguments))
        with suppress(OSError):  # It is full of wakings, or has been closed this moment.
            self._waker.send(_WAKING)

    def call_later(self, delay: float, callback: Callable[..., object], *arguments: Any) -> _TimedCall:
        return self.call_at(monotonic() + delay, callback, *arguments)

    def call_at(self, when: float, callback: Callable[..., object], *arguments: Any) -> _TimedCall:
        call = _TimedCall(self, when, callback, arguments)
        self._timed_count += 1
        heappush(self._timed, (when, self._timed_count, call))
        return call

    def on_cancelled(self) -> None:
        """Cancelled calls stay where they are until they are due, or until most of what is there is cancelled."""
        self._cancelled_count += 1
        if self._cancelled_count > _MANY_CANCELLED and self._cancelled_count * 2 > len(self._timed):
            self._timed = [entry for entry in self._timed if entry[2].callback is not None]
            heapify(self._timed)
            self._cancelled_count = 0

    # Descriptors

    def add_reader(self, fd: Any, callback: Callable[..., object], *arguments: Any) -> None:
        self._change(fd, EVENT_READ, (callback, arguments))

    def add_writer(self, fd: Any, callback: Callable[..., object], *arguments: Any) -> None:
        self._change(fd, EVENT_WRITE, (callback, arguments))

    def remove_reader(self, fd: Any) -> bool:
        return self._change(fd, EVENT_READ, None)

    def remove_writer(self, fd: Any) -> bool:
        return self._change(fd, EVENT_WRITE, None)

    def _change(self, fd: Any, event: int, call: tuple[Callable[..., object], tuple[Any, ...]] | None) -> bool:
        key: SelectorKey | None = self._selector.get_map().get(fd)
        calls = {} if key is None else {**key.data}
        was_there = calls.pop(event, None) is not None
        if call is not None:
            calls[event] = call
        events = sum(calls)
        if key is None:
            if events:
                self._selector.register(fd, events, calls)
        elif events:
            self._selector.modify(fd, events, calls)
        else:
            self._selector.unregister(fd)
        return was_there

    def _drain_waker(self) -> None:
        with suppress(BlockingIOError):
            self._wakened.recv(_MANY)

    # Rounds

    def run(self) -> None:
        """Until `stop` is called. May be called again then."""
        assert not self._is_running, "a loop runs once at a time"
        self._is_running = True
        try:
            while self._is_running:
                self._round()
        finally:
            self._is_running = False

    def stop(self) -> None:
        """After this round."""
        self._is_running = False

    def _round(self) -> None:
        ready = self._selector.select(self._time_to_wait_s())
        began_s = monotonic()
        for key, events in ready:
            for event, (callback, arguments) in key.data.copy().items():
                if event & events:
                    self._call(callback, arguments)
        timed = self._timed
        if timed and timed[0][0] <= (now_s := monotonic()):
            while timed and timed[0][0] <= now_s:
                call = heappop(timed)[2]
                if call.callback is None:
                    self._cancelled_count -= 1
                else:
                    callback, call.callback = call.callback, None
                    self._call(callback, call.arguments)
                timed = self._timed
        soon = self._soon
        for _ in range(len(soon)):
            self._call(*soon.popleft())
        took_s = monotonic() - began_s
        self.busy_s += took_s
        self.rounds += 1
        if took_s > self.longest_s:
            self.longest_s = took_s

    def _time_to_wait_s(self) -> float | None:
        if self._soon:
            return 0
        return max(self._timed[0][0] - monotonic(), 0) if self._timed else None

    def _call(self, callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        try:
            callback(*arguments)
        except Exception as problem:
            self.on_exception("a callback of the loop failed", problem)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.on_exception(context["message"], context.get("exception"))

    def close(self) -> None:
        self._is_closed = True
        self._selector.close()
        self._wakened.close()
        self._waker.close()


def _raise(what: str, problem: BaseException | None) -> None:
    raise problem or AssertionError(what)
