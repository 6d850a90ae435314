"""A function on a thread of its own that continues only when it is told to, up to where it pauses.

Theory of operation. `resume` returns when the function pauses or is over, and the function waits while it is paused. So
exactly one thread runs at any time, and what happens is decided by the calls of `resume` alone, not by the system's
scheduler. A function that is abandoned gets `Abandoned` where it paused, and wherever it pauses again: it comes to its
end, and does nothing more that a pause stands before.

Locks of the product are held across pauses, as threads do it. `SteppedLock` is such a lock: a function that finds it
taken pauses; the loop, which cannot, has the function that holds it continue until the lock is free.
`use_stepped_locks` puts it in the place of `threading.Lock` in the product's modules.

Where greenlet is installed, the "thread" is a stack of its own within the caller's thread (`_Fiber`): to switch to it
costs as much as a call. Else it is a thread of the system's (`_Thread`), and each switch waits for the scheduler: a
tenth of a run's time. A run is the same with either. Threads of the system's are kept for the next function: making one
costs as much as several functions.

A function that has paused and is neither resumed nor abandoned stays for ever, with all that it knows: the garbage
collector does not see into its stack.
"""

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Protocol

try:
    from greenlet import getcurrent, greenlet
except ImportError:
    has_fibers = False
else:
    has_fibers = True

_LOCKING_PARTS: Final = ("ottla.log", "ottla.broker", "ottla.runtime")
_RealLock: Final = threading.Lock


class Abandoned(BaseException):
    """The process of this function is gone. Not an `Exception`, so that no handler can continue after it."""


class SteppedThread:
    """`result` or `problem` is what came of the function, once it `is_over`."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.is_over = False
        self.result: Any = None
        self.problem: BaseException | None = None
        self._function = function
        self._is_abandoned = False
        self._thread: _Stack | None = None

    def resume(self) -> None:
        """Returns when the function pauses or is over."""
        assert not self.is_over, "the function is over"
        before, _now.running = _now.running, self
        if self._thread is None:
            self._thread = _Fiber(self._work) if has_fibers else _thread_for(self._work)
        self._thread.switch_to()
        _now.running = before
        if self.is_over:
            if isinstance(self._thread, _Thread):
                _IDLE.append(self._thread)
            self._thread = None

    def abandon(self) -> None:
        """The function does nothing any more."""
        self._is_abandoned = True
        if self._thread is None:
            self.is_over = True
        while not self.is_over:
            self.resume()

    def pause(self) -> None:
        """Within the function: waits for `resume`. Raises `Abandoned`."""
        assert self._thread is not None
        if not self._is_abandoned:
            self._thread.switch_back()
        if self._is_abandoned:
            raise Abandoned

    def _work(self) -> None:
        try:
            self.result = self._function()
        except BaseException as problem:
            self.problem = problem
        self.is_over = True


class _Now:
    """Which function runs now; None on the loop's thread."""

    running: SteppedThread | None = None


_now = _Now()


def running() -> SteppedThread | None:
    """The function that this is called from, if it is one of these."""
    return _now.running


class _Stack(Protocol):
    """What a function is on while it pauses."""

    def switch_to(self) -> None:
        """Returns when the function pauses or is over."""

    def switch_back(self) -> None:
        """From within the function: returns when it is to go on."""


class _Fiber:
    """A stack within the thread of the caller."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._greenlet = greenlet(work)

    def switch_to(self) -> None:
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()

    def switch_back(self) -> None:
        self._greenlet.parent.switch()


class _Thread:
    """A thread of the system's: works when it is told to, and waits in between."""

    def __init__(self) -> None:
        self.work: Callable[[], None] | None = None
        self._turn = _RealLock()
        self._back = _RealLock()
        self._turn.acquire()
        self._back.acquire()
        threading.Thread(target=self._run, name="simulated-disk", daemon=True).start()

    def switch_to(self) -> None:
        self._turn.release()
        self._back.acquire()

    def switch_back(self) -> None:
        self._back.release()
        self._turn.acquire()

    def _run(self) -> None:
        self._turn.acquire()
        while True:
            assert self.work is not None
            self.work()
            self.work = None
            self.switch_back()


_IDLE: Final[list[_Thread]] = []


def _thread_for(work: Callable[[], None]) -> _Thread:
    thread = _IDLE.pop() if _IDLE else _Thread()
    thread.work = work
    return thread


class SteppedLock:
    """A `threading.Lock` that is also right among stepped functions and the loop. Real threads may share it, too."""

    def __init__(self) -> None:
        self._lock = _RealLock()
        self._holder: SteppedThread | None = None

    def acquire(self) -> bool:
        me = running()
        while not self._lock.acquire(blocking=me is None and self._holder is None):
            assert me is None or self._holder is not me, "the function already has the lock"
            if me is not None:
                me.pause()
            elif self._holder is not None:
                self._holder.resume()
        self._holder = me
        return True

    def release(self) -> None:
        self._holder = None
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def use_stepped_locks() -> None:
    """The product's modules that are loaded make stepped locks from now on."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_LOCKING_PARTS) and getattr(module, "Lock", None) is _RealLock:
            module.Lock = SteppedLock  # type: ignore[attr-defined]
