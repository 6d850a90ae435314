"""What of the metadata log is on the disk: one flush at a time, on a worker.

What is appended while a flush is under way waits for the next one, together: the more there is, the fewer syncs each
costs. A log that is cut during a flush may hold other records than those that were synced, so what counts as durable
never lies behind its end. A flush that a moment without descriptors, memory or space keeps from being begun is put off:
nothing of it has failed, and who waits for it would wait for ever.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

from ottla.base.ports import Timers, Workers
from ottla.log.errors import PASSING
from ottla.log.flush import Flush
from ottla.runtime.apart import later
from ottla.runtime.metadata.storage.store import MetadataStore
from ottla.runtime.rate_limited_log import TroubleLog

_log = logging.getLogger(__name__)

_TRY_AGAIN_S: Final = 1.0


class FlushedLog(Protocol):
    """The log whose flushes these are."""

    def on_flushed(self, durable_offset: int) -> None: ...

    def flush(self) -> None:
        """Starts the next flush, if it is time for one."""

    def apart(self, callback: Callable[..., object]) -> bool:
        """Calls back; what that raises is no reason to do nothing more here."""

    def on_idle(self) -> None:
        """A worker has come back."""

    def fail(self, problem: Exception) -> None: ...


class MetadataFlushes:
    """`durable_offset` is that before which all is on the disk; -1 while nothing is known of it."""

    def __init__(self, owner: FlushedLog, store: MetadataStore, workers: Workers, timers: Timers | None = None) -> None:
        """Without timers there is nothing to wait by, and a flush that cannot be begun is a failure."""
        self.durable_offset = -1
        self.is_under_way = False
        self._owner = owner
        self._store = store
        self._workers = workers
        self._timers = timers
        self._troubles = None if timers is None else TroubleLog(_log, timers.now_s)
        self._is_stopped = False
        self._is_put_off = False
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    @property
    def is_durable(self) -> bool:
        """All that is in the log is on the disk, and nothing that was cut away."""
        log = self._store.log
        return self.durable_offset >= log.log_end_offset and not log.has_unsynced_cut

    def start(self) -> None:
        """A flush of all that is appended, unless one is under way, which is then followed by another."""
        if self.is_under_way or self._is_put_off or self._is_stopped or self.is_durable:
            return
        try:
            flush = self._store.start_flush()
        except Exception as problem:
            self._on_not_begun(problem)
            return
        self.is_under_way = True
        self._workers.run(flush.run, lambda _: self._on_flushed(flush), self._on_failed)

    def _on_not_begun(self, problem: Exception) -> None:
        is_passing = isinstance(problem, OSError) and problem.errno in PASSING
        if not is_passing or self._timers is None or self._troubles is None:
            self._owner.fail(problem)
            return
        self._is_put_off = True
        text = "the metadata log cannot be flushed, trying again in %g s: %s"
        self._troubles.warning("flush", text, _TRY_AGAIN_S, problem)
        later(self._timers, _TRY_AGAIN_S, self._start_again)

    def _start_again(self) -> None:
        self._is_put_off = False
        self.start()

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls back when all that is in the log now is on the disk."""
        if self.is_durable:
            then()
        else:
            self._waiting.append((self._store.log.log_end_offset, then))
            self.start()

    def on_truncated(self) -> None:
        self.durable_offset = min(self.durable_offset, self._store.log.log_end_offset)

    def stop(self) -> None:
        """Nothing can be relied on to be durable any more."""
        self._is_stopped = True

    def _on_flushed(self, flush: Flush) -> None:
        self.is_under_way = False
        try:
            self.durable_offset = min(self._store.finish_flush(flush), self._store.log.log_end_offset)
        except Exception as problem:
            self._owner.fail(problem)
            return
        self._owner.on_flushed(self.durable_offset)
        self._owner.flush()
        waiting, self._waiting = self._waiting, []
        is_cut = self._store.log.has_unsynced_cut
        for offset, then in waiting:
            if offset <= self.durable_offset and not is_cut:
                self._owner.apart(then)
            else:
                self._waiting.append((offset, then))
        self._owner.on_idle()

    def _on_failed(self, problem: Exception) -> None:
        self.is_under_way = False
        self._owner.fail(problem)
