"""The levels of this node's loggers, by Kafka's names for levels (KIP-412). They last until the node stops.

A request changes all that it names, or nothing.
"""

import logging
from typing import Final

from ottla.machines.metadata.decisions.alter_configs import Operation
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import IncrementalAlterConfigsRequest

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Change = IncrementalAlterConfigsRequest.AlterableConfig

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


def change_loggers(node_id: int, resource: Resource, *, validate_only: bool) -> Refusal:
    """The outcome; its code is NONE where the levels were changed, or could be."""
    if resource.resource_name != str(node_id):
        return Refusal(ErrorCode.INVALID_REQUEST, f"This is node {node_id}; it has no loggers of another.")
    if len({change.name for change in resource.configs}) < len(resource.configs):
        return Refusal(ErrorCode.INVALID_REQUEST, "A logger appears more than once.")
    for change in resource.configs:
        refusal = _check(change)
        if refusal is not None:
            return refusal
    if not validate_only:
        for change in resource.configs:
            if change.config_operation == Operation.SET:
                set_level(change.name, str(change.value))
            else:
                unset_level(change.name)
    return Refusal(ErrorCode.NONE)


def _check(change: Change) -> Refusal | None:
    if change.value is None and change.config_operation != Operation.DELETE:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.name}")
    if not exists(change.name):
        return Refusal(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.config_operation == Operation.SET:
        if change.value in LEVELS:
            return None
        return Refusal(ErrorCode.INVALID_CONFIG, f"{change.value} is not a log level; there are {', '.join(LEVELS)}.")
    if change.config_operation == Operation.DELETE:
        if change.name != ROOT:
            return None
        return Refusal(ErrorCode.INVALID_REQUEST, "The root logger cannot be without a level.")
    return Refusal(ErrorCode.INVALID_REQUEST, "A log level is set or removed; there is nothing else to do with it.")


def _level_name(level: int) -> str:
    """The name of a level, or of the next one above for a number that has none."""
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")
