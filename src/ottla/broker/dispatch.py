"""Which API is answered by whom. A new API is one row here; ApiVersions advertises the rows and nothing else.

Handlers are imported when the first request for their API comes, so that a node is up before it needs them all.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.broker.context import Broker
from ottla.runtime.request import Handler, RefusedRequest, RequestContext, Respond
from ottla.wire.apis import ApiKey, api
from ottla.wire.message import Message

BrokerHandler: TypeAlias = Callable[[Broker, RequestContext, Any, Respond], None]


class Route(NamedTuple):
    """The module in `ottla.broker` and the function in it that answer an API."""

    module: str
    function: str


ROUTES: Final[dict[ApiKey, Route]] = {
    # Data
    ApiKey.PRODUCE: Route("produce", "handle_produce"),
    ApiKey.FETCH: Route("fetch", "handle_fetch"),
    ApiKey.LIST_OFFSETS: Route("list_offsets", "handle_list_offsets"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Route("offset_for_leader_epoch", "handle_offset_for_leader_epoch"),
    ApiKey.DELETE_RECORDS: Route("delete_records", "handle_delete_records"),
    # Producers
    ApiKey.INIT_PRODUCER_ID: Route("init_producer_id", "handle_init_producer_id"),
    ApiKey.DESCRIBE_PRODUCERS: Route("producers", "handle_describe_producers"),
    # Directories
    ApiKey.DESCRIBE_LOG_DIRS: Route("log_dirs", "handle_describe_log_dirs"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Route("log_dirs", "handle_alter_replica_log_dirs"),
}


def served_versions(key: ApiKey) -> range:
    """The versions of an API that are answered; for Produce fewer than are advertised."""
    return api(key).stable_versions


def dispatcher(broker: Broker) -> Handler:
    """The function that a server calls with every request."""
    handlers: dict[tuple[int, int], BrokerHandler] = {}

    def handle(context: RequestContext, message: Message, respond: Respond) -> None:
        handler = handlers.get((context.api_key, context.api_version))
        if handler is None:
            handler = handlers[context.api_key, context.api_version] = find_handler(
                context.api_key, context.api_version
            )
        handler(broker, context, message, respond)

    return handle


def find_handler(api_key: int, version: int) -> BrokerHandler:
    """Raises `RefusedRequest` for what is not served; the client could have known from ApiVersions."""
    route = ROUTES.get(api_key)  # type: ignore[call-overload]
    if route is None or version not in served_versions(ApiKey(api_key)):
        raise RefusedRequest(f"version {version} of the API with key {api_key} is not served")
    handler: BrokerHandler = getattr(import_module(f"ottla.broker.{route.module}"), route.function)
    return handler
