"""Lines of clients to the application's log: logger `ottla.client`.

A line is written by a thread of its own. A handler of the application's may send records with the very client that has
something to tell, or wait for a thread that does: with the client's lock held that would be a deadlock. The thread
begins with the first line of a level that is listened to, and ends when there was none for a while. What it has not
written when the program ends, the end of the program writes.

`logging` is imported when there is such a line. Tools, which start often and rarely have anything to tell, put a
function of their own in its place (`write_by`).
"""

import atexit
import os
import sys
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from time import time
from typing import Final

from ottla.client.client_log import WARNING, Line

_MOST_LINES: Final = 1000
_PATIENCE_S: Final = 1.0

_NAMES: Final = ("ottla.client", "ottla")
"""The logger, and the one that it has its level from if it has none."""

Dated = tuple[float, Line]


def _is_listened_to(level: int) -> bool:
    """As the logger says, without its `isEnabledFor`, which takes a lock: its holder may wait for us."""
    logging = sys.modules.get("logging")
    if logging is None:  # nobody has set a level
        return level >= WARNING
    try:
        manager = logging.Logger.manager
        logger = next(filter(_has_levels, map(manager.loggerDict.get, _NAMES)), manager.root)
        return bool(manager.disable < level >= logger.getEffectiveLevel())
    except AttributeError:  # another thread is importing it
        return True


def _has_levels(logger: object) -> bool:
    """A name that only names below it were asked for has none."""
    return hasattr(logger, "getEffectiveLevel")


def _to_logging(line: Line, at_s: float) -> None:
    from logging import getLogger

    logger = getLogger(_NAMES[0])
    if logger.isEnabledFor(line.level):
        extra = {"about": line.about}
        text = f"{line.client}: {line.text}" if line.client else line.text
        record = logger.makeRecord(logger.name, line.level, __file__, 0, "%s", (text,), None, extra=extra)
        record.created, record.msecs = at_s, at_s % 1 * 1000
        logger.handle(record)


class _Writer:
    """The process's one. A fork begins with none of the lines of its parent."""

    def __init__(self) -> None:
        self.write: Callable[[Line, float], None] = _to_logging
        self.is_written_at_once = False
        self._lines: deque[Dated] = deque(maxlen=_MOST_LINES)
        self._news = Condition()
        self._thread: Thread | None = None
        self._is_busy = False

    def put(self, line: Line) -> None:
        """From any thread, whatever locks it holds."""
        if self.is_written_at_once:
            self._write(line, time())
            return
        if self.write is _to_logging and not _is_listened_to(line.level):
            return
        with self._news:
            self._lines.append((time(), line))
            if self._thread is not None:
                self._news.notify_all()
                return
            self._thread = Thread(target=self._run, name="ottla-log", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the program ends: `finish` writes it
                self._thread = None

    def _run(self) -> None:
        while True:
            with self._news:
                self._is_busy = False
                self._news.notify_all()
                if not self._lines:
                    self._news.wait(_PATIENCE_S)
                if not self._lines:
                    self._thread = None
                    return
                at_s, line = self._lines.popleft()
                self._is_busy = True
            self._write(line, at_s)

    def _write(self, line: Line, at_s: float) -> None:
        try:
            self.write(line, at_s)
        except Exception as problem:  # of a handler that raises: the thread has more to write
            from ottla.client.io.real_ports import log_problem

            log_problem(problem)

    def flush(self, timeout_s: float) -> None:
        """Until all is written, so long at most: a handler may wait for the caller."""
        with self._news:
            self._news.wait_for(lambda: not self._lines and not self._is_busy, timeout_s)

    def finish(self) -> None:
        """The program ends, and daemon threads with it."""
        if self._thread is not None:
            self.flush(_PATIENCE_S)
        while self._lines:
            at_s, line = self._lines.popleft()
            self._write(line, at_s)


_writer = _Writer()


def write(line: Line) -> None:
    _writer.put(line)


def write_by(function: Callable[[Line, float], None], *, at_once: bool = False) -> None:
    """Has the lines of this process's clients written in another way: given the line and the time of day it is of.

    At once is on the client's own thread, with its lock: only for a function that waits for nobody.
    """
    _writer.write, _writer.is_written_at_once = function, at_once


def flush(timeout_s: float = _PATIENCE_S) -> None:
    """Waits for the lines that were reported so far."""
    _writer.flush(timeout_s)


def _begin_anew() -> None:
    global _writer
    before, _writer = _writer, _Writer()
    _writer.write, _writer.is_written_at_once = before.write, before.is_written_at_once


atexit.register(lambda: _writer.finish())
os.register_at_fork(after_in_child=_begin_anew)
