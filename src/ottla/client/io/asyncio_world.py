"""The ports of a client over a running asyncio loop. Everything happens on the loop's thread, and no lock is needed.

A task that waits does not let the loop sleep at once, where a short wait is expected: it comes back to the loop again
and again, for a moment (`short_waits`). Other tasks run meanwhile, as at any `await`.

A loop may be closed before its client is: nothing that the client began there continues then. A client that is dropped
without being closed ends by itself (`end_with`): in its loop, while there is one.
"""

import asyncio
import atexit
import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar
from warnings import warn
from weakref import WeakSet, finalize

from ottla.base.ports import Watcher
from ottla.base.tcp_connect import AddressInfo, resolve
from ottla.client.client_log import ClientLog
from ottla.client.errors import ClientClosed, OtherEventLoop
from ottla.client.io.dialers import dialer_for
from ottla.client.io.log_writer import write
from ottla.client.io.real_ports import RealClock, RealEntropy, log_problem
from ottla.client.io.short_waits import moment_ns
from ottla.client.promise import Promise
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld

if TYPE_CHECKING:
    from ottla.client.producer.append import Appender

T = TypeVar("T")

_NEVER = float("inf")
_CLOCK_STEP_S = 0.001
"""So much before its time a timer of asyncio may fire, by rounding."""
_LAST_WORK_S: Final = 10.0
"""How long a loop that is about to be closed waits for a client that was dropped in it."""

_unfinished: "dict[AsyncioWorld, Callable[[], None]]" = {}
"""Of clients that were dropped and have work left: what ends them."""
_guarding: "WeakSet[AsyncioWorld]" = WeakSet()
"""Those whose clients append without `check`."""


class AsyncioTimer:
    __slots__ = ("_callback", "_handle", "_interval_s", "_timers")

    def __init__(self, timers: "AsyncioTimers", callback: Callable[[], None], interval_s: float | None) -> None:
        self._timers = timers
        self._callback = callback
        self._interval_s = interval_s
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, delay_s: float) -> None:
        if self._timers.is_closed:
            return
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
        self.is_closed = False
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
        self.is_closed = True
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
        if self._loop.is_closed():
            return
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
        resolve(host, port, then, failed, self._loop.call_soon_threadsafe)

    def close(self) -> None:
        for fd in list(self._watched):
            self.watch(fd, None, reading=False, writing=False)


class _WaitingTask:
    """A task that waits for a promise, until a time."""

    __slots__ = ("deadline_s", "over")

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline_s: float) -> None:
        self.over: asyncio.Future[None] = loop.create_future()
        self.deadline_s = deadline_s

    def end(self, _: object = None) -> None:
        if not self.over.done() and not self.over.get_loop().is_closed():
            self.over.set_result(None)


class AsyncioWorld:
    """One client's, in the loop that runs when it is made."""

    def __init__(self, settings: ClientSettings | None = None) -> None:
        """The settings say how brokers are connected to. Raises `ConfigError` where that cannot be done."""
        loop = asyncio.get_running_loop()
        self.loop = loop
        self._guarded: Appender | None = None
        self._awaited: set[asyncio.Future[Any]] = set()
        self._waiting: dict[_WaitingTask, None] = {}
        self._is_closed = False
        self._finalizer: finalize[..., Any] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = _NEVER
        self._moment_s = moment_ns() / 1e9
        self._expects_short_wait = False
        self._poller = AsyncioPoller(loop)
        self._timers = AsyncioTimers(loop)
        dialer = dialer_for(self._poller, self._timers, settings)
        log = ClientLog(self._timers.now_s, write)
        self.world = ClientWorld(RealClock(), self._timers, RealEntropy(), dialer, log_problem, self._aside, log)

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
            raise OtherEventLoop

    def guard(self, appender: "Appender") -> None:
        """Lets it append within the loop alone, without `check` for every record.

        In Python 3.11 `get_running_loop` asks the system for the process each time, and takes longer than appending.
        Loops that do not say in which thread they run are asked all the same, and forks know nothing of it.
        """
        appender.runs_in = vars(self.loop) if isinstance(self.loop, asyncio.BaseEventLoop) else {}
        self._guarded = appender
        _guarding.add(self)

    def may_finish(self) -> bool:
        """Whether a client that is being closed may still do something: not when its loop is closed.

        Raises in another loop while its own is not closed: that one may be at work with it now.
        """
        if self.loop.is_closed():
            return False
        self.check()
        return True

    def end_with(self, client: object, finish: Callable[[], Promise[Any]] | None, stop: Callable[[], None]) -> None:
        """Ends what is left when nobody holds the client any more; neither of the two may hold it.

        `finish` begins what is still to be done, in the loop, and promises its end. A loop that `asyncio.run` is about
        to close waits for it, for a few seconds. Then `stop` is called, or at once if the loop is closed.
        """
        name = f"ottla.aio.{type(client).__name__}"
        self._finalizer = finalize(client, self._on_dropped, os.getpid(), name, finish, stop)

    def _on_dropped(
        self, process: int, name: str, finish: Callable[[], Promise[Any]] | None, stop: Callable[[], None]
    ) -> None:
        """May be called anywhere, by the garbage collector, and when the program ends. In a fork it is not ours."""
        if os.getpid() != process:
            return
        warn(f"{name} was dropped without close()", ResourceWarning, stacklevel=2)
        _unfinished[self] = stop
        if self.loop.is_closed():
            self._stop_dropped()
        else:
            self.loop.call_soon_threadsafe(self._begin_finishing, finish)

    def _begin_finishing(self, finish: Callable[[], Promise[Any]] | None) -> None:
        """Takes the first step before there is a task: one that is cancelled before its first step takes none."""
        finishing = self._finish_dropped(finish)
        finishing.send(None)
        self.loop.create_task(finishing)

    async def _finish_dropped(self, finish: Callable[[], Promise[Any]] | None) -> None:
        try:
            promise = Promise.resolved(None) if finish is None else finish()
            try:
                await asyncio.sleep(0)
                await self.future(promise)
            except asyncio.CancelledError:  # The loop is about to be closed, and waits for its tasks.
                async with asyncio.timeout(_LAST_WORK_S):
                    await self.future(promise)
        except TimeoutError:
            pass  # `stop` says what is left
        finally:
            self._stop_dropped()

    def _stop_dropped(self) -> None:
        stop = _unfinished.pop(self, None)
        if stop is not None:
            try:
                stop()
            except Exception as problem:
                log_problem(problem)
            self.close()

    def future(self, promise: Promise[T]) -> "asyncio.Future[T]":
        """What asyncio can await."""
        future: asyncio.Future[T] = self.loop.create_future()

        def settle(done: Promise[T]) -> None:
            if future.done() or self.loop.is_closed():
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
        waiting = _WaitingTask(self.loop, self.loop.time() + timeout_s)
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
        if self._finalizer is not None:
            self._finalizer.detach()
        if not self.loop.is_closed():  # else no task is left that could wait
            self._end_waits()
        if self._alarm is not None:
            self._alarm.cancel()
        self._timers.close()
        self._poller.close()

    def _end_waits(self) -> None:
        for future in self._awaited:
            if not future.done():
                future.set_exception(ClientClosed("the client was closed"))
                future.exception()  # A task that waits raises it; one that has gone elsewhere is not missed.
        for waiting in self._waiting:
            waiting.end()


def _stop_all() -> None:
    """When the program ends: clients whose loop did not come to their end."""
    for world in list(_unfinished):
        world._stop_dropped()


def _forget_all() -> None:
    """In a fork, where the loops of the clients do not run."""
    _unfinished.clear()
    for world in _guarding:
        if world._guarded is not None:
            world._guarded.runs_in = {}


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_forget_all)
