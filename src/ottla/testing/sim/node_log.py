"""What nodes log in a simulation: an exception that was nobody's fault from outside is a bug of theirs."""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ottla.testing.sim.workloads.history import History

_LOGGER = "ottla"


class NodeLog(logging.Handler):
    """Within its block, takes what nodes log and prints nothing. `note` hears why a node gives up.

    Errors of the disk are made up here, and expected.
    """

    def __init__(self, history: History, note: Callable[[str], None]) -> None:
        super().__init__(logging.DEBUG)
        self._history = history
        self._note = note
        self._before = (True, logging.NOTSET)

    def __enter__(self) -> Self:
        logger = logging.getLogger(_LOGGER)
        self._before = logger.propagate, logger.level
        logger.propagate = False
        logger.setLevel(logging.ERROR)
        logger.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        logger = logging.getLogger(_LOGGER)
        logger.removeHandler(self)
        logger.propagate, level = self._before
        logger.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.CRITICAL:
            self._note(f"a node says: {record.getMessage()}")
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None and not isinstance(problem, OSError):
            self._history.violated("no node raises", f"{record.getMessage()}: {problem!r}")
