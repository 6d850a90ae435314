"""Log lines that come as often as something is tried: some of them, and then how many were left out."""

import logging
from collections.abc import Callable
from typing import Final

_LINES: Final = 10
_WINDOW_S: Final = 10.0


class SparingLog:
    """Writes ten lines in ten seconds, and no more."""

    def __init__(self, log: logging.Logger, now_s: Callable[[], float]) -> None:
        self._log = log
        self._now_s = now_s
        self._since_s = -_WINDOW_S
        self._written = 0
        self._left_out = 0

    def warning(self, message: str, *values: object) -> None:
        self._write(logging.WARNING, message, *values)

    def error(self, message: str, *values: object) -> None:
        self._write(logging.ERROR, message, *values)

    def _write(self, level: int, message: str, *values: object) -> None:
        now_s = self._now_s()
        if now_s - self._since_s >= _WINDOW_S:
            if self._left_out:
                self._log.warning("%d more lines like these were left out", self._left_out)
            self._since_s, self._written, self._left_out = now_s, 0, 0
        if self._written < _LINES:
            self._written += 1
            self._log.log(level, message, *values)
        else:
            self._left_out += 1
