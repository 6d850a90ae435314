"""A registry without a cluster: its state, its API and its front, in one thread. What is decided counts at once."""

import json
from typing import Any

from ottla.client.promise import Promise
from ottla.registry.api import ApiSettings
from ottla.registry.decisions import Command
from ottla.registry.front import Front, Gate
from ottla.registry.records import Record
from ottla.registry.refusals import Refused, unknown_leader
from ottla.registry.state import State
from ottla.registry.texts import Texts
from ottla.runtime.http.http_server import Caller
from ottla.testing.step_workers import StepWorkers
from ottla.wire.http import HttpRequest, HttpResponse, ResponseReader

INT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WITH_B = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":1}]}'
WITH_C = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"c","type":"int","default":1}]}'
STRING = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'
NOW_MS = 1_700_000_000_000


class Nobody:
    """There is no other registry."""

    def pass_on(self, request: HttpRequest) -> Promise[HttpResponse]:
        return Promise.rejected(unknown_leader())


class Scene:
    """`log` is all that was written."""

    def __init__(self, settings: ApiSettings | None = None, gate: Gate | None = None) -> None:
        self.state = State()
        self.workers = StepWorkers()
        self.texts = Texts(self.workers)
        self.settings = settings or ApiSettings()
        self.log: list[Record] = []
        self.front = Front(self, Nobody(), gate)

    # The service

    def change(self, command: Command[Any]) -> Promise[Any]:
        try:
            decision = command.decide(self.state, command.prepare(self.state, self.texts).value())
        except Refused as refused:
            return Promise.rejected(refused)
        for record in decision.records:
            self.write(record)
        return Promise.resolved(decision.reply)

    def about(self, what: str) -> Any:
        return {"about": what}

    def write(self, record: Record) -> None:
        """As the log says it, and as others may have written it."""
        self.log.append(record)
        self.state.replay(record.key, record.value, NOW_MS)
        self.front.on_state_changed()

    # A client

    def response(
        self, method: str, target: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> HttpResponse:
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = HttpRequest(method, target, given, data)
        found: list[bytes] = []
        self.front.handle(request, Caller("http", "127.0.0.1", None), found.append)
        assert len(found) == 1, "a request has one reply"
        (response,) = ResponseReader(1 << 20, 1 << 30).take(found[0])
        return response

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """The status, and what the reply says."""
        response = self.response(method, target, body, **headers)
        return response.status, json.loads(response.body) if response.body else None

    def get(self, target: str) -> Any:
        status, reply = self.ask("GET", target)
        assert status == 200, reply
        return reply

    def refused(self, method: str, target: str, body: Any = None) -> tuple[int, int, str]:
        """Status, code and message of an error."""
        status, reply = self.ask(method, target, body)
        assert set(reply) == {"error_code", "message"}, reply
        return status, reply["error_code"], reply["message"]

    def register(self, subject: str, text: str, **more: Any) -> int:
        """The id."""
        status, reply = self.ask("POST", f"/subjects/{subject}/versions", {"schema": text, **more})
        assert status == 200, reply
        id: int = reply["id"]
        return id
