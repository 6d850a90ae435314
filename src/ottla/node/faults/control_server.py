"""The port that faults are asked for at: HTTP with JSON, so that a test in any language can, or a person with curl.

    POST /fail_next  {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 3}

It listens on 127.0.0.1 alone. Every request needs the token (`Authorization: Bearer …`), which is compared in constant
time and before anything is made of the request. Its size, its time and the number of connections are bounded.
"""

import json
from collections.abc import Coroutine
from hmac import compare_digest
from typing import Any, Final

from ottla.node.faults.commands import Commands, NotNow
from ottla.node.faults.parameters import Parameters, WrongCommand
from ottla.runtime.http.http_server import Caller, HttpLimits, HttpServer, Respond
from ottla.runtime.loop import Loop
from ottla.runtime.network import LoopNetwork
from ottla.runtime.procedure import Procedure
from ottla.runtime.timers import LoopTimers
from ottla.wire.http import HttpRequest, response_bytes

_HOST: Final = "127.0.0.1"
_LIMITS: Final = HttpLimits(head_bytes=8192, body_bytes=65536, connections=32, backlog=32)


class _Refused(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class ControlServer:
    """It has a network and timers of its own: it outlives the node, which may be restarted."""

    def __init__(self, loop: Loop, commands: Commands, token: str) -> None:
        self._loop = loop
        self._commands = commands
        self._token = token.encode()
        self._server: HttpServer | None = None

    def listen(self, port: int) -> int:
        """Returns the port; 0 picks a free one."""
        self._network, self._timers = LoopNetwork(self._loop), LoopTimers(self._loop)
        self._server = HttpServer(self._network, self._timers, self._serve, _LIMITS, _bad)
        _, bound = self._server.listen(_HOST, port, "faults")
        self._server.start_accepting()
        return bound

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._network.close()
            self._timers.close()

    def _serve(self, request: HttpRequest, _caller: Caller, respond: Respond) -> None:
        """A command may take until the node is up again."""
        Procedure(self._answer(request, respond), self._timers, _nothing, _raise)

    async def _answer(self, request: HttpRequest, respond: Respond) -> None:
        try:
            self._check(request)
            respond(_reply(200, await self._carry_out(request.path.strip("/"), request.body)))
        except _Refused as refused:
            respond(_reply(refused.status, {"error": refused.reason}))

    def _check(self, request: HttpRequest) -> None:
        """Whether it is a command, from one who may give commands."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not compare_digest(token.strip().encode(), self._token):
            raise _Refused(401, "expected `Authorization: Bearer <token>` with the token of this node")
        if request.method != "POST":
            raise _Refused(405, "commands are sent with POST")

    async def _carry_out(self, name: str, body: bytes) -> Any:
        try:
            command = self._commands.find(name)
        except WrongCommand as problem:
            raise _Refused(404, str(problem)) from problem
        try:
            outcome = command(Parameters(json.loads(body or b"{}")))
            return await outcome if isinstance(outcome, Coroutine) else outcome
        except NotNow as problem:
            raise _Refused(409, str(problem)) from problem
        except WrongCommand as problem:
            raise _Refused(400, str(problem)) from problem
        except ValueError as problem:  # Also a text that is no UTF-8.
            raise _Refused(400, f"the body must be JSON: {problem}") from problem
        except RecursionError as problem:
            raise _Refused(400, "the body is nested too deeply") from problem


def _nothing(_: None) -> None:
    """The reply has been given."""


def _raise(problem: Exception) -> None:
    raise problem


def _reply(status: int, body: Any) -> bytes:
    return response_bytes(status, json.dumps(body).encode() + b"\n", "application/json")


def _bad(status: int, reason: str) -> bytes:
    return _reply(status, {"error": reason})
