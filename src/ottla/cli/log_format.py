"""How a node's log lines look: for people on a terminal, or one JSON object a line for machines."""

import json
import logging
import sys
import time
from typing import TextIO

FORMATS = ("text", "json")


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


def set_up_logging(format: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Sends the log lines of this process to `stream` (standard error)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    if format == "json":
        handler.setFormatter(_JsonLines())
    else:
        handler.setFormatter(_TextLines("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
