"""What a request comes to: the records that do it, or a refusal. Reads the state, and changes nothing.

Configurations come in validated (`validation`), so that what is decided here depends on the topics alone. A decision's
records are written in one transaction: all of them count, or none.
"""

from collections.abc import Mapping, Sequence
from json import dumps, loads
from typing import Any, NamedTuple

from ottla.connect.worker.records import (
    LogRecord,
    RunState,
    Status,
    TargetState,
    commit_record,
    connector_record,
    offset_record,
    partition_text,
    target_record,
    topic_record,
)
from ottla.connect.worker.refusals import (
    already_exists,
    bad_request,
    not_found,
    not_stopped,
    nothing_to_restart,
    unknown_connector,
    unknown_task,
)
from ottla.connect.worker.state import Config, Connector, State


class Decision(NamedTuple):
    records: list[LogRecord]
    is_new: bool = False
    """Whether a connector came into being."""


def create(state: State, name: str, config: Config, target: TargetState | None) -> Decision:
    """Raises `Refused`."""
    if name in state.connectors:
        raise already_exists(name)
    records = [] if target is None else [target_record(name, target)]
    return Decision([*records, connector_record(name, config)], is_new=True)


def put_config(state: State, name: str, config: Config) -> Decision:
    return Decision([connector_record(name, config)], is_new=name not in state.connectors)


def patched(state: State, name: str, changes: Config) -> dict[str, str | None]:
    """The configuration with some members changed, and those that are null taken out (KIP-477). Raises `Refused`."""
    merged = {**known(state, name).config, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def patch_config(state: State, name: str, changes: Config, validated: Config) -> Decision:
    """No records if it comes to something else by now than what was validated. Raises `Refused`."""
    return Decision([connector_record(name, validated)] if patched(state, name, changes) == validated else [])


def delete(state: State, name: str) -> Decision:
    """What is known of its states and topics goes when nothing of it runs any more (`runs`). Raises `Refused`."""
    known(state, name)
    return Decision([connector_record(name, None), target_record(name, None)])


def set_target(state: State, name: str, target: TargetState) -> Decision:
    """STOPPED takes the tasks away, so that nothing is left of them. Raises `Refused`."""
    if name not in state.connectors:
        raise unknown_connector(name)
    records = [target_record(name, target)]
    if target is TargetState.STOPPED:
        records.insert(0, commit_record(name, 0))
    return Decision(records)


def reset_topics(state: State, name: str) -> Decision:
    return Decision([topic_record(name, topic, 0, None) for topic in state.topics.get(name, {})])


def known(state: State, name: str) -> Connector:
    """Raises `Refused`."""
    connector = state.connectors.get(name)
    if connector is None:
        raise not_found(name)
    return connector


# --- restarts ---


class RestartPlan(NamedTuple):
    """What a restart is about (KIP-745)."""

    name: str
    restarts_connector: bool
    tasks: tuple[int, ...]
    connector: Status
    """With RESTARTING in place of what is restarted, as the reply shows it."""
    task_statuses: tuple[tuple[int, Status], ...]


def plan_restart(state: State, name: str, *, include_tasks: bool, only_failed: bool) -> RestartPlan:
    """Raises `Refused`."""
    status = state.connector_statuses.get(name)
    if name not in state.connectors or status is None:
        raise nothing_to_restart(name)

    def concerns(one: Status) -> bool:
        return not only_failed or one.state is RunState.FAILED

    tasks = tuple(task for task, one in state.tasks_of(name) if include_tasks and concerns(one))
    shown = tuple(
        (task, one._replace(state=RunState.RESTARTING, trace=None) if task in tasks else one)
        for task, one in state.tasks_of(name)
    )
    restarts = concerns(status)
    connector = status._replace(state=RunState.RESTARTING, trace=None) if restarts else status
    return RestartPlan(name, restarts, tasks, connector, shown)


def check_task(state: State, name: str, task: int) -> None:
    """That there is such a task to restart. Raises `Refused`."""
    if name not in state.connectors:
        raise nothing_to_restart(name)
    if task >= len(state.connectors[name].tasks):
        raise unknown_task(name, task)


# --- offsets (KIP-875) ---


class OffsetChange(NamedTuple):
    partition: Mapping[str, Any] | None
    offset: Mapping[str, Any] | None


def check_stopped(state: State, name: str) -> Connector:
    """Raises `Refused`."""
    connector = known(state, name)
    if not state.is_stopped(name):
        raise not_stopped(name)
    return connector


def alter_source_offsets(state: State, name: str, changes: Sequence[OffsetChange]) -> Decision:
    """A partition that is known is written under the text that it is known by, whatever the order of its members:
    compaction goes by bytes, and would leave the offset of the other text. Raises `Refused`."""
    check_stopped(state, name)
    known_texts: dict[str, list[str]] = {}
    for text in state.offsets.get(name, {}):
        known_texts.setdefault(_in_order(loads(text)), []).append(text)
    records: list[LogRecord] = []
    for change in changes:
        if change.partition is None:
            raise bad_request("Partition objects cannot be null")
        texts = known_texts.get(_in_order(change.partition)) or [partition_text(change.partition)]
        records += (offset_record(name, text, change.offset) for text in texts)
    return Decision(records)


def _in_order(partition: Any) -> str:
    return dumps(partition, sort_keys=True)


def reset_source_offsets(state: State, name: str) -> Decision:
    """Raises `Refused`."""
    check_stopped(state, name)
    return Decision([offset_record(name, partition, None) for partition in state.offsets.get(name, {})])
