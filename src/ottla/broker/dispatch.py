"""From a request to the function that answers it, on the listeners of brokers (`ottla.apis` says which that is).

Handlers are imported when the first request for their API comes, so that a node is up before it needs them all.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ottla.apis.description import Answer, ServedApi, load
from ottla.apis.table import APIS
from ottla.broker.broker import Broker
from ottla.broker.data.batch_checks import keep_records
from ottla.broker.partitions.logs_in_making import wait_for_logs
from ottla.broker.services import bind
from ottla.runtime.large_requests.parts import MOST_BYTES_AT_ONCE, division_of
from ottla.runtime.request import Handler, RefusedRequest, RequestContext, Respond
from ottla.wire.apis import ApiKey, api
from ottla.wire.message import Message

if TYPE_CHECKING:  # a node without an authorizer does not load it
    from ottla.serving.access.gate import Gate

_VERSION_BITS = 16

BrokerHandler: TypeAlias = Callable[..., None]
"""A function `(services…, context, request, respond)`: see `services`."""
FindHandler: TypeAlias = Callable[[int, int], Handler]
"""From an API's key and version to what answers it."""


def served_versions(key: ApiKey) -> range:
    """The versions of an API that are answered; for Produce fewer than are advertised."""
    return api(key).stable_versions


def dispatcher(broker: Broker, find_controllers: FindHandler | None = None, gate: "Gate | None" = None) -> Handler:
    """The function that a server calls with every request. `find_controllers` knows the handlers of the listeners of
    controllers, on a node that has some. `gate` looks after what clients may do, where not everyone may do everything.
    """
    of_controllers = frozenset(broker.config.list("controller.listener.names") if find_controllers else ())
    handlers: defaultdict[str, dict[int, Handler]] = defaultdict(dict)  # By listener, key and version.
    in_making = broker.partitions.in_making

    def handle(context: RequestContext, message: Message, respond: Respond) -> None:
        if context.size > MOST_BYTES_AT_ONCE:
            division = division_of(context.api_key, message)
            if division is not None:
                from ottla.runtime.large_requests.divided import handle_in_parts

                if context.api_key == ApiKey.PRODUCE:
                    keep_records(message)  # type: ignore[arg-type]
                context.go_through(handle_in_parts(division, handle, context, message, respond))
                return
        of_listener = handlers[context.connection.listener]
        route = context.api_key << _VERSION_BITS | context.api_version
        handler = of_listener.get(route)
        if handler is None:
            if find_controllers is not None and context.connection.listener in of_controllers:
                handler = find_controllers(context.api_key, context.api_version)
            else:
                row, answer = find_row(context.api_key, context.api_version)
                handler = bind(load(answer.function), broker)
                if gate is not None:
                    handler = gate.around(row, answer, handler)
            of_listener[route] = handler
        if in_making and wait_for_logs(broker.partitions, broker.world.timers, context, message, respond, handler):
            return
        handler(context, message, respond)

    return handle


def find_handler(api_key: int, version: int) -> BrokerHandler:
    """The function that answers a request. Raises `RefusedRequest` as `find_row` does."""
    handler: BrokerHandler = load(find_row(api_key, version)[1].function)
    return handler


def find_row(api_key: int, version: int) -> tuple[ServedApi, Answer]:
    """Raises `RefusedRequest` for what is not served; the client could have known from ApiVersions."""
    row = APIS.get(api_key)
    if row is None or row.broker is None or version not in served_versions(row.key):
        raise RefusedRequest(f"version {version} of the API with key {api_key} is not served")
    return row, row.broker
