"""How long the leader gathers what is decided before it writes it in one flush (`controller.quorum.append.linger.ms`).

Decisions are in the log at once, so that the next ones build on them. Until the time is over they are neither flushed
nor given to replicas that fetch: one flush of each replica is then for all of them. The time begins with the first
decision after the last write; a batch's worth of bytes ends it early, and so do the quorum's own records, which wait
for nobody.

With no time to gather, which is how a node runs that nobody told otherwise, everything is written at once. What comes
while a flush is under way is written together by the next, so gathering only makes requests wait
([decision 14](docs/decisions/0014-metadata-is-written-at-once.md)).
"""

from collections.abc import Callable

from ottla.base.ports import Timer, Timers
from ottla.runtime.metadata.storage.metadata_batches import MAX_BATCH_BYTES


class Gathering:
    """`from_offset` is where what is gathered begins, None if nothing is. `over` is called when the time is."""

    def __init__(self, linger_ms: int, timers: Timers | None, over: Callable[[], None]) -> None:
        self.from_offset: int | None = None
        assert timers is not None or not linger_ms, "gathering takes time"
        self._linger_ms = linger_ms
        self._timers = timers
        self._over = over
        self._timer: Timer | None = None
        self._bytes = 0

    def add(self, base_offset: int, size: int) -> None:
        """A batch was appended that may wait."""
        if not self._linger_ms:
            return
        self._bytes += size
        if self._bytes >= MAX_BATCH_BYTES:
            self.end()
        elif self.from_offset is None:
            assert self._timers is not None
            self.from_offset = base_offset
            self._timer = self._timers.after(self._linger_ms / 1000, self._on_time_over)

    def end(self) -> None:
        """All that is appended may be written now."""
        if self._timer is not None:
            self._timer.cancel()
        self.from_offset, self._timer, self._bytes = None, None, 0

    def _on_time_over(self) -> None:
        self.end()
        self._over()
