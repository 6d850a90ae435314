"""What `/admin/loggers` shows and changes: the levels of this process's loggers, by Java's names of levels.

As in Kafka Connect, a level is for a logger and all below it, also for those that had one of their own; `root` is above
all of them. What is changed is told: loggers that had another level before.
"""

import logging
from typing import Final

LEVELS: Final = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
ROOT: Final = "root"


class LogLevels:
    """Of the loggers of a process. Names are Python's: `ottla.connect`, or `root`."""

    def __init__(self) -> None:
        self._changed_ms: dict[str, int] = {}

    def all(self) -> dict[str, dict[str, object]]:
        return {name: self._shown(name) for name in sorted([*_known(), ROOT])}

    def one(self, name: str) -> dict[str, object] | None:
        """None if there is no such logger."""
        return self._shown(name) if name == ROOT or name in _known() else None

    def _shown(self, name: str) -> dict[str, object]:
        return {
            "level": level_name(_logger(name).getEffectiveLevel()),
            "last_modified": self._changed_ms.get(name),
        }

    def set(self, name: str, level: str, now_ms: int) -> list[str]:
        """The names of those that had another level before."""
        number = LEVELS[level]
        _logger(name)  # It is there from now on.
        below = [one for one in _known() if name == ROOT or one.startswith(f"{name}.")]
        concerned = sorted({name, *below})
        changed = [one for one in concerned if _logger(one).getEffectiveLevel() != number]
        for one in below:
            if _logger(one).level:
                _logger(one).setLevel(number)
        _logger(name).setLevel(number)
        self._changed_ms |= dict.fromkeys(changed, now_ms)
        return changed


def _known() -> list[str]:
    return [name for name, one in logging.root.manager.loggerDict.items() if isinstance(one, logging.Logger)]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)


def level_name(number: int) -> str:
    return next((name for name, level in LEVELS.items() if level <= number), "TRACE")
