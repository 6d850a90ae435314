"""What runs in a process of its own until it is told to stop, a node or a registry: the loop, and the signals.

The first signal stops in good order, a second one at once. While it starts, the first one is enough, if nothing is open
yet that would have to be closed.
"""

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from ottla.runtime.loop import NodeLoop
from ottla.runtime.procedure import Procedure
from ottla.runtime.timers import LoopTimers

STOPPED_AT_ONCE = 130
_YOUNG_OBJECTS = 10_000

StopSignals = Callable[[NodeLoop, Callable[[str], None]], AbstractContextManager[None]]
"""Calls back on the loop with the name of each signal that tells the node to stop. The program says which those are."""


class ProcessLife:
    """From start to end, on a loop that is its own meanwhile. `log` is where signals are reported."""

    def __init__(self, loop: NodeLoop, stop_signals: StopSignals, log: logging.Logger) -> None:
        self._loop = loop
        self._stop_signals = stop_signals
        self._signal_log = log
        self._status: int | None = None
        self._problem: Exception | None = None
        self._is_up = self._is_stopping = False
        self._when_stopping: list[Callable[[], None]] = []

    async def _live(self) -> int:
        """Starts, waits until it is to stop, and stops. Returns the exit status."""
        raise NotImplementedError

    def _abandon(self) -> None:
        """Leaves everything as it is, at the end, in good order or not."""
        raise NotImplementedError

    def _can_be_left(self) -> bool:
        """Whether nothing would have to be closed, while it starts."""
        return True

    def run(self) -> int:
        """Returns the exit status. What it cannot start for is raised."""
        # Timers of its own: to stop is to close those of the world, and to continue.
        timers = LoopTimers(self._loop)
        with self._stop_signals(self._loop, self._on_signal):
            life = Procedure(self._live(), timers, self._end, self._fail)
            try:
                if self._status is None and self._problem is None:
                    self._loop.run()
            finally:
                life.cancel()
                timers.close()
                self._abandon()
        if self._problem is not None:
            raise self._problem
        assert self._status is not None
        return self._status

    def _tell_when_stopping(self, callback: Callable[[], None]) -> None:
        if self._is_stopping:
            callback()
        else:
            self._when_stopping.append(callback)

    # What may end it

    def _on_signal(self, name: str) -> None:
        self._signal_log.info("Terminating process due to signal %s", name)  # Kafka's words
        if self._is_stopping:
            self._signal_log.warning("stopping at once, in the middle of a clean stop: this was the second signal")
            self._end(STOPPED_AT_ONCE)
        elif not self._is_up and self._can_be_left():
            self._end(0)
        self._stop()

    def _stop(self) -> None:
        self._is_stopping = True
        callbacks, self._when_stopping = self._when_stopping, []
        for callback in callbacks:
            callback()

    def _end(self, status: int) -> None:
        if self._status is None:
            self._status = status
        self._loop.stop()

    def _fail(self, problem: Exception) -> None:
        self._problem = problem
        self._loop.stop()


@contextmanager
def no_collections() -> Iterator[None]:
    """Looks for no garbage meanwhile, and later not among what is there by then: with many partitions that is a lot."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        # What the requests of a turn are made of goes with their replies: to look through it before finds nothing.
        gc.set_threshold(_YOUNG_OBJECTS, 10, 10)
        gc.enable()
