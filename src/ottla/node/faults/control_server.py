"""The port that faults are asked for at: HTTP with JSON, so that a test in any language can, or a person with curl.

    POST /fail_next  {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 3}

It listens on 127.0.0.1 alone. Every request needs the token (`Authorization: Bearer …`), which is compared in constant
time and before anything else is read. One request a connection; its size, its time and the number of connections are
bounded.
"""

import asyncio
import json
from collections.abc import Awaitable
from contextlib import suppress
from hmac import compare_digest
from typing import Any, Final

from ottla.node.faults.commands import Commands, NotNow
from ottla.node.faults.parameters import Parameters, WrongCommand

_HOST: Final = "127.0.0.1"
_MAX_HEAD: Final = 8192
_MAX_BODY: Final = 65536
_MAX_CONNECTIONS: Final = 32
_RECEIVE_TIMEOUT_S: Final = 10.0


class _Refused(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class ControlServer:
    def __init__(self, commands: Commands, token: str) -> None:
        self._commands = commands
        self._token = token.encode()
        self._connections = 0
        self._server: asyncio.Server | None = None

    async def listen(self, port: int) -> int:
        """Returns the port; 0 picks a free one."""
        self._server = await asyncio.start_server(self._serve, _HOST, port, limit=_MAX_HEAD, backlog=_MAX_CONNECTIONS)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        # A client that hangs up, dawdles or sends too much gets nothing, and that is all that happens.
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            if self._connections <= _MAX_CONNECTIONS:
                writer.write(await self._answer(reader))
                await asyncio.wait_for(writer.drain(), _RECEIVE_TIMEOUT_S)
        self._connections -= 1
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            name, body = await asyncio.wait_for(self._receive(reader), _RECEIVE_TIMEOUT_S)
            return _reply("200 OK", await self._carry_out(name, body))
        except _Refused as refused:
            return _reply(refused.status, {"error": refused.reason})

    async def _receive(self, reader: asyncio.StreamReader) -> tuple[str, bytes]:
        """The command and its parameters, from one who may give commands."""
        start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not compare_digest(token.strip().encode(), self._token):
            raise _Refused("401 Unauthorized", "the header Authorization must be: Bearer, and the token of this node")
        method, _, target = start.partition(" ")
        if method != "POST":
            raise _Refused("405 Method Not Allowed", "commands are sent with POST")
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal():
            raise _Refused("411 Length Required", "the body must have a Content-Length")
        if int(length) > _MAX_BODY:
            raise _Refused("413 Content Too Large", f"the body may have {_MAX_BODY} bytes")
        return target.partition(" ")[0].strip("/"), await reader.readexactly(int(length))

    async def _carry_out(self, name: str, body: bytes) -> Any:
        try:
            command = self._commands.find(name)
        except WrongCommand as problem:
            raise _Refused("404 Not Found", str(problem)) from problem
        try:
            outcome = command(Parameters(json.loads(body or b"{}")))
            return await outcome if isinstance(outcome, Awaitable) else outcome
        except NotNow as problem:
            raise _Refused("409 Conflict", str(problem)) from problem
        except WrongCommand as problem:
            raise _Refused("400 Bad Request", str(problem)) from problem
        except ValueError as problem:  # Also a text that is no UTF-8.
            raise _Refused("400 Bad Request", f"the body must be JSON: {problem}") from problem
        except RecursionError as problem:
            raise _Refused("400 Bad Request", "the body is nested too deeply") from problem


def _reply(status: str, body: Any) -> bytes:
    content = json.dumps(body).encode() + b"\n"
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(content)}")
    return "\r\n".join((*lines, "Connection: close", "", "")).encode() + content
