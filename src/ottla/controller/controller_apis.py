"""From a request to the function that answers it, at a controller (`ottla.apis` says which that is).

There is one path. A client that comes to a controllers' listener (KIP-919), a broker of another process, a broker that
passes a client's request on in an envelope (KIP-590), and the broker in the controller's own process: what they ask is
answered by `answer`. Only what needs the connection itself is not: its function takes the connection.

Modules are imported when they are first asked for, so that a node is up before it needs them all.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

from ottla.apis.description import load
from ottla.apis.error_responses import refusal_response
from ottla.apis.table import APIS
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import THIS_NODE, Caller, Failed, Then
from ottla.runtime.large_requests.parts import MOST_BYTES_AT_ONCE, division_of
from ottla.runtime.request import Handler, RefusedRequest, RequestContext, Respond
from ottla.wire.apis import api
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

AnswerFunction: TypeAlias = Callable[[ControllerServer, ControllerRequest, Then, Failed], None]


def dispatcher(server: ControllerServer) -> Handler:
    """The function that the server of a node calls with every request, if the node is a controller alone."""
    handlers: dict[tuple[int, int], Handler] = {}

    def handle(context: RequestContext, message: Message, respond: Respond) -> None:
        if context.size > MOST_BYTES_AT_ONCE:
            division = division_of(context.api_key, message)
            if division is not None:
                from ottla.runtime.large_requests.divided import handle_in_parts

                context.go_through(handle_in_parts(division, handle, context, message, respond))
                return
        key = context.api_key, context.api_version
        handler = handlers.get(key)
        if handler is None:
            handler = handlers[key] = find_handler(server, *key)
        handler(context, message, respond)

    return handle


def find_handler(server: ControllerServer, api_key: int, version: int) -> Handler:
    """The handler of a connection's requests. Raises `RefusedRequest` for what is not served."""
    row = APIS.get(api_key)
    if row is None or row.controller is None or version not in api(api_key).stable_versions:
        raise RefusedRequest(f"version {version} of the API with key {api_key} is not served to controllers' clients")
    if row.controller.takes_connection:
        handler: Handler = partial(load(row.controller.function), server)
        return handler if server.gate is None else server.gate.around(row, row.controller, handler)
    return partial(_answer, server)


@cache
def _load(function: str) -> AnswerFunction:
    answer: AnswerFunction = load(function)
    return answer


def answer(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    """Answers what its caller may ask. What this process asks of itself is the node's own affair."""
    row = APIS[asked.request._schema.api_key]
    assert row.controller is not None, "an API that controllers answer"
    assert not row.controller.takes_connection, "an API that is answered without a connection"
    function = _load(row.controller.function)
    if row.log_lines is not None and asked.caller is not THIS_NODE:
        then = server.logging_change(row.log_lines, asked, then)
    if server.gate is None or asked.caller is THIS_NODE:
        function(server, asked, then, failed)
        return

    def proceed(request: Any, then: Then) -> None:
        function(server, asked._replace(request=request), then, failed)

    who = asked.caller.principal, asked.caller.host
    server.gate.check(row, row.controller, who, asked.request, asked.version, then, proceed)


def _answer(server: ControllerServer, context: RequestContext, request: Message, respond: Respond) -> None:
    version = context.api_version

    def failed(error: ErrorCode) -> None:
        respond(refusal_response(request, version, error))

    caller = Caller.of(context.connection, context.client_id)
    answer(server, ControllerRequest(request, version, caller, context.connection.listener), respond, failed)
