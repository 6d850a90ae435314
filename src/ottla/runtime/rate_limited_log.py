"""Lines of the log that anybody can cause, a few at a time; and what callbacks have raised."""

import logging
from collections.abc import Callable, Hashable
from traceback import walk_tb
from typing import Final

from ottla.base.pacing import Pacing, and_more

_LINES: Final = 10
_WINDOW_S: Final = 10.0


class RateLimitedLog:
    """Writes ten lines in ten seconds, and no more."""

    def __init__(self, log: logging.Logger, now_s: Callable[[], float]) -> None:
        self._log = log
        self._now_s = now_s
        self._since_s = -_WINDOW_S
        self._written = 0
        self._left_out = 0
        self._level = logging.WARNING

    def info(self, message: str, *values: object) -> None:
        self._write(logging.INFO, message, *values)

    def warning(self, message: str, *values: object) -> None:
        self._write(logging.WARNING, message, *values)

    def error(self, message: str, *values: object) -> None:
        self._write(logging.ERROR, message, *values)

    def _write(self, level: int, message: str, *values: object) -> None:
        now_s = self._now_s()
        if now_s - self._since_s >= _WINDOW_S:
            if self._left_out:
                self._log.log(self._level, "suppressed %d more lines like these", self._left_out)
            self._since_s, self._written, self._left_out = now_s, 0, 0
        if self._written < _LINES:
            self._written += 1
            self._log.log(level, message, *values)
        else:
            self._left_out += 1
            self._level = level


class TroubleLog:
    """Of what happens by itself: a full disk, a leader that sends corrupt batches. One line about each thing at once,
    and then fewer and fewer, down to one a minute.
    """

    def __init__(self, log: logging.Logger, now_s: Callable[[], float]) -> None:
        self._log = log
        self._now_s = now_s
        self._pacing = Pacing()

    def warning(self, about: Hashable, message: str, *values: object) -> None:
        self._write(logging.WARNING, about, message, *values)

    def error(self, about: Hashable, message: str, *values: object) -> None:
        self._write(logging.ERROR, about, message, *values)

    def _write(self, level: int, about: Hashable, message: str, *values: object) -> None:
        left_out = self._pacing.due(about, self._now_s())
        if left_out is not None:
            self._log.log(level, message + "%s", *values, and_more(left_out))


# Faults of a node's own in its log: each kind with its traceback when it first comes, and then once a minute.
#
# What is done again and again may raise again and again, as often as it is done (`apart`). One line a minute says so,
# with how many there were; the metrics have the count.

_AGAIN_S: Final = 60.0
_MOST_KINDS: Final = 100

_Kind = tuple[object, ...]


class _Logged:
    __slots__ = ("count", "since_s")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.count = 0


class FaultLog:
    """Faults are of one kind if they have the same type and were raised by the same line."""

    def __init__(self, log: logging.Logger, now_s: Callable[[], float]) -> None:
        self._log = log
        self._now_s = now_s
        self._logged: dict[_Kind, _Logged] = {}

    def error(self, what: str, problem: BaseException | None) -> None:
        kind, now_s = _kind_of(what, problem), self._now_s()
        last = self._logged.get(kind)
        if last is not None and now_s - last.since_s < _AGAIN_S:
            last.count += 1
            return
        more = f" ({last.count} more like it in the last {now_s - last.since_s:.0f} s)" if last and last.count else ""
        self._logged.pop(kind, None)
        while len(self._logged) >= _MOST_KINDS:
            del self._logged[next(iter(self._logged))]
        self._logged[kind] = _Logged(now_s)
        self._log.error("%s%s", what, more, exc_info=problem)


def _kind_of(what: str, problem: BaseException | None) -> _Kind:
    if problem is None:
        return (what,)
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(problem.__traceback__)]
    return (type(problem), *places[-1:])
