"""A client that one thread at a time may use, and that says so to a second one, as Java's consumer does."""

from _thread import RLock  # the class: `threading` has a function that makes one

from ottla.client.errors import ConcurrentUse
from ottla.client.io.client_lock import ClientLock


class OneUser(RLock):  # type: ignore[misc]  # typeshed calls it final, which CPython does not
    """Entered around every call of the application's. The same thread may enter again: a listener calls its consumer.

    Ctrl-C may strike when it is entered or left, and never leaves it taken. So it is a lock, and is left as one:
    a method of ours could be interrupted before its first step.
    """

    def __new__(cls, lock: ClientLock) -> "OneUser":
        return super().__new__(cls)

    def __init__(self, lock: ClientLock) -> None:
        self._interrupts = lock

    def __enter__(self) -> bool:  # type: ignore[override]  # `with` gives it no arguments
        self._interrupts.hold_interrupts()
        is_ours = self.acquire(blocking=False)
        try:
            self._interrupts.release_interrupts()
        except BaseException:
            if is_ours:
                self.release()
            raise
        if not is_ours:
            raise ConcurrentUse("another thread is in a call of this consumer")
        return True
