"""How a node's log lines look, and where they go: for people on a terminal, or one JSON object a line for machines; to
standard error, or to a file that is rotated.
"""

import json
import logging
import os
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, TextIO

FORMATS = ("text", "json")

FILE_BYTES: Final = 100 << 20
"""A log file that has grown to this is rotated."""
FILES_KEPT: Final = 10
_LOOK_AGAIN_S: Final = 1.0


class _TextLines(logging.Formatter):
    """A message stays on its line: names come from clients, and must not look like lines of ours."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        if not record.message.isprintable():
            record.message = "".join(one if one.isprintable() else _escaped(one) for one in record.message)
        return super().formatMessage(record)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{moment}.{int(record.msecs):03d}Z"


class LogFile(logging.StreamHandler[TextIO]):
    """Appends to a file. One that has grown large becomes `FILE.1`, that one `FILE.2`, and so on; the oldest goes.

    A file that somebody else has renamed or removed (logrotate) is begun anew. A line that cannot be written is lost,
    and standard error has one line about that: a node does not stop because its log is full.
    """

    def __init__(self, path: str, *, most_bytes: int = FILE_BYTES, kept: int = FILES_KEPT) -> None:
        self.path = os.path.abspath(path)
        self._most_bytes = most_bytes
        self._kept = kept
        self._looked_s = 0.0
        self._has_complained = False
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        super().__init__(self._open())

    def _open(self) -> TextIO:
        return open(self.path, "a", encoding="utf-8", errors="backslashreplace")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._follow_renames()
            self.stream.write(self.format(record) + self.terminator)
            self.stream.flush()
            if self.stream.tell() >= self._most_bytes:
                self._rotate()
        except OSError as problem:
            self._complain(problem)
        else:
            self._has_complained = False

    def _follow_renames(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_AGAIN_S:
            return
        self._looked_s = now_s
        try:
            is_same = os.path.samestat(os.stat(self.path), os.fstat(self.stream.fileno()))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            self._reopen()

    def _rotate(self) -> None:
        names = [self.path, *(f"{self.path}.{number}" for number in range(1, self._kept))]
        for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
            with suppress(FileNotFoundError):
                os.replace(newer, older)
        if len(names) == 1:
            os.truncate(self.path, 0)
        self._reopen()

    def _reopen(self) -> None:
        with suppress(OSError):
            self.stream.close()
        self.stream = self._open()

    def _complain(self, problem: OSError) -> None:
        if not self._has_complained:
            self._has_complained = True
            print(f"ottla: cannot write to the log {self.path}: {problem.strerror or problem}", file=sys.stderr)


def set_up_logging(
    format: str, level: str = "info", stream: TextIO | None = None, *, file: logging.Handler | None = None
) -> None:
    """Sends the log lines of this process to a file, or to `stream` (standard error).

    In JSON everything is: warnings of Python's, and an exception that ends the process.
    """
    handler = file or logging.StreamHandler(stream or sys.stderr)
    if format == "json":
        handler.setFormatter(_JsonLines())
        logging.captureWarnings(True)
        sys.excepthook = _log_exception
    else:
        dated = "%Y-%m-%d %H:%M:%S" if file is not None else "%H:%M:%S"
        handler.setFormatter(_TextLines("%(asctime)s %(levelname)-7s %(message)s", dated))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _log_exception(
    kind: type[BaseException], problem: BaseException, traceback: TracebackType | None
) -> None:  # as sys.excepthook
    logging.getLogger("ottla").critical("%s", problem or kind.__name__, exc_info=(kind, problem, traceback))


def print_json_line(message: str, level: str = "info", **fields: object) -> None:
    """A line that is not of the log, such as that the node is ready, in the manner of the log."""
    record = logging.LogRecord("ottla", logging.INFO, "", 0, "", (), None)
    line = {"time": _JsonLines().formatTime(record), "level": level, "logger": "ottla", "message": message, **fields}
    print(json.dumps(line, ensure_ascii=False), file=sys.stdout if level == "info" else sys.stderr, flush=True)
