"""Which API is answered by which module. A new API of controllers is one row here.

There is one path. A client that comes to a controllers' listener (KIP-919), a broker of another process, a broker that
passes a client's request on in an envelope (KIP-590), and the broker in the controller's own process: what they ask is
looked up in `ANSWERS`. Only what needs the connection itself is in `OF_CONNECTIONS`.

Modules are imported when they are first asked for, so that a node is up before it needs them all.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.controller.controller_server import Asked, ControllerServer
from ottla.runtime.channels import THIS_NODE, Caller, Failed, Then
from ottla.runtime.large_requests.divided import handle_in_parts
from ottla.runtime.large_requests.divisions import MOST_BYTES_AT_ONCE, division_of
from ottla.runtime.request import Handler, RefusedRequest, RequestContext, Respond
from ottla.wire.apis import ApiKey, api
from ottla.wire.error_responses import refusal_response
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

Answer: TypeAlias = Callable[[ControllerServer, Asked, Then, Failed], None]
ConnectionHandler: TypeAlias = Callable[[ControllerServer, RequestContext, Any, Respond], None]


class Route(NamedTuple):
    """The module in `ottla.controller` and the function in it that answer an API."""

    module: str
    function: str


_DECIDED: Final = Route("decided", "decide")
_COUNTED: Final = Route("mutation_quotas", "decide_counted")

ANSWERS: Final[dict[ApiKey, Route]] = {
    # What administrators ask
    ApiKey.CREATE_TOPICS: _COUNTED,
    ApiKey.DELETE_TOPICS: _COUNTED,
    ApiKey.CREATE_PARTITIONS: _COUNTED,
    ApiKey.ELECT_LEADERS: _DECIDED,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _DECIDED,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DECIDED,
    ApiKey.ALTER_CONFIGS: _DECIDED,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Route("alter_configs", "incremental_alter_configs"),
    ApiKey.DESCRIBE_CONFIGS: Route("described", "describe_configs"),
    ApiKey.ALTER_CLIENT_QUOTAS: Route("alter_client_quotas", "alter_client_quotas"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _DECIDED,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Route("described", "describe_user_scram_credentials"),
    ApiKey.CREATE_ACLS: Route("acl_requests", "alter_acls"),
    ApiKey.DELETE_ACLS: Route("acl_requests", "alter_acls"),
    ApiKey.DESCRIBE_ACLS: Route("acl_requests", "describe_acls"),
    ApiKey.UPDATE_FEATURES: Route("update_features", "update_features"),
    ApiKey.CREATE_DELEGATION_TOKEN: Route("delegation_tokens", "alter_token"),
    ApiKey.RENEW_DELEGATION_TOKEN: Route("delegation_tokens", "alter_token"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Route("delegation_tokens", "alter_token"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Route("delegation_tokens", "describe_tokens"),
    ApiKey.UNREGISTER_BROKER: _DECIDED,
    ApiKey.DESCRIBE_QUORUM: Route("describe_quorum", "describe_quorum"),
    ApiKey.ADD_RAFT_VOTER: Route("voter_requests", "add_raft_voter"),
    ApiKey.REMOVE_RAFT_VOTER: Route("voter_requests", "remove_raft_voter"),
    # What nodes of the cluster ask
    ApiKey.BROKER_REGISTRATION: _DECIDED,
    ApiKey.BROKER_HEARTBEAT: _DECIDED,
    ApiKey.CONTROLLER_REGISTRATION: _DECIDED,
    ApiKey.ALTER_PARTITION: _DECIDED,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _DECIDED,
    ApiKey.ALLOCATE_PRODUCER_IDS: _DECIDED,
    # What replicas of the metadata log ask
    ApiKey.VOTE: Route("quorum_requests", "vote"),
    ApiKey.BEGIN_QUORUM_EPOCH: Route("quorum_requests", "begin_quorum_epoch"),
    ApiKey.END_QUORUM_EPOCH: Route("quorum_requests", "end_quorum_epoch"),
    ApiKey.FETCH: Route("quorum_requests", "fetch"),
    ApiKey.FETCH_SNAPSHOT: Route("quorum_requests", "fetch_snapshot"),
    ApiKey.UPDATE_RAFT_VOTER: Route("voter_requests", "update_raft_voter"),
}

OF_CONNECTIONS: Final[dict[ApiKey, Route]] = {
    ApiKey.API_VERSIONS: Route("controller_listener", "handle_api_versions"),
    ApiKey.DESCRIBE_CLUSTER: Route("controller_listener", "handle_describe_cluster"),
    ApiKey.SASL_HANDSHAKE: Route("controller_listener", "handle_sasl_handshake"),
    ApiKey.SASL_AUTHENTICATE: Route("controller_listener", "handle_sasl_authenticate"),
    ApiKey.ENVELOPE: Route("envelope", "handle_envelope"),
}

SERVED: Final = ANSWERS | OF_CONNECTIONS
"""What is answered on the listeners of controllers; ApiVersions advertises this and nothing else."""


@cache
def find_answer(api_key: int) -> Answer:
    answer: Answer = _load(ANSWERS[ApiKey(api_key)])
    return answer


def dispatcher(server: ControllerServer) -> Handler:
    """The function that the server of a node calls with every request, if the node is a controller alone."""
    handlers: dict[tuple[int, int], Handler] = {}

    def handle(context: RequestContext, message: Message, respond: Respond) -> None:
        if context.size > MOST_BYTES_AT_ONCE:
            division = division_of(context.api_key, message)
            if division is not None:
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
    if api_key not in SERVED or version not in api(api_key).stable_versions:
        raise RefusedRequest(f"version {version} of the API with key {api_key} is not served to controllers' clients")
    if api_key in OF_CONNECTIONS:
        handler: Handler = partial(_load(OF_CONNECTIONS[ApiKey(api_key)]), server)
        return handler if server.gate is None else partial(_check, server, handler)
    return partial(_answer, server)


def _load(route: Route) -> Any:
    return getattr(import_module(f"ottla.controller.{route.module}"), route.function)


def answer(server: ControllerServer, asked: Asked, then: Then, failed: Failed) -> None:
    """Answers what its caller may ask. What this process asks of itself is the node's own affair."""
    find = find_answer(asked.request._schema.api_key)
    if server.gate is None or asked.caller is THIS_NODE:
        find(server, asked, then, failed)
        return
    from ottla.controller.access import CHECKS

    def go_on(request: Any, then: Then) -> None:
        find(server, asked._replace(request=request), then, failed)

    caller = asked.caller
    server.gate.check(CHECKS, (caller.principal, caller.host), asked.request, asked.version, then, go_on)


def _check(
    server: ControllerServer, handler: Handler, context: RequestContext, request: Message, respond: Respond
) -> None:
    """Hands a connection's request to its handler, if its client may ask it."""
    from ottla.controller.access import CHECKS

    assert server.gate is not None
    client = context.connection
    go_on = partial(handler, context)
    server.gate.check(CHECKS, (client.principal, client.client_host), request, context.api_version, respond, go_on)


def _answer(server: ControllerServer, context: RequestContext, request: Message, respond: Respond) -> None:
    version = context.api_version

    def failed(error: ErrorCode) -> None:
        respond(refusal_response(request, version, error))

    answer(server, Asked(request, version, Caller.of(context.connection, context.client_id)), respond, failed)
