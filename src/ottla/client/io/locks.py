"""Locks of a blocking client that Ctrl-C cannot leave taken.

Theory of operation. Python raises KeyboardInterrupt on the main thread, where it looks for signals: after a call, at
the beginning of a function, and when it jumps back. So a strike may come between `lock.acquire()` and the `try` behind
it, and the lock would be taken for ever. Two ways to take one have no such place in between:

    with lock:                                     if `lock` is C's own, and not a class with methods in Python

    for is_ours in map(lock.acquire, (False,)):    the iterator calls it, and Python does not look after that
        if is_ours:
            try: ...
            finally: lock.release()                the first call of a `finally` is made before Python looks again

What these locks guard is another matter. A strike in the middle of a core's step cuts it short, and nobody knows what
it has left: a batch in no queue, a coroutine that nobody resumes. So such a client ends at once (`Step`), as if its
program had: it sends nothing more, and what was not acknowledged has failed. No handler of a signal is touched here.
Programs avoid all that with one of their own (docs/clients/consumer.md), and our commands have one.
"""

from _thread import RLock, get_ident  # the class: `threading` has a function that makes one
from collections.abc import Callable, Iterator
from itertools import starmap
from typing import Any, TypeVar

from ottla.client.errors import ClientClosed, ConcurrentUse

T = TypeVar("T")

ClientLock = RLock
"""What is held while a client's core is at work. Reentrant."""


def taken_surely(lock: Any) -> Iterator[None]:
    """For a `finally`, made ahead of its `try`: `for _ in taking: try: … finally: lock.release()`.

    It takes the lock, which its thread has not, and waits for it without looking for signals. Strikes come after that.
    """
    return starmap(lock._acquire_restore, (((1, get_ident()),),))


class Step:
    """Around what a core does: `with lock, step:`. A strike inside tears the core, and nobody enters any more.

    Where every call counts, `try` does the same without a call: `except BaseException as error: step.on_raised(error)`.
    """

    __slots__ = ("_of_application", "is_torn", "on_torn")

    def __init__(self) -> None:
        self.is_torn = False
        self.on_torn: Callable[[], None] = lambda: None
        self._of_application: BaseException | None = None

    def check(self) -> None:
        if self.is_torn:
            raise ClientClosed("the client was interrupted in the middle of its work, and has ended")

    __enter__ = check

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.on_raised(error)

    def on_raised(self, error: BaseException) -> None:
        """The core's work was ended by it. The caller raises it."""
        if isinstance(error, Exception):
            return
        if error is self._of_application:
            self._of_application = None
        else:
            self.is_torn = True
            self.on_torn()

    def outside(self, lock: Any, work: Callable[[], T]) -> T:
        """Calls the application's code out of a step. The lock is free meanwhile, and what it raises tears nothing."""
        for state in starmap(lock._release_save, ((),)):
            try:
                return work()
            except BaseException as problem:
                self._of_application = None if isinstance(problem, Exception) else problem
                raise
            finally:
                lock._acquire_restore(state)  # waits without looking for signals, as a condition of `threading` does
        raise AssertionError("a lock is released once")


class OneUser(RLock):  # type: ignore[misc]  # typeshed calls it final, which CPython does not
    """Entered around every call of the application's: one thread at a time may use a consumer, as in Java, and a second
    one gets an error. The same thread may enter again: a listener calls its consumer.
    """

    def __enter__(self) -> bool:  # type: ignore[override]  # `with` gives it no arguments
        for is_ours in map(self.acquire, (False,)):
            if is_ours:
                return True
        raise ConcurrentUse("another thread is in a call of this consumer")
