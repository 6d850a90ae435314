"""Users' callbacks, which run without the client's lock: they may take locks that others hold while they send.

They run one at a time and in order, on whichever thread has time for them. Ctrl-C strikes in a callback at once, and
nowhere else: what says that they are being run is always set back, or none would run any more.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock, Thread, current_thread
from typing import Any, Final

from ottla.client.errors import InvalidState
from ottla.client.io.client_lock import ClientLock
from ottla.client.io.real_ports import log_problem

_A_WHILE_S: Final = 0.1
"""How long Ctrl-C may have to wait while another thread is waited for."""


class Callbacks:
    """One client's. `lock` is not held, but knows how interrupts are."""

    def __init__(self, lock: ClientLock) -> None:
        self._due: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._lock = lock
        self._running = Lock()
        self._runner: Thread | None = None

    def add(self, callback: Callable[[Any], None], argument: Any) -> None:
        self._due.append((callback, argument))

    def are_due(self) -> bool:
        return bool(self._due)

    def run(self, waits: bool = False) -> None:
        """Runs those that are due, unless another thread does. `waits`: until that one is through."""
        while self._due or (waits and self._runner is not None):
            if self._runner is current_thread():
                return
            if not self._run_alone(_A_WHILE_S if waits else 0.0) and not waits:
                return

    def check_may_wait(self) -> None:
        """What a callback would wait for may come only after it."""
        if self._runner is current_thread():
            raise InvalidState("a callback cannot wait for deliveries or for room: do it on another thread")

    def _run_alone(self, patience_s: float) -> bool:
        """False if another thread runs them for so long."""
        self._lock.hold_interrupts()
        try:
            if not self._running.acquire(timeout=patience_s):
                return False
            self._runner = current_thread()
            try:
                self._lock.interruptible(self._run_due)
            finally:
                self._runner = None
                self._running.release()
        finally:
            self._lock.release_interrupts()
        return True

    def _run_due(self) -> None:
        while self._due:
            callback, argument = self._due.popleft()
            try:
                callback(argument)
            except Exception as problem:
                log_problem(problem)
