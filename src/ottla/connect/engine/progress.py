"""How far a run is: said by its process in a file of its directory, read by the engine.

The planner process of a query is on the engine's machine, whatever machines its tasks are on, so a file is enough. It
is renamed into place, and written at most once a second, and only if something has changed: an idle connector writes
nothing. At the end of all that there was it is written at once: `ottla connect run --once` waits for that.
"""

import json
import os
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any, Final

from ottla.connect.engine.run import Run
from ottla.connect.engine_port import Measured, Progress

_FILE: Final = "progress"
_EVERY_S: Final = 1.0
_MOST_OWN: Final = 32
_SAMPLES: Final = 7
"""With one every five seconds: rates are over half a minute."""


class Told:
    """The writing side, in the planner process. Its counts may be changed by one thread, and told by another."""

    def __init__(self, run: Run) -> None:
        self._path = Path(run.directory) / _FILE
        self._last: Progress | None = None
        self._last_s = float("-inf")
        self.read = self.written = self.skipped = 0
        self.polls, self.poll_ms, self.longest_poll_ms = 0, 0.0, 0.0
        self.batches, self.batch_ms, self.longest_batch_ms, self.last_batch = 0, 0.0, 0.0, 0
        self.under_way = self.partitions = 0
        self.lag_records: int | None = None
        self.lag_s: float | None = None
        self.is_at_end: bool | None = None
        self.own: dict[str, float] = {}

    def polled(self, records: int, took_s: float) -> None:
        self.read += records
        self.polls += 1
        self.poll_ms += took_s * 1000
        self.longest_poll_ms = max(self.longest_poll_ms, took_s * 1000)

    def wrote(self, records: int, took_s: float) -> None:
        self.written += records
        self.last_batch = records
        self.batches += 1
        self.batch_ms += took_s * 1000
        self.longest_batch_ms = max(self.longest_batch_ms, took_s * 1000)

    def tell(self) -> None:
        """Writes it, if it is time to. A disk that is full, or a directory that was cleared, does not stop the data:
        it is told again a second later."""
        now_s = monotonic()
        is_new_end = bool(self.is_at_end) and not (self._last is not None and self._last.is_at_end)
        if now_s - self._last_s < _EVERY_S and not is_new_end:
            return
        now = Progress(**{name: getattr(self, name) for name in Progress.__slots__})
        if now == self._last:
            return
        unfinished = self._path.with_suffix(".unfinished")
        self._last_s = now_s
        with suppress(OSError):
            unfinished.write_text(json.dumps(asdict(now)))
            os.replace(unfinished, self._path)
            self._last = now


def numbers(given: Any) -> dict[str, float]:
    """What a connector counts, without what is no number, and not without end."""
    found = {str(name): float(value) for name, value in given.items() if isinstance(value, int | float)}
    return {name: found[name] for name in sorted(found)[:_MOST_OWN] if isfinite(found[name])}


class Heard:
    """The reading side, of one run."""

    def __init__(self, run: Run) -> None:
        self._path = Path(run.directory) / _FILE
        self._samples: deque[tuple[float, Progress]] = deque(maxlen=_SAMPLES)

    def now(self) -> Progress | None:
        """None if nothing was said yet, or the run is over."""
        try:
            return Progress(**json.loads(self._path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def sample(self) -> None:
        """To be called every few seconds."""
        found = self.now()
        if found is not None:
            self._samples.append((monotonic(), found))

    def measured(self) -> Measured | None:
        found = self.now()
        if found is None:
            return None
        samples = tuple(self._samples)
        if not samples:
            return Measured(found, 0.0, 0.0)
        since_s, first = samples[0]
        elapsed_s = max(monotonic() - since_s, 1.0)
        return Measured(found, (found.read - first.read) / elapsed_s, (found.written - first.written) / elapsed_s)
