"""The ports of a client over a running asyncio loop. Everything happens on the loop's thread, and no lock is needed.

A task that waits does not let the loop sleep at once, where a short wait is expected: it comes back to the loop again
and again, for a moment (`short_waits`). Other tasks run meanwhile, as at any `await`.
"""

import asyncio
import errno
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, TypeVar

from ottla.base.ports import Watcher
from ottla.base.tcp_dialling import AddressInfo, numeric_address
from ottla.client.errors import ClientClosed, ForkedClient
from ottla.client.io.dialers import dialer_for
from ottla.client.io.real_ports import RealClock, RealEntropy, log_problem
from ottla.client.io.short_waits import moment_ns
from ottla.client.promise import Promise
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld

T = TypeVar("T")

_NEVER = float("inf")
_CLOCK_STEP_S = 0.001
"""So much before its time a timer of asyncio may fire, by rounding."""


class AsyncioTimer:
    __slots__ = ("_callback", "_handle", "_interval_s", "_timers")

    def __init__(self, timers: "AsyncioTimers", callback: Callable[[], None], interval_s: float | None) -> None:
        self._timers = timers
        self._callback = callback
        self._interval_s = interval_s
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, delay_s: float) -> None:
        self._handle = self._timers.loop.call_later(max(delay_s, 0.0), self._fire)
        self._timers.armed.add(self)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._timers.armed.discard(self)

    def _fire(self) -> None:
        self._timers.armed.discard(self)
        if self._interval_s is not None:
            self.arm(self._interval_s)
        self._callback()


class AsyncioTimers:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.now_s = monotonic
        self.armed: set[AsyncioTimer] = set()

    def after(self, delay_s: float, callback: Callable[[], None]) -> AsyncioTimer:
        timer = AsyncioTimer(self, callback, None)
        timer.arm(delay_s)
        return timer

    def every(self, interval_s: float, callback: Callable[[], None], *, first_s: float | None = None) -> AsyncioTimer:
        timer = AsyncioTimer(self, callback, interval_s)
        timer.arm(interval_s if first_s is None else first_s)
        return timer

    def close(self) -> None:
        for timer in list(self.armed):
            timer.cancel()


class AsyncioPoller:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: dict[int, tuple[Watcher, bool, bool]] = {}

    def watch(self, fd: int, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        before = self._watched.pop(fd, None)
        _, was_reading, was_writing = before or (None, False, False)
        if watcher is not None and (reading or writing):
            self._watched[fd] = (watcher, reading, writing)
        else:
            reading = writing = False
        if reading:
            assert watcher is not None
            self._loop.add_reader(fd, watcher.on_readable)
        elif was_reading:
            self._loop.remove_reader(fd)
        if writing:
            assert watcher is not None
            self._loop.add_writer(fd, watcher.on_writable)
        elif was_writing:
            self._loop.remove_writer(fd)

    def resolve(
        self, host: str, port: int, then: Callable[[Sequence[AddressInfo]], None], failed: Callable[[OSError], None]
    ) -> None:
        if (known := numeric_address(host, port)) is not None:
            self._loop.call_soon(then, known)
            return

        def on_resolved(done: "asyncio.Future[Any]") -> None:
            problem = None if done.cancelled() else done.exception()
            if problem is not None:
                failed(problem if isinstance(problem, OSError) else OSError(errno.EINVAL, str(problem)))
            elif not done.cancelled():
                then(done.result())

        asking = self._loop.create_task(self._loop.getaddrinfo(host, port))
        asking.add_done_callback(on_resolved)

    def close(self) -> None:
        for fd in list(self._watched):
            self.watch(fd, None, reading=False, writing=False)


class _Waiting:
    """A task that waits for a promise, until a time."""

    __slots__ = ("deadline_s", "over")

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline_s: float) -> None:
        self.over: asyncio.Future[None] = loop.create_future()
        self.deadline_s = deadline_s

    def end(self, _: object = None) -> None:
        if not self.over.done():
            self.over.set_result(None)


class AsyncioWorld:
    """One client's, in the loop that runs when it is made."""

    def __init__(self, settings: ClientSettings | None = None) -> None:
        """The settings say how brokers are connected to. Raises `ConfigError` where that cannot be done."""
        loop = asyncio.get_running_loop()
        self.loop = loop
        self._awaited: set[asyncio.Future[Any]] = set()
        self._waiting: dict[_Waiting, None] = {}
        self._is_closed = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = _NEVER
        self._moment_s = moment_ns() / 1e9
        self._expects_short_wait = False
        self._poller = AsyncioPoller(loop)
        self._timers = AsyncioTimers(loop)
        dialer = dialer_for(self._poller, self._timers, settings)
        self.world = ClientWorld(RealClock(), self._timers, RealEntropy(), dialer, log_problem, self._aside)

    def _aside(self, work: Callable[[], T]) -> Promise[T]:
        outcome: Promise[T] = Promise()

        def on_done(done: "asyncio.Future[T]") -> None:
            if done.cancelled():
                outcome.reject(ClientClosed("the client was closed"))
            elif (problem := done.exception()) is None:
                outcome.resolve(done.result())
            else:
                outcome.reject(problem if isinstance(problem, Exception) else RuntimeError(str(problem)))

        self.loop.run_in_executor(None, work).add_done_callback(on_done)
        return outcome

    def check(self) -> None:
        """Raises in another loop than the one that the client was made in, and so in a fork too."""
        if asyncio.get_running_loop() is not self.loop:
            raise ForkedClient("this client was made in another event loop")

    def future(self, promise: Promise[T]) -> "asyncio.Future[T]":
        """What asyncio can await."""
        future: asyncio.Future[T] = self.loop.create_future()

        def settle(done: Promise[T]) -> None:
            if future.done():
                return
            if done.error is not None:
                future.set_exception(done.error)
            else:
                future.set_result(done.value())

        def forget(_: object) -> None:
            self._awaited.discard(future)
            promise.forget(settle)

        if promise.is_done:
            settle(promise)
        else:
            self._awaited.add(future)
            future.add_done_callback(forget)
            promise.on_done(settle)
        return future

    async def settled(self, promise: Promise[Any], timeout_s: float) -> None:
        """Until it is, the time is over, or the client is closed. Tells neither which, nor what became of it."""
        if promise.is_done:
            return
        began_s = monotonic()
        if self._expects_short_wait:
            while monotonic() - began_s < self._moment_s:
                await asyncio.sleep(0)
                if promise.is_done or self._is_closed:
                    return
        waiting = _Waiting(self.loop, self.loop.time() + timeout_s)
        self._waiting[waiting] = None
        promise.on_done(waiting.end)
        if waiting.deadline_s < self._alarm_s:
            self._set_alarm(waiting.deadline_s)
        try:
            await waiting.over
        finally:
            del self._waiting[waiting]
            promise.forget(waiting.end)
            self._expects_short_wait = monotonic() - began_s < self._moment_s

    def _set_alarm(self, deadline_s: float) -> None:
        """One timer stands for all that wait, at the earliest deadline; it looks again when it fires."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_s = deadline_s
        self._alarm = self.loop.call_at(deadline_s, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm_s = _NEVER
        now_s = self.loop.time() + _CLOCK_STEP_S
        for waiting in list(self._waiting):
            if waiting.deadline_s <= now_s:
                waiting.end()
        deadlines = [waiting.deadline_s for waiting in self._waiting if not waiting.over.done()]
        if deadlines:
            self._set_alarm(min(deadlines))

    def close(self) -> None:
        """No timer fires and no socket is watched after this, so what is still awaited will not come."""
        self._is_closed = True
        for future in self._awaited:
            if not future.done():
                future.set_exception(ClientClosed("the client was closed"))
                future.exception()  # A task that waits raises it; one that has gone elsewhere is not missed.
        for waiting in self._waiting:
            waiting.end()
        if self._alarm is not None:
            self._alarm.cancel()
        self._timers.close()
        self._poller.close()
