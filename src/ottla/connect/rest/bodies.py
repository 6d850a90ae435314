"""What replies are made of, in the form of Kafka Connect 4.3.1."""

from collections.abc import Sequence
from typing import Any

from ottla.connect.worker.connector_settings import KafkaRow
from ottla.connect.worker.decisions import RestartPlan
from ottla.connect.worker.records import Status
from ottla.connect.worker.state import Connector, State
from ottla.connect.worker.validation import Report


def info(connector: Connector, type: str) -> dict[str, Any]:
    return {
        "name": connector.name,
        "config": connector.config,
        "tasks": [{"connector": connector.name, "task": number} for number in range(len(connector.tasks))],
        "type": type,
    }


def tasks(connector: Connector) -> list[dict[str, Any]]:
    return [
        {"id": {"connector": connector.name, "task": number}, "config": config}
        for number, config in enumerate(connector.tasks)
    ]


def status_members(status: Status) -> dict[str, Any]:
    members: dict[str, Any] = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace:
        members["trace"] = status.trace
    return {**members, "version": status.version}


def task_status(task: int, status: Status) -> dict[str, Any]:
    return {"id": task, **status_members(status)}


def status(state: State, name: str, type: str) -> dict[str, Any]:
    return _status(name, state.connector_statuses[name], state.tasks_of(name), type)


def restart_status(plan: RestartPlan, type: str) -> dict[str, Any]:
    return _status(plan.name, plan.connector, plan.task_statuses, type)


def _status(name: str, connector: Status, tasks: Sequence[tuple[int, Status]], type: str) -> dict[str, Any]:
    return {
        "name": name,
        "connector": status_members(connector),
        "tasks": [task_status(task, one) for task, one in tasks],
        "type": type,
    }


def definition(row: KafkaRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "type": row.type,
        "required": row.is_required,
        "default_value": row.default,
        "importance": row.importance,
        "documentation": row.doc,
        "group": row.group,
        "order_in_group": row.order,
        "width": row.width,
        "display_name": row.display_name,
        "dependents": [],
    }


def report(found: Report) -> dict[str, Any]:
    return {
        "name": found.name,
        "error_count": found.error_count,
        "groups": found.groups,
        "configs": [
            {
                "definition": definition(one.row),
                "value": {
                    "name": one.row.name,
                    "value": one.value,
                    "recommended_values": list(one.recommended),
                    "errors": one.errors,
                    "visible": one.visible,
                },
            }
            for one in found.checked
        ],
    }
