"""The lock of a blocking client. While the main thread holds it, Ctrl-C waits.

Theory of operation. Python raises KeyboardInterrupt between any two steps of the main thread. In the middle of a core
that would leave a batch in no queue, or a coroutine that nobody goes on with, and `close` would wait for it. Between
taking something and the `try` behind it, it would leave that taken. So the handler of SIGINT is exchanged for one that
takes a note: while the lock is held, which is never for long, and from `hold_interrupts` to `release_interrupts`. The
handler that was there runs at the end of it. A caller who waits for sockets holds interrupts, too: one that comes wakes
it (`wake`), and it sees to it that it gets out (`is_interrupted`).

The application's own code may take its time, within the client's (`interruptible`). There an interrupt strikes at once.
"""

# The functions of `signal` wrap these, and take seven times as long.
from _signal import SIGINT, getsignal  # type: ignore[import-not-found]  # typeshed knows only `signal`
from _signal import signal as set_handler
from collections.abc import Callable
from threading import RLock, get_ident, main_thread
from typing import Any, Final, TypeVar

T = TypeVar("T")
_NEVER: Final = -1


class ClientLock:
    """Reentrant. Without a handler of Python's own there is nothing to wait. `wake` ends what the holder waits for."""

    __slots__ = ("_depth", "_handler", "_lock", "_main", "_noted", "_open_depth", "_wake")

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._lock = RLock()
        self._wake = wake
        self._main = main_thread().ident
        self._depth = 0
        """How often the main thread holds interrupts."""
        self._open_depth = _NEVER
        """With so many holds, and no more, an interrupt strikes at once."""
        self._handler: Any = None
        self._noted: tuple[int, Any] | None = None

    def __enter__(self) -> None:
        self.hold_interrupts()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self.release_interrupts()

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupt waits."""
        return self._noted is not None

    def hold_interrupts(self) -> None:
        """None strikes any more when this has returned. The `try` behind it comes in time."""
        if get_ident() == self._main:
            if not self._depth and callable(handler := getsignal(SIGINT)):
                self._handler = handler
                set_handler(SIGINT, self._note)
            self._depth += 1

    def release_interrupts(self) -> None:
        """One that has waited strikes here, if nothing else holds it."""
        if get_ident() == self._main:
            self._depth -= 1
            if not self._depth:
                if self._handler is not None:
                    self._give_back()
            elif self._noted is not None and self._depth == self._open_depth:
                self._strike()

    def interruptible(self, work: Callable[[], T]) -> T:
        """Calls what may take long, and may be left anywhere. Once that has ended, interrupts are held again.

        They are so by a mere assignment: a call, as that of a context manager's end, could be interrupted itself.
        """
        if get_ident() != self._main:
            return work()
        before, self._open_depth = self._open_depth, self._depth
        try:
            if self._noted is not None:
                self._strike()
            return work()
        finally:
            self._open_depth = before

    def released(self, work: Callable[[], T]) -> T:
        """As `interruptible`, for a caller who holds the lock, once: it is free meanwhile."""
        self._lock.release()
        try:
            return self.interruptible(work)
        finally:
            self._lock.acquire()

    def _strike(self) -> None:
        noted, self._noted = self._noted, None
        if noted is not None:
            self._handler(*noted)

    def _give_back(self) -> None:
        handler, self._handler = self._handler, None
        noted, self._noted = self._noted, None
        if getsignal(SIGINT) == self._note:
            set_handler(SIGINT, handler)
        if self._noted is not None:  # just now
            noted, self._noted = self._noted, None
        if noted is not None:
            handler(*noted)

    def _note(self, number: int, frame: Any) -> None:
        if self._depth == self._open_depth:
            self._handler(number, frame)
        else:
            self._noted = number, frame
            self._wake()


def strike_in_fork() -> None:
    """In a child: lets Ctrl-C strike that the main thread of its parent held, if another thread has forked."""
    handler = getsignal(SIGINT)
    while isinstance(lock := getattr(handler, "__self__", None), ClientLock):
        handler = lock._handler
        set_handler(SIGINT, handler)
