"""Readiness of sockets, timers, and calls from other threads, in turns.

Theory of operation. A turn waits for what is ready without the lock, and handles it under the lock. Any thread may take
a turn, and two may: then one of them finds nothing left to receive, which watchers must expect. With the lock, any
thread may set timers and watch sockets; it wakes a turn that would sleep too long. What a callback raises is reported
and costs nothing else.
"""

import socket
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector, SelectorKey
from threading import Thread
from time import monotonic
from typing import TypeVar

from ottla.base.ports import Watcher
from ottla.base.tcp_connect import AddressInfo, resolve
from ottla.client.io.locks import ClientLock, Step
from ottla.client.promise import Promise

T = TypeVar("T")
Events = list[tuple[SelectorKey, int]]

MOST_WAIT_S = 3600.0
"""As long as a turn may wait if there is nothing to wait for."""
_FOR_EVER = float("inf")
_MANY_CANCELLED = 64


class LoopTimer:
    """One that was set: it fires once, or again and again, until it is cancelled."""

    __slots__ = ("_on_cancelled", "callback", "interval_s", "is_set")

    def __init__(
        self, callback: Callable[[], None], interval_s: float | None, on_cancelled: Callable[[], None]
    ) -> None:
        self._on_cancelled = on_cancelled
        self.callback = callback
        self.interval_s = interval_s
        self.is_set = True

    def cancel(self) -> None:
        if self.is_set:
            self.is_set = False
            self._on_cancelled()


class EventLoop:
    """The ports `Timers` and `Poller` in one. All methods want `lock`, but `wake`, `call` and those of turns."""

    def __init__(self, report: Callable[[Exception], None]) -> None:
        self.lock = ClientLock()
        self.step = Step()
        self.now_s = monotonic
        self._report = report
        self._selector = DefaultSelector()
        self.look = self._selector.select
        """The first half of a turn: waits so many seconds for what is ready. The loop must not be closed."""
        self._watchers: dict[int, Watcher] = {}
        self._timers: list[tuple[float, int, LoopTimer]] = []
        self._timer_count = 0
        self._cancelled_count = 0
        self._calls: deque[Callable[[], None]] = deque()
        self.sleeps_until_s = 0.0
        """Until when a turn sleeps that has to be woken for a timer before that; 0 if nobody takes turns."""
        self._waker, self._wakened = socket.socketpair()
        self._waker.setblocking(False)
        self._wakened.setblocking(False)
        self._selector.register(self._wakened, EVENT_READ)
        self.is_closed = False

    # --- turns ---

    def turn(self, timeout_s: float) -> None:
        """Waits for at most that time for something to happen, and handles it."""
        if self.is_closed:
            return
        if timeout_s:
            timeout_s = self.time_to_sleep_s(timeout_s)
        self.handle(self.look(timeout_s))

    def time_to_sleep_s(self, timeout_s: float) -> float:
        """Until the next timer is due. The lock is not needed: a timer that is set in between finds a loop that says it
        sleeps for ever, and wakes it.
        """
        self.sleeps_until_s = _FOR_EVER
        now_s = monotonic()
        if self._calls:
            return 0.0
        if next_timer := self._timers[:1]:
            timeout_s = min(timeout_s, max(next_timer[0][0] - now_s, 0.0))
        self.sleeps_until_s = now_s + timeout_s
        return timeout_s

    def handle(self, events: Events) -> None:
        """What `look` has found, and the timers that are due: the second half of a turn."""
        with self.lock:
            self.sleeps_until_s = 0.0
            if not self.is_closed and not self.step.is_torn:
                try:
                    self._handle(events)
                except BaseException as interrupt:
                    self.step.on_raised(interrupt)
                    raise

    def _handle(self, events: Events) -> None:
        for key, mask in events:
            watcher = self._watchers.get(key.fd)
            if watcher is None:
                if key.fileobj is self._wakened:
                    self._drain_waker()
                continue
            if mask & EVENT_READ:
                self._run(watcher.on_readable)
            if mask & EVENT_WRITE and self._watchers.get(key.fd) is watcher:
                self._run(watcher.on_writable)
        for _ in range(len(self._calls)):
            self._run(self._calls.popleft())
        if self._timers and self._timers[0][0] <= (now_s := monotonic()):
            self._fire(now_s)

    def _fire(self, now_s: float) -> None:
        while self._timers and self._timers[0][0] <= now_s:
            timer = heappop(self._timers)[2]
            if not timer.is_set:
                self._cancelled_count -= 1
                continue
            if timer.interval_s is None:
                timer.is_set = False
            else:
                self._arm(timer, timer.interval_s)
            self._run(timer.callback)

    def _run(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as problem:
            self._report(problem)

    def wake(self) -> None:
        """Ends a turn that waits. From any thread."""
        try:
            self._waker.send(b"\0")
        except OSError:
            return  # full: it is awake; or closed

    def call(self, callback: Callable[[], None]) -> None:
        """Has it called in the next turn. From any thread."""
        self._calls.append(callback)
        self.wake()

    def _drain_waker(self) -> None:
        try:
            self._wakened.recv(4096)
        except OSError:
            return

    # --- timers ---

    def after(self, delay_s: float, callback: Callable[[], None]) -> LoopTimer:
        timer = LoopTimer(callback, None, self._on_cancelled)
        self._arm(timer, delay_s)
        return timer

    def every(self, interval_s: float, callback: Callable[[], None], *, first_s: float | None = None) -> LoopTimer:
        timer = LoopTimer(callback, interval_s, self._on_cancelled)
        self._arm(timer, interval_s if first_s is None else first_s)
        return timer

    def _arm(self, timer: LoopTimer, delay_s: float) -> None:
        due_s = monotonic() + max(delay_s, 0.0)
        self._timer_count += 1
        heappush(self._timers, (due_s, self._timer_count, timer))
        if due_s < self.sleeps_until_s:
            self.wake()

    def _on_cancelled(self) -> None:
        """Cancelled timers go when they are the greater part: what they hold must not last until they are due."""
        self._cancelled_count += 1
        if self._cancelled_count > max(_MANY_CANCELLED, len(self._timers) // 2):
            self._timers = [one for one in self._timers if one[2].is_set]
            heapify(self._timers)
            self._cancelled_count = 0

    # --- sockets ---

    def watch(self, fd: int, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        events = (EVENT_READ if reading else 0) | (EVENT_WRITE if writing else 0)
        is_known = fd in self._watchers
        if watcher is None or not events:
            if is_known:
                del self._watchers[fd]
                self._selector.unregister(fd)
            return
        self._watchers[fd] = watcher
        if is_known:
            self._selector.modify(fd, events)
        else:
            self._selector.register(fd, events)

    def resolve(
        self, host: str, port: int, then: Callable[[Sequence[AddressInfo]], None], failed: Callable[[OSError], None]
    ) -> None:
        resolve(host, port, then, failed, lambda callback, outcome: self.call(partial(callback, outcome)))

    def aside(self, work: Callable[[], T]) -> Promise[T]:
        """What may wait, on a thread of its own; its outcome comes in a later turn."""
        outcome: Promise[T] = Promise()

        def run() -> None:
            try:
                value = work()
            except Exception as problem:
                failed = problem
                self.call(lambda: outcome.reject(failed))
            else:
                self.call(lambda: outcome.resolve(value))

        Thread(target=run, name="ottla-aside", daemon=True).start()
        return outcome

    def fileno(self) -> int:
        """Of what is readable when something is ready, timers aside."""
        return self._selector.fileno()

    def close(self) -> None:
        """No timer fires and no watcher is called after this."""
        if self.is_closed:
            return
        self.is_closed = True
        self._timers.clear()
        self._calls.clear()
        self._watchers.clear()
        self.wake()

    def release(self) -> None:
        """Closes the descriptors. Only when no thread takes a turn any more."""
        self._selector.close()
        self._waker.close()
        self._wakened.close()
