"""The levels of this node's loggers, by Kafka's names for levels (KIP-412). They last until the node stops."""

import logging
from typing import Final

_TRACE: Final = 5
"""Python has no such level; it is below all that it has."""

LEVELS: Final = {
    "TRACE": _TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}

ROOT: Final = "root"


def levels() -> dict[str, str]:
    """Every logger there is and the level that it goes by, its own or that of the one above it."""
    known = logging.root.manager.loggerDict
    named = {name: logger for name, logger in sorted(known.items()) if isinstance(logger, logging.Logger)}
    return {name: _level_name(logger.getEffectiveLevel()) for name, logger in {ROOT: logging.root, **named}.items()}


def exists(name: str) -> bool:
    return name == ROOT or isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)


def set_level(name: str, level: str) -> None:
    logging.getLogger(None if name == ROOT else name).setLevel(LEVELS[level])


def unset_level(name: str) -> None:
    """The logger goes by the level of the one above it again. The root has none above it."""
    assert name != ROOT, "somebody must have a level"
    logging.getLogger(name).setLevel(logging.NOTSET)


def _level_name(level: int) -> str:
    """The name of a level, or of the next one above for a number that has none."""
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")
