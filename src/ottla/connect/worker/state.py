"""What the three topics say. Replaying their records is all that changes it.

Theory of operation. As in Kafka Connect: a connector is there while its configuration is; its tasks count once the
record that commits them is read, and only if all of them were; a target state without a connector waits for one.
Records of one key are replayed in the order of the topic, records of several partitions in any order, so nothing here
depends on how states and configurations are mixed.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.connect.worker.records import (
    ConnectorConfig,
    ConnectorStatus,
    Fact,
    LoggerLevel,
    LogRecord,
    RunState,
    SourceOffset,
    Status,
    Target,
    TargetState,
    TaskConfig,
    TasksCommitted,
    TasksFencing,
    TaskStatus,
    TopicUsed,
    parse,
)

Config = Mapping[str, str | None]


@dataclass(slots=True)
class Connector:
    """A connector that there is."""

    name: str
    config: Config
    target: TargetState
    revision: int
    """Another number after each record of its configuration."""
    tasks: tuple[Config, ...] = ()
    """Those that are committed, in the order of their numbers."""
    fencing_count: int = 0


@dataclass(slots=True)
class _Tasks:
    """Of a name, whether the connector is there or not."""

    pending: dict[int, Config] = field(default_factory=dict)
    committed: dict[int, Config] = field(default_factory=dict)


class State:
    """Of a worker, or of a standby that follows the same topics."""

    def __init__(self) -> None:
        self.connectors: dict[str, Connector] = {}
        self.connector_statuses: dict[str, Status] = {}
        self.task_statuses: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, dict[str, int]] = {}
        """Topics that a connector has used, and when it first did."""
        self.offsets: dict[str, dict[str, dict[str, Any]]] = {}
        """Of source connectors: partitions, as JSON, and offsets."""
        self.logger_levels: dict[str, str] = {}
        self._targets: dict[str, TargetState] = {}
        self._tasks: defaultdict[str, _Tasks] = defaultdict(_Tasks)
        self._fencing: dict[str, int] = {}
        self._revision = 0

    def replay(self, record: LogRecord) -> Fact | None:
        """The only place that changes anything. What the record said; None if nothing that counts."""
        fact = parse(record)
        match fact:
            case ConnectorConfig():
                self._on_config(fact)
            case TaskConfig():
                self._on_task(fact)
            case TasksCommitted():
                self._on_commit(fact)
            case TasksFencing():
                self._fencing[fact.name] = fact.task_count
                if fact.name in self.connectors:
                    self.connectors[fact.name].fencing_count = fact.task_count
            case Target():
                self._on_target(fact)
            case LoggerLevel():
                self.logger_levels[fact.logger] = fact.level
            case ConnectorStatus():
                _put(self.connector_statuses, fact.name, fact.status)
            case TaskStatus():
                tasks = self.task_statuses.setdefault(fact.name, {})
                _put(tasks, fact.task, fact.status)
                if not tasks:
                    del self.task_statuses[fact.name]
            case TopicUsed():
                used = self.topics.setdefault(fact.name, {})
                _put(used, fact.topic, fact.at_ms)
                if not used:
                    del self.topics[fact.name]
            case SourceOffset():
                known = self.offsets.setdefault(fact.name, {})
                _put(known, fact.partition, fact.offset)
                if not known:
                    del self.offsets[fact.name]
        return fact

    def _on_config(self, fact: ConnectorConfig) -> None:
        if fact.properties is None:
            self.connectors.pop(fact.name, None)
            self._tasks.pop(fact.name, None)
            return
        self._revision += 1
        known = self.connectors.get(fact.name)
        if known is not None:
            known.config, known.revision = fact.properties, self._revision
            return
        target = self._targets.get(fact.name, TargetState.STARTED)
        self.connectors[fact.name] = Connector(
            fact.name,
            fact.properties,
            target,
            self._revision,
            _in_order(self._tasks[fact.name].committed),
            self._fencing.get(fact.name, 0),
        )

    def _on_task(self, fact: TaskConfig) -> None:
        pending = self._tasks[fact.name].pending
        _put(pending, fact.task, fact.properties)

    def _on_commit(self, fact: TasksCommitted) -> None:
        tasks = self._tasks[fact.name]
        known = tasks.committed | tasks.pending
        merged = {number: config for number, config in known.items() if number < fact.task_count}
        tasks.pending = {}
        if len(merged) != max(fact.task_count, 0):
            return  # An earlier worker was killed between its records, and compaction has taken some: not usable.
        tasks.committed = merged
        if fact.name in self.connectors:
            self.connectors[fact.name].tasks = _in_order(merged)

    def _on_target(self, fact: Target) -> None:
        """A connector whose target state is gone is to run, as one that never had any."""
        _put(self._targets, fact.name, fact.target)
        if fact.name in self.connectors:
            self.connectors[fact.name].target = fact.target or TargetState.STARTED

    # --- asking ---

    def tasks_of(self, name: str) -> list[tuple[int, Status]]:
        """What the tasks of a connector do, by number."""
        return sorted(self.task_statuses.get(name, {}).items())

    def is_stopped(self, name: str) -> bool:
        """Whether a connector is to be stopped, and is: nothing of it runs."""
        connector = self.connectors[name]
        running = any(status.state is not RunState.UNASSIGNED for _, status in self.tasks_of(name))
        return connector.target is TargetState.STOPPED and not running


def _put(where: dict[Any, Any], key: Any, value: Any) -> None:
    """None: it is gone."""
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value


def _in_order(tasks: Mapping[int, Config]) -> tuple[Config, ...]:
    return tuple(tasks[number] for number in sorted(tasks))
