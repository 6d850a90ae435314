"""Which API is answered by whom. A new API is one row here; ApiVersions advertises the rows and nothing else.

What a request of an API needs, and what it counts against, is in `runtime/api_access.py`: an API is served by its row
here and allowed by its row there.

Handlers are imported when the first request for their API comes, so that a node is up before it needs them all.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.broker.broker import Broker
from ottla.broker.data.batch_checks import keep_records
from ottla.broker.partitions.logs_in_making import wait_for_logs
from ottla.broker.services import bind
from ottla.runtime.large_requests.divided import handle_in_parts
from ottla.runtime.large_requests.divisions import MOST_BYTES_AT_ONCE, division_of
from ottla.runtime.request import Handler, RefusedRequest, RequestContext, Respond
from ottla.wire.apis import ApiKey, api
from ottla.wire.message import Message

if TYPE_CHECKING:  # a node without an authorizer does not load it
    from ottla.broker.access.gate import Gate

BrokerHandler: TypeAlias = Callable[..., None]
"""A function `(services…, context, request, respond)`: see `services`."""
FindHandler: TypeAlias = Callable[[int, int], Handler]
"""From an API's key and version to what answers it."""


class Route(NamedTuple):
    """The module in `ottla.broker` and the function in it that answer an API."""

    module: str
    function: str


_FORWARDED: Final = Route("cluster.forwarding", "handle_forwarded")
_TOKEN: Final = Route("admin.delegation_tokens", "handle_alter_token")

ROUTES: Final[dict[ApiKey, Route]] = {
    # Data
    ApiKey.PRODUCE: Route("data.produce", "handle_produce"),
    ApiKey.FETCH: Route("data.fetch", "handle_fetch"),
    ApiKey.LIST_OFFSETS: Route("data.list_offsets", "handle_list_offsets"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Route("data.offset_for_leader_epoch", "handle_offset_for_leader_epoch"),
    ApiKey.DELETE_RECORDS: Route("data.delete_records", "handle_delete_records"),
    # Producers
    ApiKey.INIT_PRODUCER_ID: Route("transactions.init_producer_id", "handle_init_producer_id"),
    ApiKey.DESCRIBE_PRODUCERS: Route("transactions.describe_producers", "handle_describe_producers"),
    # Transactions
    ApiKey.ADD_PARTITIONS_TO_TXN: Route("transactions.add_partitions_to_txn", "handle_add_partitions_to_txn"),
    ApiKey.ADD_OFFSETS_TO_TXN: Route("transactions.add_offsets_to_txn", "handle_add_offsets_to_txn"),
    ApiKey.END_TXN: Route("transactions.end_txn", "handle_end_txn"),
    ApiKey.TXN_OFFSET_COMMIT: Route("transactions.txn_offset_commit", "handle_txn_offset_commit"),
    ApiKey.WRITE_TXN_MARKERS: Route("transactions.write_txn_markers", "handle_write_txn_markers"),
    ApiKey.DESCRIBE_TRANSACTIONS: Route("transactions.describe_transactions", "handle_describe_transactions"),
    ApiKey.LIST_TRANSACTIONS: Route("transactions.list_transactions", "handle_list_transactions"),
    # Groups
    ApiKey.FIND_COORDINATOR: Route("coordination.find_coordinator", "handle_find_coordinator"),
    ApiKey.JOIN_GROUP: Route("groups.join_group", "handle_join_group"),
    ApiKey.SYNC_GROUP: Route("groups.sync_group", "handle_sync_group"),
    ApiKey.HEARTBEAT: Route("groups.heartbeat", "handle_heartbeat"),
    ApiKey.LEAVE_GROUP: Route("groups.leave_group", "handle_leave_group"),
    ApiKey.OFFSET_COMMIT: Route("groups.offset_commit", "handle_offset_commit"),
    ApiKey.OFFSET_FETCH: Route("groups.offset_fetch", "handle_offset_fetch"),
    ApiKey.OFFSET_DELETE: Route("groups.offset_delete", "handle_offset_delete"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Route("groups.consumer_group_heartbeat", "handle_consumer_group_heartbeat"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Route("groups.consumer_group_describe", "handle_consumer_group_describe"),
    ApiKey.LIST_GROUPS: Route("groups.list_groups", "handle_list_groups"),
    ApiKey.DESCRIBE_GROUPS: Route("groups.describe_groups", "handle_describe_groups"),
    ApiKey.DELETE_GROUPS: Route("groups.delete_groups", "handle_delete_groups"),
    # Directories
    ApiKey.DESCRIBE_LOG_DIRS: Route("admin.replica_log_dirs", "handle_describe_log_dirs"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Route("admin.replica_log_dirs", "handle_alter_replica_log_dirs"),
    # The cluster
    ApiKey.API_VERSIONS: Route("cluster.api_versions", "handle_api_versions"),
    ApiKey.SASL_HANDSHAKE: Route("cluster.sasl_state", "handle_sasl_handshake"),
    ApiKey.SASL_AUTHENTICATE: Route("cluster.sasl_state", "handle_sasl_authenticate"),
    ApiKey.METADATA: Route("cluster.metadata_requests", "handle_metadata"),
    ApiKey.DESCRIBE_CLUSTER: Route("cluster.describe_cluster", "handle_describe_cluster"),
    ApiKey.DESCRIBE_QUORUM: _FORWARDED,
    ApiKey.ADD_RAFT_VOTER: _FORWARDED,
    ApiKey.REMOVE_RAFT_VOTER: _FORWARDED,
    ApiKey.UPDATE_FEATURES: _FORWARDED,
    ApiKey.UNREGISTER_BROKER: _FORWARDED,
    # Topics
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Route("cluster.topic_partitions", "handle_describe_topic_partitions"),
    ApiKey.CREATE_TOPICS: _FORWARDED,
    ApiKey.DELETE_TOPICS: _FORWARDED,
    ApiKey.CREATE_PARTITIONS: _FORWARDED,
    ApiKey.ELECT_LEADERS: _FORWARDED,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _FORWARDED,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _FORWARDED,
    # Settings
    ApiKey.DESCRIBE_CONFIGS: Route("admin.settings.describe_configs", "handle_describe_configs"),
    ApiKey.ALTER_CONFIGS: Route("admin.settings.alter_configs", "handle_alter_configs"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Route("admin.settings.alter_configs", "handle_incremental_alter_configs"),
    ApiKey.LIST_CONFIG_RESOURCES: Route("admin.settings.config_resources", "handle_list_config_resources"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Route("admin.quotas", "handle_describe_client_quotas"),
    ApiKey.ALTER_CLIENT_QUOTAS: _FORWARDED,
    # Users, and what they may do
    ApiKey.DESCRIBE_ACLS: Route("admin.acls", "handle_describe_acls"),
    ApiKey.CREATE_ACLS: _FORWARDED,
    ApiKey.DELETE_ACLS: _FORWARDED,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Route("admin.scram", "handle_describe_user_scram_credentials"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _FORWARDED,
    ApiKey.CREATE_DELEGATION_TOKEN: _TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN: _TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Route("admin.delegation_tokens", "handle_describe_delegation_token"),
}


def served_versions(key: ApiKey) -> range:
    """The versions of an API that are answered; for Produce fewer than are advertised."""
    return api(key).stable_versions


def dispatcher(broker: Broker, find_controllers: FindHandler | None = None, gate: "Gate | None" = None) -> Handler:
    """The function that a server calls with every request. `find_controllers` knows the handlers of the listeners of
    controllers, on a node that has some. `gate` looks after what clients may do, where not everyone may do everything.
    """
    of_controllers = frozenset(broker.config.list("controller.listener.names") if find_controllers else ())
    handlers: dict[tuple[str, int, int], Handler] = {}
    in_making = broker.partitions.in_making

    def handle(context: RequestContext, message: Message, respond: Respond) -> None:
        if context.size > MOST_BYTES_AT_ONCE:
            division = division_of(context.api_key, message)
            if division is not None:
                if context.api_key == ApiKey.PRODUCE:
                    keep_records(message)  # type: ignore[arg-type]
                context.go_through(handle_in_parts(division, handle, context, message, respond))
                return
        key = context.connection.listener, context.api_key, context.api_version
        handler = handlers.get(key)
        if handler is None:
            if find_controllers is not None and context.connection.listener in of_controllers:
                handler = find_controllers(context.api_key, context.api_version)
            else:
                handler = bind(find_handler(context.api_key, context.api_version), broker)
                if gate is not None:
                    handler = gate.around(context.api_key, handler)
            handlers[key] = handler
        if in_making and wait_for_logs(broker.partitions, context, message, respond, handler):
            return
        handler(context, message, respond)

    return handle


def find_handler(api_key: int, version: int) -> BrokerHandler:
    """Raises `RefusedRequest` for what is not served; the client could have known from ApiVersions."""
    route = ROUTES.get(api_key)  # type: ignore[call-overload]
    if route is None or version not in served_versions(ApiKey(api_key)):
        raise RefusedRequest(f"version {version} of the API with key {api_key} is not served")
    handler: BrokerHandler = getattr(import_module(f"ottla.broker.{route.module}"), route.function)
    return handler
