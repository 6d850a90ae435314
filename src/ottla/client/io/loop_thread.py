"""The event loop of a blocking client, driven by its own thread or by a caller who waits.

Theory of operation. A turn taken on another thread costs a caller two switches of threads, and Python gives a busy
caller's processor away only every 5 ms. So a caller who waits takes the turns itself, one caller at a time; the loop's
own thread stands aside meanwhile, and for `_GRACE_S` after: a caller who polls in a loop is the only one that runs.
When no caller drives, the thread does, so that heartbeats, retries and prefetching go on while the application works.

A caller who sends with one client and waits with another (`takes_along`) drives both: the answer to what it sent comes
while it waits, and a second thread that takes it up would want the interpreter just when the other answer is there. It
does so only if the thread of the other stands aside already, which it is asked to if its client is used often.

Ctrl-C must not leave the wheel taken, or nobody would drive any more. So it waits from before the wheel is taken until
it is left (`ClientLock.hold_interrupts`); a turn that sleeps is woken by it.

A client that is dropped without being closed leaves a thread that nobody can end: it ends by itself (`end_with`). When
the program ends, clients that were not closed have a few seconds for what they still have to do (`at_exit`).

A fork has no such thread and would share our sockets: the child is told so (`ForkedClient`) instead of hanging.
"""

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread, current_thread, get_ident, local
from time import monotonic
from typing import Any, Final, TypeVar
from warnings import warn
from weakref import WeakSet, finalize, ref

from ottla.base.errors import ClientError
from ottla.client.errors import ClientClosed, ForkedClient
from ottla.client.io.client_lock import strike_in_fork
from ottla.client.io.dialers import dialer_for
from ottla.client.io.event_loop import MOST_WAIT_S, EventLoop
from ottla.client.io.real_ports import RealClock, RealEntropy, log_problem
from ottla.client.io.short_waits import CAN_WAIT_FOR_TWO, ShortWaits
from ottla.client.promise import Promise
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld

T = TypeVar("T")

_GRACE_S: Final = 0.005
_OFTEN_S: Final = 0.001
_NOW_AND_THEN_S: Final = 0.0005
_ALL_THE_TIME_S: Final = 0.00015
_STOP_TIMEOUT_S: Final = 10.0
_AT_EXIT_S: Final = 10.0
"""How long a program that ends waits for clients that it did not close, for all of them together."""

_alive: "WeakSet[LoopThread]" = WeakSet()


class _LastUsed(local):
    """By each thread: the client that it has sent something with."""

    client: "Callable[[], LoopThread | None]" = staticmethod(lambda: None)


_last_used = _LastUsed()


class LoopThread:
    """`world` is what the cores are given; `lock` is to be held by whoever calls them."""

    def __init__(self, name: str, settings: ClientSettings | None = None) -> None:
        """The settings say how brokers are connected to. Raises `ConfigError` where that cannot be done."""
        self.loop = EventLoop(log_problem)
        self.lock = self.loop.lock
        try:
            dialer = dialer_for(self.loop, self.loop, settings)
        except BaseException:
            self.loop.release()
            raise
        self.world = ClientWorld(RealClock(), self.loop, RealEntropy(), dialer, log_problem, self.loop.aside)
        self.is_forked = False
        self.run_callbacks: Callable[[], None] | None = None
        """Is called without the lock, by the loop's thread alone: a user's callback may want what the user holds around
        a call, and may take longer than a caller who waits wants to."""
        self.has_callbacks: Callable[[], bool] = lambda: False
        """Whether `run_callbacks` has something to run."""
        self.on_forked: Callable[[], None] | None = None
        """Is called in the child of a fork, which cannot use this client."""
        self.at_exit: Callable[[float], None] | None = None
        """Is called when the program ends and the client was not closed, with how many seconds it may take."""
        self.takes_along = False
        """Whether a caller who waits drives the client that it has sent something with, too."""
        self._self = ref(self)
        self._used_s = 0.0
        self._is_used_often = False
        self._short_waits = ShortWaits(self.loop)
        self._driving = Lock()
        self._is_wanted = False
        self._waiting = 0
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
            self._end_parking()
            self.loop.wake()
            warn(f"{name} was dropped without close()", ResourceWarning, stacklevel=2)

    # --- for callers ---

    def check(self) -> None:
        """Raises where this client cannot be used: in a fork, or once it is stopped."""
        self.check_not_forked()
        if self._is_stopped:
            raise ClientClosed("the client was closed")

    def check_not_forked(self) -> None:
        if self.is_forked:
            raise ForkedClient("this client was made before the process forked")

    def ask(self, begin: Callable[[], Promise[T]], timeout_s: float | None = None) -> T:
        """Calls a core, and waits for what it promises. Raises `TimeoutError`, or the promise's error."""
        self.check()
        with self.lock:
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
        """Until it is done, it is time, or an interrupt waits, which strikes then. False if another thread drives."""
        lock, other = self.lock, None
        lock.hold_interrupts()
        try:
            if not self._take_wheel():
                return False
            try:
                if self.takes_along:
                    other = self._other_wheel()
                self._take_turns(promise, deadline_s, other)
            finally:
                self._leave_wheel()
        finally:
            lock.release_interrupts()
        return True

    def _take_turns(self, promise: Promise[Any], deadline_s: float, other: "LoopThread | None") -> None:
        """The caller has the wheels, and holds interrupts. The other wheel is left."""
        lock, turn = self.lock, self._short_waits.turn
        try:
            while not promise.is_done and not self._is_stopped and not lock.is_interrupted:
                left_s = deadline_s - monotonic()
                if left_s <= 0:
                    return
                if other is None:
                    turn(left_s)
                else:
                    turn(left_s, other.loop)
                    if other.has_callbacks():
                        other._end_parking()  # They are its thread's to run: see `run_callbacks`.
                    if other._is_wanted or other._is_stopped:
                        other._leave_wheel()
                        other = None
                if self.has_callbacks():
                    self._end_parking()
        finally:
            if other is not None:
                other._leave_wheel()

    def _other_wheel(self) -> "LoopThread | None":
        """The client that this thread has sent something with, if it can be driven, too: its wheel is taken then."""
        other = _last_used.client()
        if other is None or other is self or other._is_stopped or other.is_forked:
            return None
        if other._driving.acquire(blocking=False):
            return other
        if other._is_used_often:
            other._ask_for_wheel()
        return None

    def note_use(self, *, wants_answers: bool = False) -> None:
        """The caller has sent something. Answers are taken up here, if they are wanted, and now and then if it sends
        often; else by whoever waits, or by the thread. The thread runs callbacks: soon, unless it would only be in the
        way of a caller who sends all the time.
        """
        now_s = monotonic()
        since_s = now_s - self._used_s
        self._is_used_often = since_s < _OFTEN_S
        self._used_s = now_s
        if CAN_WAIT_FOR_TWO:
            _last_used.client = self._self
        if wants_answers or (self._is_used_often and now_s - self._last_driven_s > _NOW_AND_THEN_S):
            self.drive()
            if since_s > _ALL_THE_TIME_S and self.has_callbacks():
                self._end_parking()

    def drive(self) -> None:
        """Handles what is ready, if no other thread does, without waiting. For a caller who has filled much."""
        self.lock.hold_interrupts()
        try:
            if self._take_wheel(patience_s=0.0):
                try:
                    self.loop.turn(0.0)
                finally:
                    self._leave_wheel()
        finally:
            self.lock.release_interrupts()

    def hand_over(self) -> None:
        """For a caller who turns to other work now: the loop's thread drives at once, without grace."""
        self._last_driven_s = monotonic() - _GRACE_S
        self._end_parking()

    def _take_wheel(self, patience_s: float = 0.001) -> bool:
        if self._driving.acquire(blocking=False):
            return True
        self._ask_for_wheel()
        return patience_s > 0 and self._driving.acquire(timeout=patience_s)

    def _ask_for_wheel(self) -> None:
        self._is_wanted = True
        self.loop.wake()

    def _leave_wheel(self) -> None:
        self._last_driven_s = monotonic()
        self.loop.end_sleep()
        self._driving.release()
        if self._waiting:
            self._end_parking()

    def _wait_for_others(self, promise: Promise[Any], timeout_s: float) -> None:
        """Another caller drives: it, or the loop's thread after it, settles the promise."""
        done = Event()

        def tell(_: Promise[Any]) -> None:
            done.set()

        self.lock.hold_interrupts()
        try:
            with self.lock:
                promise.on_done(tell)
                self._waiting += 1
            try:
                self.lock.interruptible(lambda: done.wait(min(timeout_s, 1.0)))
            finally:
                with self.lock:
                    promise.forget(tell)
                    self._waiting -= 1
        finally:
            self.lock.release_interrupts()

    # --- the loop's own thread ---

    def _run(self) -> None:
        try:
            self._take_turns_of_its_own()
        finally:
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
            if self._finish is not None and self._is_finished(self._finish):
                return
            rest_s = self._last_driven_s + _GRACE_S - monotonic()
            if self._is_wanted or (rest_s > 0 and not self._waiting):
                self._is_wanted = False
                self._unpark.acquire(timeout=max(rest_s, _GRACE_S))
                continue
            if not self._driving.acquire(blocking=False):
                self._unpark.acquire(timeout=_GRACE_S)
                continue
            try:
                self.loop.turn(MOST_WAIT_S)
            finally:
                self._driving.release()

    def _is_finished(self, finish: Callable[[], bool | None]) -> bool:
        with self.lock:
            if finish() is False:
                return False
        self._run_callbacks()
        self.stop()
        return True

    def _end_parking(self) -> None:
        with suppress(RuntimeError):  # It is ended already.
            self._unpark.release()

    def nudge(self) -> None:
        """Has the loop's thread look for callbacks soon, wherever it is; here, if it has ended. From any thread."""
        if self._has_ended:
            self._run_callbacks()
        else:
            self._end_parking()
            self.loop.wake()

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
        if self._driving.acquire(timeout=_STOP_TIMEOUT_S):
            self.loop.release()
            self._driving.release()


def _stop_all() -> None:
    """Before the interpreter ends: a thread of ours must not wake up in what is left of it."""
    deadline_s = monotonic() + _AT_EXIT_S
    for thread in list(_alive):
        if thread.at_exit is not None:
            try:
                thread.at_exit(max(deadline_s - monotonic(), 0.0))
            except Exception as problem:
                log_problem(problem)
        thread.stop()


def _mark_forked() -> None:
    strike_in_fork()
    for thread in list(_alive):
        thread.is_forked = True
        if thread.on_forked is not None:
            thread.on_forked()
    _alive.clear()


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_mark_forked)
