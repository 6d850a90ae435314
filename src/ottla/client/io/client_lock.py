"""The lock of a blocking client. While the main thread holds it, Ctrl-C waits.

Theory of operation. Python raises KeyboardInterrupt between any two steps of the main thread. In the middle of a core
that would leave a batch in no queue, or a coroutine that nobody goes on with, and `close` would wait for it. So the
handler of SIGINT is exchanged for one that takes a note while the lock is held, which is never for long; the handler
that was there runs when it is given back. Waiting for sockets happens without the lock, and is interrupted at once.
"""

# The functions of `signal` wrap these, and take seven times as long.
from _signal import SIGINT, getsignal  # type: ignore[import-not-found]  # typeshed knows only `signal`
from _signal import signal as set_handler
from threading import RLock, get_ident, main_thread
from typing import Any


class ClientLock:
    """Reentrant. Without a handler of Python's own there is nothing to wait."""

    __slots__ = ("_depth", "_handler", "_lock", "_main", "_noted")

    def __init__(self) -> None:
        self._lock = RLock()
        self._main = main_thread().ident
        self._depth = 0
        """How often the main thread has it."""
        self._handler: Any = None
        self._noted: tuple[int, Any] | None = None

    def __enter__(self) -> None:
        if get_ident() == self._main:
            if not self._depth and callable(handler := getsignal(SIGINT)):
                self._handler = handler
                set_handler(SIGINT, self._note)
            self._depth += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if get_ident() == self._main:
            self._depth -= 1
            if not self._depth and self._handler is not None:
                self._give_back()

    def released(self) -> "Released":
        """For a `with` within one of its own, the only one: the lock is free meanwhile, and Ctrl-C strikes at once."""
        return Released(self)

    def _give_back(self) -> None:
        handler, self._handler = self._handler, None
        if getsignal(SIGINT) == self._note:
            set_handler(SIGINT, handler)
        noted, self._noted = self._noted, None
        if noted is not None:
            handler(*noted)

    def _note(self, number: int, frame: Any) -> None:
        self._noted = number, frame


class Released:
    """However it is left, the lock is held afterwards, as the `with` around it expects."""

    __slots__ = ("_lock",)

    def __init__(self, lock: ClientLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        try:
            self._lock.__exit__()
        except BaseException:  # An interrupt has waited for this.
            self._lock.__enter__()
            raise

    def __exit__(self, *_: object) -> None:
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._lock.__enter__()
                break
            except KeyboardInterrupt as struck:  # Nothing was done yet: once it is, interrupts wait.
                interrupt = struck
        if interrupt is not None:
            raise interrupt
