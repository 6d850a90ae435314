"""Keeps the history of a run: in memory for the verdict, and as JSON lines in a file."""

import time
from itertools import count
from pathlib import Path
from threading import Lock

from ottla.testing.chaos.operations import Operation, write_operation


class Recorder:
    """Any thread may use it. No two times that it tells are equal, so they order operations."""

    def __init__(self, path: Path) -> None:
        self.operations: list[Operation] = []
        self._values = count()
        self._lock = Lock()
        self._last_us = 0
        self._file = path.open("w", encoding="utf-8")

    def now_us(self) -> int:
        with self._lock:
            self._last_us = max(self._last_us + 1, time.monotonic_ns() // 1000)
            return self._last_us

    def next_value(self) -> int:
        with self._lock:
            return next(self._values)

    def note(self, operation: Operation) -> None:
        with self._lock:
            self.operations.append(operation)
            write_operation(operation, self._file)

    def close(self) -> None:
        self._file.close()
