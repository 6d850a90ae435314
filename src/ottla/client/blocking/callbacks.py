"""Users' callbacks, which run without the client's lock: they may take locks that others hold while they send.

They run on the client's own thread and nowhere else, one at a time and in order. So a caller who waits with a time
limit keeps to it whatever a callback does, and Ctrl-C, which strikes on the main thread, never strikes in one. One that
is added when the client is closed, and that thread has ended, runs at once, where it is added.
"""

from collections import deque
from collections.abc import Callable
from threading import Event, get_ident
from typing import Any

from ottla.client.errors import InvalidState
from ottla.client.io.real_ports import log_problem


class Callbacks:
    """One client's. `nudge` has the client's thread come here soon."""

    def __init__(self, nudge: Callable[[], None]) -> None:
        self._due: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._nudge = nudge
        self._runner: int | None = None

    def add(self, callback: Callable[[Any], None], argument: Any) -> None:
        self._due.append((callback, argument))

    def are_due(self) -> bool:
        return bool(self._due)

    @property
    def are_idle(self) -> bool:
        """Whether none is due and none runs."""
        return not self._due and self._runner is None

    @property
    def is_running_here(self) -> bool:
        """Whether the caller is a callback."""
        return self._runner == get_ident()

    def run(self) -> None:
        """Runs those that are due. For the client's own thread, which no callback may end: `sys.exit()` is logged.

        Once that has ended, for the caller that added one.
        """
        self._runner = get_ident()
        try:
            while self._due:
                try:
                    callback, argument = self._due.popleft()
                except IndexError:  # once the thread has ended, several may be here
                    return
                try:
                    callback(argument)
                except BaseException as problem:
                    log_problem(problem)
        finally:
            self._runner = None

    def check_may_wait(self) -> None:
        """What a callback would wait for may come only after it."""
        if self.is_running_here:
            raise InvalidState("a callback cannot wait for deliveries or for room: do it on another thread")

    def all_run(self, timeout_s: float | None) -> bool:
        """Waits until those that are due now have run; returns whether they have."""
        if self.are_idle:
            return True
        over = Event()
        self.add(lambda _: over.set(), None)
        self._nudge()
        return over.wait(timeout_s)
