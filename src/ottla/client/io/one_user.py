"""A client that one thread at a time may use, and that says so to a second one, as Java's consumer does."""

from threading import RLock

from ottla.client.errors import ConcurrentUse
from ottla.client.io.client_lock import ClientLock


class OneUser:
    """Entered around every call of the application's. The same thread may enter again: a listener calls its consumer.

    Ctrl-C may strike when it is entered or left, and never leaves it taken.
    """

    __slots__ = ("_lock", "_taken")

    def __init__(self, lock: ClientLock) -> None:
        self._lock = lock
        self._taken = RLock()

    def __enter__(self) -> None:
        self._lock.hold_interrupts()
        is_ours = self._taken.acquire(blocking=False)
        try:
            self._lock.release_interrupts()
        except BaseException:
            if is_ours:
                self._taken.release()
            raise
        if not is_ours:
            raise ConcurrentUse("another thread is in a call of this consumer")

    def __exit__(self, *_: object) -> None:
        self._lock.hold_interrupts()
        self._taken.release()
        self._lock.release_interrupts()
