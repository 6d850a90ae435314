"""The operations of the REST interface: one row each, and what answers it. Knows no HTTP beyond methods and statuses.

A row that `changes` something is for the leader: a worker that does not lead passes the request on. What takes the
outside world, a topic or the engine is a coroutine.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ottla.connect.rest import bodies
from ottla.connect.rest.requests import flag_of, named, read_config, read_level, read_new_connector, read_offsets
from ottla.connect.worker import decisions
from ottla.connect.worker.connector_settings import COMMON, SINK, SOURCE, converter_rows, row_of
from ottla.connect.worker.log_levels import LEVELS
from ottla.connect.worker.plugins import other_plugins, settings_of
from ottla.connect.worker.records import TargetState
from ottla.connect.worker.refusals import Refused, bad_request, no_status, no_task_status
from ottla.connect.worker.validation import wrong_class
from ottla.connect.worker.worker import Change, Worker

KAFKA_VERSION: Final = "4.3.1"
"""Whose interface this is: tools look at it."""
_ALTERED: Final = {"message": "The offsets for this connector have been altered successfully"}
_RESET: Final = {"message": "The offsets for this connector have been reset successfully"}
_UNSIGNED: Final = "Internal request missing required signature"


class Asked(NamedTuple):
    """A request, as an operation sees it."""

    parts: Mapping[str, str]
    """What stands in place of the names of its path."""
    query: Mapping[str, list[str]]
    body: bytes
    host: str

    @property
    def name(self) -> str:
        return self.parts["name"]

    @property
    def task(self) -> int:
        return int(self.parts["task"])


class Answer(NamedTuple):
    status: int
    body: Any = None
    """JSON; None: there is no body."""
    location: str | None = None


class Operation(NamedTuple):
    method: str
    path: str
    answer: Callable[["Api", Asked], Awaitable[Answer]]
    changes: bool = False


class Api:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._state = worker.state

    # --- the worker ---

    async def root(self, asked: Asked) -> Answer:
        worker = self._worker
        commit = f"ottla-{worker.version}"
        return Answer(200, {"version": KAFKA_VERSION, "commit": commit, "kafka_cluster_id": worker.cluster_id})

    async def health(self, asked: Asked) -> Answer:
        worker = self._worker
        if not worker.is_loaded:
            return Answer(503, {"status": "starting", "message": worker.why_not_ready})
        if not worker.leads and worker.leader is None:
            return Answer(503, {"status": "unhealthy", "message": "No worker leads: connectors cannot be changed."})
        message = "Worker has completed startup and is ready to handle requests."
        return Answer(200, {"status": "healthy", "message": message})

    # --- connectors ---

    async def list_connectors(self, asked: Asked) -> Answer:
        names = list(self._state.connectors)
        wanted = asked.query.get("expand")
        if wanted is None:
            return Answer(200, names)
        found: dict[str, Any] = {}
        for name in names:
            shown: dict[str, Any] = {}
            if "status" in wanted and name in self._state.connector_statuses:
                shown["status"] = bodies.status(self._state, name, self._worker.type_of(name))
            if "info" in wanted:
                shown["info"] = bodies.info(self._state.connectors[name], self._worker.type_of(name))
            found[name] = shown
        return Answer(200, found)

    async def create(self, asked: Asked) -> Answer:
        new = read_new_connector(asked.body)
        return self._changed(await self._worker.create(new.name, new.config, new.target), asked)

    def _changed(self, change: Change, asked: Asked) -> Answer:
        name = change.connector.name
        body = bodies.info(change.connector, self._worker.type_of(name))
        if not change.is_new:
            return Answer(200, body)
        body["tasks"] = []  # They are made when it starts, and this reply tells of what came before.
        return Answer(201, body, f"{asked.host}/connectors/{quote(name, safe='/')}")

    async def get(self, asked: Asked) -> Answer:
        connector = decisions.known(self._state, asked.name)
        return Answer(200, bodies.info(connector, self._worker.type_of(asked.name)))

    async def delete(self, asked: Asked) -> Answer:
        await self._worker.delete(asked.name)
        return Answer(204)

    async def config(self, asked: Asked) -> Answer:
        return Answer(200, decisions.known(self._state, asked.name).config)

    async def put_config(self, asked: Asked) -> Answer:
        config = named(asked.name, read_config(asked.body))
        return self._changed(await self._worker.put_config(asked.name, config), asked)

    async def patch_config(self, asked: Asked) -> Answer:
        changes = read_config(asked.body)
        if changes.get("name", asked.name) != asked.name:
            named(asked.name, changes)
        return self._changed(await self._worker.patch_config(asked.name, changes), asked)

    async def status(self, asked: Asked) -> Answer:
        if asked.name not in self._state.connector_statuses:
            raise no_status(asked.name)
        return Answer(200, bodies.status(self._state, asked.name, self._worker.type_of(asked.name)))

    async def tasks(self, asked: Asked) -> Answer:
        return Answer(200, bodies.tasks(decisions.known(self._state, asked.name)))

    async def task_status(self, asked: Asked) -> Answer:
        status = self._state.task_statuses.get(asked.name, {}).get(asked.task)
        if status is None:
            raise no_task_status(asked.name, asked.task)
        return Answer(200, bodies.task_status(asked.task, status))

    async def pause(self, asked: Asked) -> Answer:
        await self._worker.set_target(asked.name, TargetState.PAUSED)
        return Answer(202)

    async def resume(self, asked: Asked) -> Answer:
        await self._worker.set_target(asked.name, TargetState.STARTED)
        return Answer(202)

    async def stop(self, asked: Asked) -> Answer:
        await self._worker.set_target(asked.name, TargetState.STOPPED)
        return Answer(204)

    async def restart(self, asked: Asked) -> Answer:
        include_tasks, only_failed = flag_of(asked.query, "includeTasks"), flag_of(asked.query, "onlyFailed")
        plan = await self._worker.restart(asked.name, include_tasks=include_tasks, only_failed=only_failed)
        if not include_tasks and not only_failed:
            return Answer(204)
        return Answer(202, bodies.restart_status(plan, self._worker.type_of(asked.name)))

    async def restart_task(self, asked: Asked) -> Answer:
        await self._worker.restart_task(asked.name, asked.task)
        return Answer(204)

    async def topics(self, asked: Asked) -> Answer:
        return Answer(200, {asked.name: {"topics": list(self._state.topics.get(asked.name, {}))}})

    async def reset_topics(self, asked: Asked) -> Answer:
        await self._worker.reset_topics(asked.name)
        return Answer(202)

    async def offsets(self, asked: Asked) -> Answer:
        return Answer(200, {"offsets": await self._worker.offsets(asked.name)})

    async def alter_offsets(self, asked: Asked) -> Answer:
        await self._worker.alter_offsets(asked.name, read_offsets(asked.body))
        return Answer(200, _ALTERED)

    async def reset_offsets(self, asked: Asked) -> Answer:
        await self._worker.reset_offsets(asked.name)
        return Answer(200, _RESET)

    async def internal(self, asked: Asked) -> Answer:
        """What Kafka Connect's workers ask of each other, with a signature that nobody has here."""
        raise bad_request(_UNSIGNED)

    # --- plug-ins ---

    async def list_plugins(self, asked: Asked) -> Answer:
        found = [
            {"class": one.class_name, "type": one.type, "version": one.version}
            for one in sorted(self._worker.plugins.connectors(), key=lambda one: (one.type, one.class_name))
        ]
        if not flag_of(asked.query, "connectorsOnly", default=True):
            found += (
                {"class": row.class_name, "type": row.type, "version": row.version}
                for row in other_plugins(self._worker.version)
            )
        return Answer(200, found)

    async def plugin_config(self, asked: Asked) -> Answer:
        found = settings_of(self._worker.plugins, asked.name)
        if found is None:
            raise Refused(404, f"Unknown plugin {asked.name}.")
        kind, settings = found
        rows = converter_rows(settings) if kind.endswith("converter") else [row_of(setting) for setting in settings]
        if kind in ("source", "sink"):
            version = self._worker.plugins.find(asked.name).version
            every = (*COMMON, *(SOURCE if kind == "source" else SINK))
            rows += (row._replace(default=version) if row.name == "connector.plugin.version" else row for row in every)
        return Answer(200, [bodies.definition(row) for row in rows])

    async def validate(self, asked: Asked) -> Answer:
        config = read_config(asked.body)
        problem = wrong_class(asked.name, config)
        if problem is not None:
            raise problem
        return Answer(200, bodies.report(await self._worker.validated(config)))

    # --- loggers ---

    async def loggers(self, asked: Asked) -> Answer:
        return Answer(200, self._worker.levels.all())

    async def logger(self, asked: Asked) -> Answer:
        found = self._worker.levels.one(asked.name)
        if found is None:
            raise Refused(404, f"Logger {asked.name} not found.")
        return Answer(200, found)

    async def set_logger(self, asked: Asked) -> Answer:
        level = read_level(asked.body)
        if level is None:
            raise bad_request("Desired 'level' parameter was not specified in request.")
        if level.upper() not in LEVELS:
            raise Refused(404, f"invalid log level '{level}'.")
        worker = self._worker
        if asked.query.get("scope", [""])[0].lower() == "cluster":
            await worker.set_logger(asked.name, level.upper())
            return Answer(204)
        return Answer(200, worker.levels.set(asked.name, level.upper(), worker.world.clock.now_ms()))


_C: Final = "/connectors/{name}"
OPERATIONS: Final = (
    Operation("GET", "/", Api.root),
    Operation("GET", "/health", Api.health),
    Operation("GET", "/connectors", Api.list_connectors),
    Operation("POST", "/connectors", Api.create, changes=True),
    Operation("GET", _C, Api.get),
    Operation("DELETE", _C, Api.delete, changes=True),
    Operation("GET", f"{_C}/config", Api.config),
    Operation("PUT", f"{_C}/config", Api.put_config, changes=True),
    Operation("PATCH", f"{_C}/config", Api.patch_config, changes=True),
    Operation("GET", f"{_C}/status", Api.status),
    Operation("GET", f"{_C}/tasks", Api.tasks),
    Operation("POST", f"{_C}/tasks", Api.internal),
    Operation("PUT", f"{_C}/fence", Api.internal),
    Operation("GET", f"{_C}/tasks/{{task}}/status", Api.task_status),
    Operation("POST", f"{_C}/tasks/{{task}}/restart", Api.restart_task, changes=True),
    Operation("POST", f"{_C}/restart", Api.restart, changes=True),
    Operation("PUT", f"{_C}/pause", Api.pause, changes=True),
    Operation("PUT", f"{_C}/resume", Api.resume, changes=True),
    Operation("PUT", f"{_C}/stop", Api.stop, changes=True),
    Operation("GET", f"{_C}/topics", Api.topics),
    Operation("PUT", f"{_C}/topics/reset", Api.reset_topics, changes=True),
    Operation("GET", f"{_C}/offsets", Api.offsets),
    Operation("PATCH", f"{_C}/offsets", Api.alter_offsets, changes=True),
    Operation("DELETE", f"{_C}/offsets", Api.reset_offsets, changes=True),
    Operation("GET", "/connector-plugins", Api.list_plugins),
    Operation("GET", "/connector-plugins/{name}/config", Api.plugin_config),
    Operation("PUT", "/connector-plugins/{name}/config/validate", Api.validate),
    Operation("GET", "/admin/loggers", Api.loggers),
    Operation("GET", "/admin/loggers/{name}", Api.logger),
    Operation("PUT", "/admin/loggers/{name}", Api.set_logger),
)
"""All of them."""


def find(method: str, parts: list[str]) -> tuple[Operation | None, dict[str, str], list[str]]:
    """The operation of a method and path, what its names stand for, and the methods that the path has."""
    methods: list[str] = []
    for operation in OPERATIONS:
        names = _matched(operation.path, parts)
        if names is None:
            continue
        if operation.method == method or (method == "HEAD" and operation.method == "GET"):
            return operation, names, []
        methods.append(operation.method)
    return None, {}, methods


def _matched(path: str, parts: list[str]) -> dict[str, str] | None:
    wanted = path.strip("/").split("/")
    if len(wanted) != len(parts):
        return None
    names: dict[str, str] = {}
    for pattern, part in zip(wanted, parts, strict=True):
        if pattern == "{task}" and not (part.isascii() and part.isdecimal() and len(part) < 10):
            return None
        if pattern.startswith("{"):
            names[pattern.strip("{}")] = part
        elif pattern != part:
            return None
    return names
