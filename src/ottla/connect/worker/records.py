"""What stands in Kafka Connect's three topics, byte for byte as version 4.3.1 writes it.

    configurations   connector-NAME        {"properties":{…}}                      null: the connector is deleted
                     task-NAME-N           {"properties":{…}}                      counts once its commit is there
                     commit-NAME           {"tasks":N}                             the tasks before it are all there
                     tasks-fencing-NAME    {"task-count":N}                        how many producers to fence (KIP-618)
                     target-state-NAME     {"state":"PAUSED","state.v2":"STOPPED"} what it is to do (KIP-875)
                     restart-connector-NAME, session-key, logger-cluster-NAME      for workers of that time
    states           status-connector-NAME, status-task-NAME-N                     {"state":…,"trace":…,"worker_id":…,…}
                     status-topic-TOPIC:connector-NAME                             a topic that a connector has used
    offsets          ["NAME",{partition}]                                          {offset}; null: forgotten

A name may contain anything, also `-0` at its end, so a task's number is what stands behind the last `-`. What cannot be
read is no record of Connect's (`parse` gives None): it is left alone.
"""

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple


class Topic(Enum):
    """Which of the three."""

    CONFIGS = "config.storage.topic"
    STATUS = "status.storage.topic"
    OFFSETS = "offset.storage.topic"


class LogRecord(NamedTuple):
    """One record of one of the topics."""

    topic: Topic
    key: bytes
    value: bytes | None


class TargetState(Enum):
    """What a connector is to do."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class RunState(Enum):
    """What a connector or a task does."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    DESTROYED = "DESTROYED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


class Status(NamedTuple):
    """Of a connector or a task, as the worker that runs it has written it."""

    state: RunState
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None


class ConnectorConfig(NamedTuple):
    name: str
    properties: dict[str, str | None] | None
    """None: it is deleted."""


class TaskConfig(NamedTuple):
    name: str
    task: int
    properties: dict[str, str | None] | None


class TasksCommitted(NamedTuple):
    name: str
    task_count: int


class TasksFencing(NamedTuple):
    name: str
    task_count: int


class Target(NamedTuple):
    name: str
    target: TargetState | None
    """None: it is deleted with its connector."""


class LoggerLevel(NamedTuple):
    """A level that all workers are to use for a logger."""

    logger: str
    level: str


class ConnectorStatus(NamedTuple):
    name: str
    status: Status | None


class TaskStatus(NamedTuple):
    name: str
    task: int
    status: Status | None


class TopicUsed(NamedTuple):
    name: str
    topic: str
    task: int
    at_ms: int | None
    """When it was first used; None: it is forgotten."""


class SourceOffset(NamedTuple):
    name: str
    partition: str
    """JSON, as it stands in the key."""
    offset: dict[str, Any] | None


Fact = (
    ConnectorConfig
    | TaskConfig
    | TasksCommitted
    | TasksFencing
    | Target
    | LoggerLevel
    | ConnectorStatus
    | TaskStatus
    | TopicUsed
    | SourceOffset
)
"""What one record says."""

_CONNECTOR: Final = "connector-"
_TASK: Final = "task-"
_COMMIT: Final = "commit-"
_FENCING: Final = "tasks-fencing-"
_TARGET: Final = "target-state-"
_LOGGER: Final = "logger-cluster-"
_CONNECTOR_STATUS: Final = "status-connector-"
_TASK_STATUS: Final = "status-task-"
_TOPIC_STATUS: Final = "status-topic-"
_TOPIC_OF: Final = ":connector-"
SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Of JSON that may have half of a pair."""


def json_bytes(value: object) -> bytes:
    """As Jackson writes it: without blanks, and in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# --- writing ---


def connector_record(name: str, config: Mapping[str, str | None] | None) -> LogRecord:
    value = None if config is None else json_bytes({"properties": dict(config)})
    return LogRecord(Topic.CONFIGS, f"{_CONNECTOR}{name}".encode(), value)


def tasks_records(name: str, configs: list[Mapping[str, str | None]], *, is_source: bool) -> list[LogRecord]:
    """The tasks of a connector, and that these are all. For a source also how many producers a later one must fence."""
    tasks = [
        LogRecord(Topic.CONFIGS, f"{_TASK}{name}-{number}".encode(), json_bytes({"properties": dict(config)}))
        for number, config in enumerate(configs)
    ]
    tasks.append(commit_record(name, len(configs)))
    if is_source and configs:
        key = f"{_FENCING}{name}".encode()
        tasks.append(LogRecord(Topic.CONFIGS, key, json_bytes({"task-count": len(configs)})))
    return tasks


def commit_record(name: str, count: int) -> LogRecord:
    return LogRecord(Topic.CONFIGS, f"{_COMMIT}{name}".encode(), json_bytes({"tasks": count}))


def target_record(name: str, target: TargetState | None) -> LogRecord:
    """Workers from before KIP-875 read `state`, and know no STOPPED."""
    key = f"{_TARGET}{name}".encode()
    if target is None:
        return LogRecord(Topic.CONFIGS, key, None)
    older = TargetState.PAUSED if target is TargetState.STOPPED else target
    return LogRecord(Topic.CONFIGS, key, json_bytes({"state": older.value, "state.v2": target.value}))


def logger_record(logger: str, level: str) -> LogRecord:
    return LogRecord(Topic.CONFIGS, f"{_LOGGER}{logger}".encode(), json_bytes({"level": level}))


def _status_value(status: Status | None) -> bytes | None:
    if status is None:
        return None
    return json_bytes(
        {
            "state": status.state.value,
            "trace": status.trace,
            "worker_id": status.worker_id,
            "generation": status.generation,
            "version": status.version,
        }
    )


def connector_status_record(name: str, status: Status | None) -> LogRecord:
    return LogRecord(Topic.STATUS, f"{_CONNECTOR_STATUS}{name}".encode(), _status_value(status))


def task_status_record(name: str, task: int, status: Status | None) -> LogRecord:
    return LogRecord(Topic.STATUS, f"{_TASK_STATUS}{name}-{task}".encode(), _status_value(status))


def topic_record(name: str, topic: str, task: int, at_ms: int | None) -> LogRecord:
    key = f"{_TOPIC_STATUS}{topic}{_TOPIC_OF}{name}".encode()
    if at_ms is None:
        return LogRecord(Topic.STATUS, key, None)
    told = {"name": topic, "connector": name, "task": task, "discoverTimestamp": at_ms}
    return LogRecord(Topic.STATUS, key, json_bytes({"topic": told}))


def offset_record(name: str, partition: str, offset: Mapping[str, Any] | None) -> LogRecord:
    """`partition` is JSON, as `partition_text` writes it."""
    key = json_bytes(name)
    return LogRecord(
        Topic.OFFSETS,
        b"[%s,%s]" % (key, partition.encode()),
        None if offset is None else json_bytes(offset),
    )


def partition_text(partition: Mapping[str, Any]) -> str:
    return json_bytes(partition).decode()


# --- reading ---


def parse(record: LogRecord) -> Fact | None:
    """None if this is nothing that a worker must remember, or nothing of Connect's."""
    try:
        if record.topic is Topic.OFFSETS:
            return _offset(record)
        key = record.key.decode()
        value = None if record.value is None else _object(record.value)
        return _config(key, value) if record.topic is Topic.CONFIGS else _status(key, value)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None  # Of another shape than Connect's.


def _json(content: bytes) -> Any:
    """Raises `ValueError`, also for half of a surrogate pair: it could be neither written nor shown again."""
    found = json.loads(content)
    if SURROGATE.search(content):
        json_bytes(found)
    return found


def _object(content: bytes) -> dict[str, Any]:
    found = _json(content)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _config(key: str, value: dict[str, Any] | None) -> Fact | None:
    if key.startswith(_CONNECTOR):
        properties = None if value is None else _properties(value)
        return None if value is not None and properties is None else ConnectorConfig(key[len(_CONNECTOR) :], properties)
    if key.startswith(_FENCING):
        count = None if value is None else value.get("task-count")
        return TasksFencing(key[len(_FENCING) :], count) if isinstance(count, int) else None
    if key.startswith(_TASK):
        name, number = _numbered(key[len(_TASK) :])
        return None if number is None else TaskConfig(name, number, None if value is None else _properties(value))
    if key.startswith(_COMMIT):
        count = None if value is None else value.get("tasks")
        return TasksCommitted(key[len(_COMMIT) :], count) if isinstance(count, int) else None
    if key.startswith(_TARGET):
        return _target(key[len(_TARGET) :], value)
    if key.startswith(_LOGGER):
        level = None if value is None else value.get("level")
        return LoggerLevel(key[len(_LOGGER) :], level) if isinstance(level, str) else None
    return None


def _target(name: str, value: dict[str, Any] | None) -> Target | None:
    if value is None:
        return Target(name, None)
    text = value.get("state.v2") or value.get("state")
    return Target(name, TargetState(text)) if text in TargetState.__members__ else None


def _properties(value: dict[str, Any]) -> dict[str, str | None] | None:
    found = value.get("properties")
    if not isinstance(found, dict):
        return None
    return {name: None if one is None else str(one) for name, one in found.items()}


def _numbered(text: str) -> tuple[str, int | None]:
    name, dash, number = text.rpartition("-")
    return (name, int(number)) if dash and number.isdecimal() else (text, None)


def _status(key: str, value: dict[str, Any] | None) -> Fact | None:
    if key.startswith(_CONNECTOR_STATUS):
        return ConnectorStatus(key[len(_CONNECTOR_STATUS) :], _status_of(value))
    if key.startswith(_TASK_STATUS):
        name, number = _numbered(key[len(_TASK_STATUS) :])
        return None if number is None else TaskStatus(name, number, _status_of(value))
    if key.startswith(_TOPIC_STATUS):
        topic, found, name = key[len(_TOPIC_STATUS) :].partition(_TOPIC_OF)
        if not found:
            return None
        told = {} if value is None else value.get("topic") or {}
        return TopicUsed(name, topic, told.get("task", 0), told.get("discoverTimestamp"))
    return None


def _status_of(value: dict[str, Any] | None) -> Status | None:
    if value is None:
        return None
    state = value.get("state")
    if state not in RunState.__members__:
        raise ValueError(f"no state of Connect's: {state}")
    return Status(
        RunState(state),
        str(value.get("worker_id") or ""),
        int(value.get("generation") or 0),
        value.get("trace"),
        value.get("version"),
    )


def _offset(record: LogRecord) -> SourceOffset | None:
    found = _json(record.key)
    if not isinstance(found, list) or len(found) != 2 or not isinstance(found[0], str):
        return None
    partition = partition_text(found[1])
    if record.value is None:
        return SourceOffset(found[0], partition, None)
    offset = _json(record.value)
    return SourceOffset(found[0], partition, offset if isinstance(offset, dict) else None)
