"""The event loop of a blocking client, driven by its own thread or by a caller who waits.

Theory of operation. A turn taken on another thread costs a caller two switches of threads, and Python gives a busy
caller's processor away only every 5 ms. So a caller who waits takes the turns itself, one caller at a time; the loop's
own thread stands aside meanwhile, and for `_GRACE_S` after: a caller who polls in a loop is the only one that runs.
When no caller drives, the thread does, so that heartbeats, retries and prefetching continue while the application
works.

Ctrl-C must not leave the wheel taken, or nobody would drive any more: see `locks` for how it is taken.

A client that is dropped without being closed leaves a thread that nobody can end: it ends by itself (`end_with`). When
the program ends, clients that were not closed have a few seconds for what they still have to do (`at_exit`).

A fork has no such thread and would share our sockets: the child gets an error (`ForkedClient`) instead of hanging.
"""

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread, current_thread, get_ident
from time import monotonic
from typing import Any, Final, TypeVar
from warnings import warn
from weakref import WeakSet, finalize

from ottla.base.errors import ClientError
from ottla.client.client_log import ClientLog
from ottla.client.errors import ClientClosed, ForkedClient
from ottla.client.io.dialers import dialer_for
from ottla.client.io.event_loop import MOST_WAIT_S, EventLoop
from ottla.client.io.log_writer import write
from ottla.client.io.real_ports import RealClock, RealEntropy, log_problem
from ottla.client.io.short_waits import ShortWaits
from ottla.client.promise import Promise
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld

T = TypeVar("T")

_GRACE_S: Final = 0.005
_PATIENCE_S: Final = 0.001
_OFTEN_S: Final = 0.001
_NOW_AND_THEN_S: Final = 0.0005
_ALL_THE_TIME_S: Final = 0.00015
_STOP_TIMEOUT_S: Final = 10.0
_AT_EXIT_S: Final = 10.0
"""How long a program that ends waits for clients that it did not close, for all of them together."""

_alive: "WeakSet[LoopThread]" = WeakSet()


class LoopThread:
    """`world` is what the cores are given; `lock` is to be held by callers."""

    def __init__(self, name: str, settings: ClientSettings | None = None) -> None:
        """The settings say how brokers are connected to. Raises `ConfigError` where that cannot be done."""
        self.loop = EventLoop(log_problem)
        self.lock, self.step = self.loop.lock, self.loop.step
        self.step.on_torn = self._wake_thread
        try:
            dialer = dialer_for(self.loop, self.loop, settings)
        except BaseException:
            self.loop.release()
            raise
        log = ClientLog(self.loop.now_s, write)
        self.world = ClientWorld(RealClock(), self.loop, RealEntropy(), dialer, log_problem, self.loop.aside, log)
        self.is_forked = False
        self.on_torn: Callable[[], None] = lambda: None
        """Is called with the lock, by the loop's thread, when an interrupt has torn the core (`Step`)."""
        self.run_callbacks: Callable[[], None] | None = None
        """Is called without the lock, by the loop's thread alone: a user's callback may want what the user holds around
        a call, and may take longer than a caller who waits wants to."""
        self.has_callbacks: Callable[[], bool] = lambda: False
        """Whether `run_callbacks` has something to run."""
        self.on_forked: Callable[[], None] | None = None
        """Is called in the child of a fork, which cannot use this client."""
        self.at_exit: Callable[[float], None] | None = None
        """Is called when the program ends and the client was not closed, with how many seconds it may take."""
        self._used_s = 0.0
        self._short_waits = ShortWaits(self.loop)
        self._wheel = Lock()
        """Has the thread that drives."""
        self._is_wanted = False
        self._waiting: dict[int, Promise[Any]] = {}
        """Callers who wait while another one drives, by their threads."""
        self._last_driven_s = 0.0
        self._unpark = Lock()
        """Held while the loop's thread is to stand aside. A lock and no `Event`: a thread that wakes up only to find
        that it is not needed must be done at once, because a caller may need the interpreter.
        """
        self._unpark.acquire()
        self._is_stopped = False
        self._has_ended = False
        self._finalizer: finalize[..., Any] | None = None
        self._finish: Callable[[], bool | None] | None = None
        """Of a client that was dropped."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        _alive.add(self)

    def end_with(self, client: object, finish: Callable[[], bool | None]) -> None:
        """Ends the thread when nobody holds the client any more, and `finish` has ended the client's work.

        `finish` is called with the lock, after every turn until it is not False, and must not hold the client.
        """
        self._finalizer = finalize(client, self._on_dropped, f"ottla.{type(client).__name__}", finish)
        self._finalizer.atexit = False  # then all threads are stopped

    def _on_dropped(self, name: str, finish: Callable[[], bool | None]) -> None:
        """May be called anywhere, by the garbage collector: the thread does the rest."""
        if not self._is_stopped and not self.is_forked:
            self._finish = finish
            self._wake_thread()
            warn(f"{name} was dropped without close()", ResourceWarning, stacklevel=2)

    # --- for callers ---

    def check(self) -> None:
        """Raises where this client cannot be used: in a fork, or once it is stopped."""
        if self.is_forked:
            self.check_not_forked()
        if self.step.is_torn:
            self.step.check()
        if self._is_stopped:
            raise ClientClosed("the client was closed")

    def check_not_forked(self) -> None:
        if self.is_forked:
            raise ForkedClient("this client was created before the process forked")

    def ask(self, begin: Callable[[], Promise[T]], timeout_s: float | None = None) -> T:
        """Calls a core, and waits for what it promises. Raises `TimeoutError`, or the promise's error."""
        self.check()
        with self.lock, self.step:
            promise = begin()
        if not self.wait(promise, timeout_s):
            raise TimeoutError(f"nothing came within {timeout_s} s")
        return promise.value()

    def wait(self, promise: Promise[Any], timeout_s: float | None = None) -> bool:
        """Until the promise is done; returns whether it is. The caller does not hold the lock."""
        if promise.is_done:
            return True
        if get_ident() == self._thread.ident:
            raise ClientError("a callback of the client cannot wait for the client: do it on another thread")
        deadline_s = monotonic() + (MOST_WAIT_S if timeout_s is None else timeout_s)
        while not promise.is_done and not self._is_stopped:
            left_s = deadline_s - monotonic()
            if left_s <= 0:
                if timeout_s is not None:
                    return False
                deadline_s += MOST_WAIT_S
            elif not self._drive_until(promise, deadline_s):
                self._wait_for_others(promise, left_s)
        if not promise.is_done:
            raise ClientClosed("the client was closed")
        return True

    def _drive_until(self, promise: Promise[Any], deadline_s: float) -> bool:
        """Until it is done, or it is time. False if another thread drives."""
        loop, wheel, turn = self.loop, self._wheel, self._short_waits.turn
        if self.step.is_torn:
            return False
        for is_ours in map(wheel.acquire, (False, True), (-1, _PATIENCE_S)):
            if is_ours:
                try:
                    while not promise.is_done and not self._is_stopped and not self.step.is_torn:
                        self._last_driven_s = now_s = monotonic()
                        if now_s >= deadline_s:
                            break
                        turn(deadline_s - now_s)
                        if self.has_callbacks():
                            self._end_parking()
                finally:
                    loop.sleeps_until_s = 0.0
                    wheel.release()
                self._after_driving()
                return True
            self._ask_for_wheel()
        return False

    def note_use(self, *, wants_answers: bool = False) -> None:
        """The caller has sent something. If it sends often, answers are handled here; else by the thread.

        Who sends a record at a time has the answer to the one before handled while the broker works on this one. Who
        sends all the time has them handled now and then: as long as a batch grows, fewer and larger ones are sent. The
        thread runs callbacks: soon, unless it would only be in the way of a caller who sends all the time.
        """
        now_s = monotonic()
        since_s = now_s - self._used_s
        self._used_s = now_s
        at_least_s = _NOW_AND_THEN_S if since_s < _ALL_THE_TIME_S else 0.0
        if wants_answers or (since_s < _OFTEN_S and now_s - self._last_driven_s > at_least_s):
            self.drive()
            if since_s > _ALL_THE_TIME_S and self.has_callbacks():
                self._end_parking()

    def drive(self) -> None:
        """Handles what is ready, if no other thread does, without waiting. For a caller who has filled much."""
        loop, wheel = self.loop, self._wheel
        for is_ours in map(wheel.acquire, (False,)):
            if is_ours:
                try:
                    loop.turn(0.0)
                finally:
                    loop.sleeps_until_s = 0.0
                    wheel.release()
                self._after_driving()
            else:
                self._ask_for_wheel()

    def _after_driving(self) -> None:
        self._last_driven_s = monotonic()
        if self._waiting:
            self._end_parking()

    def hand_over(self) -> None:
        """For a caller who turns to other work now: the loop's thread drives at once, without grace."""
        self._last_driven_s = monotonic() - _GRACE_S
        self._end_parking()

    def _ask_for_wheel(self) -> None:
        self._is_wanted = True
        self.loop.wake()

    def _wait_for_others(self, promise: Promise[Any], timeout_s: float) -> None:
        """Another caller drives: it, or the loop's thread after it, settles the promise."""
        me, over = get_ident(), Lock()
        over.acquire()

        def tell(_: Promise[Any]) -> None:
            over.release()

        try:
            self._waiting[me] = promise
            with self.lock, self.step:
                promise.on_done(tell)
            over.acquire(timeout=min(timeout_s, 1.0))
        finally:
            self._waiting.pop(me, None)
            with self.lock:
                promise.forget(tell)

    # --- the loop's own thread ---

    def _run(self) -> None:
        try:
            self._take_turns_of_its_own()
        finally:
            if self.step.is_torn:
                self._end_torn()
            self._run_callbacks()
            self._has_ended = True
            self._run_callbacks()  # one that came just before is nobody else's to run
            if self._is_stopped:
                self._release()

    def _run_callbacks(self) -> None:
        if self.run_callbacks is not None:
            try:
                self.run_callbacks()
            except BaseException as problem:  # A user's sys.exit() would end this thread, and the client with it.
                log_problem(problem)

    def _take_turns_of_its_own(self) -> None:
        while not self._is_stopped:
            self._run_callbacks()
            if self.step.is_torn:
                return
            if self._finish is not None and self._is_finished(self._finish):
                return
            rest_s = self._last_driven_s + _GRACE_S - monotonic()
            if self._is_wanted or (rest_s > 0 and not self._waiting):
                self._is_wanted = False
                self._unpark.acquire(timeout=max(rest_s, _GRACE_S))
                continue
            if not self._wheel.acquire(blocking=False):
                self._unpark.acquire(timeout=_GRACE_S)
                continue
            try:
                self.loop.turn(MOST_WAIT_S)
            finally:
                self._wheel.release()

    def _end_torn(self) -> None:
        """What the core has promised is settled as far as it still knows of it. Who waits learns that it has ended."""
        with self.lock:
            try:
                self.on_torn()
            except Exception as problem:
                log_problem(problem)
        self.stop()

    def _is_finished(self, finish: Callable[[], bool | None]) -> bool:
        with self.lock:
            if finish() is False:
                return False
        self._run_callbacks()
        self.stop()
        return True

    def _wake_thread(self) -> None:
        self._end_parking()
        self.loop.wake()

    def _end_parking(self) -> None:
        with suppress(RuntimeError):  # It is ended already.
            self._unpark.release()

    def nudge(self) -> None:
        """Has the loop's thread look for callbacks soon, wherever it is; here, if it has ended. From any thread."""
        if self._has_ended:
            self._run_callbacks()
        else:
            self._wake_thread()

    def end(self, core: Callable[[], object]) -> None:
        """Calls what ends the core, unless an interrupt has torn it: then the thread ends it, and the call that was
        interrupted keeps raising the interrupt.
        """
        with self.lock:
            if not self.step.is_torn:
                with self.step:
                    core()

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """Ends the thread. What the cores promised and did not settle stays so: they are closed before.

        It is waited for at most so long: it may be in a user's callback, and ends after it.
        """
        if self._is_stopped or self.is_forked:
            return
        self._is_stopped = True
        if self._finalizer is not None:
            self._finalizer.detach()
        with self.lock:
            self.loop.close()
        self.nudge()
        _alive.discard(self)
        if current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def _release(self) -> None:
        """The last act of the thread: no other takes a turn any more, or it ends its turn soon."""
        if self._wheel.acquire(timeout=_STOP_TIMEOUT_S):
            self.loop.release()
            self._wheel.release()


def _stop_all() -> None:
    """Before the interpreter ends: a thread of ours must not wake up in what is left of it."""
    deadline_s = monotonic() + _AT_EXIT_S
    for thread in list(_alive):
        if thread.at_exit is not None and not thread.step.is_torn:
            try:
                thread.at_exit(max(deadline_s - monotonic(), 0.0))
            except Exception as problem:
                log_problem(problem)
        thread.stop()


def is_inside_a_step() -> bool:
    """Whether the calling thread is at work in a client's core. For handlers of signals, of programs that have some:
    what is raised now would end that work half-way.
    """
    return any(thread.lock._is_owned() for thread in list(_alive))  # type: ignore[attr-defined]


def _mark_forked() -> None:
    for thread in list(_alive):
        thread.is_forked = True
        if thread.on_forked is not None:
            thread.on_forked()
    _alive.clear()


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_mark_forked)
