"""The APIs that are served. A new API is one row here; ApiVersions advertises the rows and nothing else.

What a request needs, how it is refused and failed are facts of Apache Kafka 4.3. No handler is loaded when a node
starts: each is with the first request of its API.
"""

from collections.abc import Hashable
from typing import Any, Final

from ottla.apis.description import (
    ITSELF,
    Answer,
    Answers,
    Coordinated,
    Division,
    Entries,
    ErrorReply,
    NamedPartitions,
    NamedTopics,
    ServedApi,
)
from ottla.security.api_access import (
    ALTER,
    ALTER_CONFIGS,
    ALTER_CONFIGS_OF_GROUP,
    ALTER_CONFIGS_OF_TOPIC,
    ALTER_TOPIC,
    CLUSTER_ACTION,
    CLUSTER_WORDS,
    CONFIGS,
    CONFIGS_OF_GROUP,
    CONFIGS_OF_TOPIC,
    CREATE,
    CREATE_TOPIC,
    DELETE_GROUP,
    DELETE_TOPIC,
    DESCRIBE,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TXN,
    IDEMPOTENT_WRITE,
    NO_WORDS,
    OF_NODES,
    OPEN,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TXN,
    Access,
    Quota,
)
from ottla.wire.apis import ApiKey


def _broker(function: str, check: str | None = None) -> Answer:
    return Answer(f"ottla.broker.{function}", _full("ottla.broker.access.", check))


def _controller(function: str, check: str | None = None, *, takes_connection: bool = False) -> Answer:
    return Answer(f"ottla.controller.{function}", _full("ottla.controller.", check), takes_connection)


def _of_connection(function: str, check: str | None = None) -> Answer:
    return _controller(function, check, takes_connection=True)


def _decision(function: str) -> str:
    return f"ottla.machines.metadata.decisions.{function}"


def _log_lines(function: str) -> str:
    return f"ottla.controller.change_log:{function}"


def _full(part: str, check: str | None) -> str | None:
    return check if check is None or check.startswith("ottla.") else part + check


_BY_THE_CONTROLLER: Final = "ottla.serving.access.check_shapes:open_to_all"
"""The controller checks what is passed on to it, with the client's principal (KIP-590)."""
_DESCRIBE_CONFIGS: Final = "ottla.serving.access.shared_checks:describe_configs"
_CREATE_TOKEN: Final = "ottla.serving.access.shared_checks:create_token"

FORWARDED: Final = _broker("cluster.forwarding:handle_forwarded", _BY_THE_CONTROLLER)


def _same(*fields: str) -> dict[str, str]:
    return {field: field for field in fields}


_BARE_PARTITIONS: Final = {"partition_index": ITSELF}
_PARTITIONS: Final = Entries("partitions", "partitions", _same("partition_index"))
_BY_TOPIC: Final = Entries("topics", "topics", _same("name"), _PARTITIONS)
_BARE_BY_TOPIC: Final = Entries(
    "topics", "topics", _same("name"), Entries("partitions", "partition_indexes", _BARE_PARTITIONS)
)
_RESOURCES: Final = _same("resource_type", "resource_name")

_TOPICS_BY_NAME: Final = Answers("topics", ("name",))
_TOPICS_BY_NAME_OR_ID: Final = Answers("topics", ("name", "topic_id"))
_PARTITIONS_IN_ORDER: Final = Answers("partitions")
_PARTITIONS_BY_INDEX: Final = Answers("partitions", ("partition_index",))
_BY_RESOURCE: Final = ("resource_type", "resource_name")

GROUPS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
_GROUP: Final = Coordinated(GROUPS, "group_id")
_TRANSACTION: Final = Coordinated(TRANSACTIONS, "transactional_id")


def _partition_of_topic(around: tuple[Any, ...], partition: Any) -> Hashable:
    return (around[0].name, partition.partition_index) if around else partition.name


def _resource(_around: tuple[Any, ...], resource: Any) -> Hashable:
    return resource.resource_type, resource.resource_name


def _name(_around: tuple[Any, ...], topic: Any) -> Hashable:
    name: str = topic.name
    return name


_ROWS: Final = (
    # Data. A follower that fetches, or asks where an epoch ends, needs CLUSTER_ACTION instead.
    ServedApi(
        ApiKey.PRODUCE,
        Access((WRITE_TXN, WRITE_TOPIC), Quota.PRODUCE),
        broker=_broker("data.produce:handle_produce", "data_checks:produce"),
        errors=ErrorReply(
            (
                Entries(
                    "responses",
                    "topic_data",
                    _same("name", "topic_id"),
                    Entries("partition_responses", "partition_data", _same("index")),
                ),
            ),
            unknown={"base_offset": -1},
        ),
        divisions=(
            Division(
                ("topic_data", "partition_data"),
                (Answers("responses", ("name", "topic_id")), Answers("partition_responses")),
                union=Answers("node_endpoints", ("node_id",)),
            ),
        ),
        topics=NamedTopics(("topic_data",), outcomes="responses"),
        waits_for=NamedPartitions("topic_data", "name", "partition_data", "index", ids_since=13),
    ),
    ServedApi(
        ApiKey.FETCH,
        Access((READ_TOPIC,), Quota.FETCH, CLUSTER_ACTION),
        broker=_broker("data.fetch:handle_fetch", "data_checks:fetch"),
        controller=_controller("quorum_requests:fetch", "access:of_nodes"),
        errors=ErrorReply(
            (
                Entries(
                    "responses",
                    "topics",
                    _same("topic"),
                    Entries("partitions", "partitions", {"partition_index": "partition"}),
                ),
            ),
            whole_since=13,
            unknown={"high_watermark": -1},
        ),
        topics=NamedTopics(),
        waits_for=NamedPartitions(name="topic", number="partition", ids_since=13),
    ),
    ServedApi(
        ApiKey.LIST_OFFSETS,
        Access((DESCRIBE_TOPIC,)),
        broker=_broker("data.list_offsets:handle_list_offsets", "data_checks:list_offsets"),
        errors=ErrorReply((_BY_TOPIC,)),
        divisions=(
            Division(("topics", "partitions"), (_TOPICS_BY_NAME, _PARTITIONS_IN_ORDER), named_once=_partition_of_topic),
        ),
        topics=NamedTopics(only_reads=True),
        waits_for=NamedPartitions(),
    ),
    ServedApi(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        Access((DESCRIBE_TOPIC,), or_instead=CLUSTER_ACTION),
        broker=_broker(
            "data.offset_for_leader_epoch:handle_offset_for_leader_epoch", "data_checks:offset_for_leader_epoch"
        ),
        errors=ErrorReply(
            (Entries("topics", "topics", _same("topic"), Entries("partitions", "partitions", _same("partition"))),)
        ),
        divisions=(Division(("topics", "partitions"), (Answers("topics", ("topic",)), _PARTITIONS_IN_ORDER)),),
        topics=NamedTopics(only_reads=True),
        waits_for=NamedPartitions(name="topic", number="partition"),
    ),
    ServedApi(
        ApiKey.DELETE_RECORDS,
        Access((DELETE_TOPIC,)),
        broker=_broker("data.delete_records:handle_delete_records", "data_checks:delete_records"),
        errors=ErrorReply((_BY_TOPIC,), unknown={"low_watermark": -1}),
        divisions=(Division(("topics", "partitions"), (_TOPICS_BY_NAME, _PARTITIONS_IN_ORDER)),),
        topics=NamedTopics(outcomes="topics"),
        waits_for=NamedPartitions(),
    ),
    # Producers. Without a transactional id, WRITE on any topic is enough for an id (KIP-679).
    ServedApi(
        ApiKey.INIT_PRODUCER_ID,
        Access((WRITE_TXN,), or_instead=IDEMPOTENT_WRITE),
        broker=_broker("transactions.init_producer_id:handle_init_producer_id", "transaction_checks:init_producer_id"),
        waits_for=_TRANSACTION,
    ),
    ServedApi(
        ApiKey.DESCRIBE_PRODUCERS,
        Access((READ_TOPIC,)),
        broker=_broker(
            "transactions.describe_producers:handle_describe_producers", "transaction_checks:describe_producers"
        ),
        errors=ErrorReply((_BARE_BY_TOPIC,)),
        divisions=(Division(("topics", "partition_indexes"), (_TOPICS_BY_NAME, _PARTITIONS_BY_INDEX), joins=True),),
        waits_for=NamedPartitions(partitions="partition_indexes", number=ITSELF),
    ),
    # Transactions
    ServedApi(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        Access((WRITE_TXN, WRITE_TOPIC), or_instead=CLUSTER_ACTION),
        broker=_broker(
            "transactions.add_partitions_to_txn:handle_add_partitions_to_txn",
            "transaction_checks:add_partitions_to_txn",
        ),
        errors=ErrorReply(
            (
                Entries(
                    "results_by_topic_v3_and_below",
                    "v3_and_below_topics",
                    _same("name"),
                    Entries("results_by_partition", "partitions", _BARE_PARTITIONS),
                ),
            )
        ),
        divisions=(Division(("transactions",), (Answers("results_by_transaction"),)),),
        topics=NamedTopics(("v3_and_below_topics", "topics"), inside="transactions"),
        waits_for=Coordinated(TRANSACTIONS, "v3_and_below_transactional_id"),
    ),
    ServedApi(
        ApiKey.ADD_OFFSETS_TO_TXN,
        Access((WRITE_TXN, READ_GROUP)),
        broker=_broker(
            "transactions.add_offsets_to_txn:handle_add_offsets_to_txn", "transaction_checks:add_offsets_to_txn"
        ),
        waits_for=_TRANSACTION,
    ),
    ServedApi(
        ApiKey.END_TXN,
        Access((WRITE_TXN,)),
        broker=_broker("transactions.end_txn:handle_end_txn", "transaction_checks:end_txn"),
        waits_for=_TRANSACTION,
    ),
    ServedApi(
        ApiKey.TXN_OFFSET_COMMIT,
        Access((WRITE_TXN, READ_GROUP, READ_TOPIC)),
        broker=_broker(
            "transactions.txn_offset_commit:handle_txn_offset_commit", "transaction_checks:txn_offset_commit"
        ),
        errors=ErrorReply((_BY_TOPIC,)),
        divisions=(Division(("topics", "partitions"), (_TOPICS_BY_NAME, _PARTITIONS_IN_ORDER), joins=True),),
        topics=NamedTopics(outcomes="topics"),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.WRITE_TXN_MARKERS,
        Access((CLUSTER_ACTION,), Quota.EXEMPT, ALTER),
        broker=_broker("transactions.write_txn_markers:handle_write_txn_markers"),
        errors=ErrorReply((Entries("markers", "markers", _same("producer_id"), _BARE_BY_TOPIC),)),
        divisions=(
            Division(
                ("markers", "topics", "partition_indexes"),
                (Answers("markers", ("producer_id",)), _TOPICS_BY_NAME, _PARTITIONS_BY_INDEX),
                joins=True,
            ),
        ),
    ),
    ServedApi(
        ApiKey.DESCRIBE_TRANSACTIONS,
        Access((DESCRIBE_TXN,)),
        broker=_broker(
            "transactions.describe_transactions:handle_describe_transactions",
            "transaction_checks:describe_transactions",
        ),
        errors=ErrorReply((Entries("transaction_states", "transactional_ids", {"transactional_id": ITSELF}),)),
        divisions=(
            Division(("transactional_ids",), (Answers("transaction_states", ("transactional_id",)),), joins=True),
        ),
        waits_for=Coordinated(TRANSACTIONS, "transactional_ids"),
    ),
    ServedApi(
        ApiKey.LIST_TRANSACTIONS,
        Access((DESCRIBE_TXN,)),
        broker=_broker(
            "transactions.list_transactions:handle_list_transactions", "transaction_checks:list_transactions"
        ),
    ),
    # Groups. FindCoordinator needs the right on what it is asked for: groups, or transactional ids.
    ServedApi(
        ApiKey.FIND_COORDINATOR,
        Access((DESCRIBE_GROUP, DESCRIBE_TXN)),
        broker=_broker("coordination.find_coordinator:handle_find_coordinator", "group_checks:find_coordinator"),
        errors=ErrorReply(
            (Entries("coordinators", "coordinator_keys", {"key": ITSELF}),), unknown={"node_id": -1, "port": -1}
        ),
        divisions=(Division(("coordinator_keys",), (Answers("coordinators"),)),),
    ),
    ServedApi(
        ApiKey.JOIN_GROUP,
        Access((READ_GROUP,)),
        broker=_broker("groups.join_group:handle_join_group", "group_checks:join_group"),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.SYNC_GROUP,
        Access((READ_GROUP,)),
        broker=_broker("groups.sync_group:handle_sync_group", "group_checks:sync_group"),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.HEARTBEAT,
        Access((READ_GROUP,)),
        broker=_broker("groups.heartbeat:handle_heartbeat", "group_checks:heartbeat"),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.LEAVE_GROUP,
        Access((READ_GROUP,)),
        broker=_broker("groups.leave_group:handle_leave_group", "group_checks:leave_group"),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.OFFSET_COMMIT,
        Access((READ_GROUP, READ_TOPIC)),
        broker=_broker("groups.offset_commit:handle_offset_commit", "group_checks:offset_commit"),
        errors=ErrorReply((Entries("topics", "topics", _same("name", "topic_id"), _PARTITIONS),)),
        divisions=(Division(("topics", "partitions"), (_TOPICS_BY_NAME_OR_ID, _PARTITIONS_IN_ORDER), joins=True),),
        topics=NamedTopics(outcomes="topics"),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.OFFSET_FETCH,
        Access((DESCRIBE_GROUP, DESCRIBE_TOPIC)),
        broker=_broker("groups.offset_fetch:handle_offset_fetch", "group_checks:offset_fetch"),
        errors=ErrorReply(
            (
                _BARE_BY_TOPIC,
                Entries("groups", "groups", _same("group_id")),
            ),
            unknown={"committed_offset": -1},
        ),
        divisions=(
            Division(
                ("groups", "topics", "partition_indexes"),
                (Answers("groups", ("group_id",)), _TOPICS_BY_NAME_OR_ID, _PARTITIONS_BY_INDEX),
                joins=True,
            ),
            Division(("topics", "partition_indexes"), (_TOPICS_BY_NAME, _PARTITIONS_BY_INDEX), joins=True),
        ),
        topics=NamedTopics(inside="groups", only_reads=True),
        waits_for=Coordinated(GROUPS, "group_id", inside="groups"),
    ),
    ServedApi(
        ApiKey.OFFSET_DELETE,
        Access((DELETE_GROUP, READ_TOPIC)),
        broker=_broker("groups.offset_delete:handle_offset_delete", "group_checks:offset_delete"),
        divisions=(Division(("topics", "partitions"), (_TOPICS_BY_NAME, _PARTITIONS_IN_ORDER), joins=True),),
        topics=NamedTopics(),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        Access((READ_GROUP, DESCRIBE_TOPIC)),
        broker=_broker(
            "groups.consumer_group_heartbeat:handle_consumer_group_heartbeat", "group_checks:consumer_group_heartbeat"
        ),
        waits_for=_GROUP,
    ),
    ServedApi(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        Access((DESCRIBE_GROUP, DESCRIBE_TOPIC)),
        broker=_broker(
            "groups.consumer_group_describe:handle_consumer_group_describe", "group_checks:consumer_group_describe"
        ),
        errors=ErrorReply((Entries("groups", "group_ids", {"group_id": ITSELF}),)),
        divisions=(Division(("group_ids",), (Answers("groups", ("group_id",)),), joins=True),),
        waits_for=Coordinated(GROUPS, "group_ids"),
    ),
    ServedApi(
        ApiKey.LIST_GROUPS,
        Access((DESCRIBE_GROUP,), or_instead=DESCRIBE),
        broker=_broker("groups.list_groups:handle_list_groups", "group_checks:list_groups"),
    ),
    ServedApi(
        ApiKey.DESCRIBE_GROUPS,
        Access((DESCRIBE_GROUP,)),
        broker=_broker("groups.describe_groups:handle_describe_groups", "group_checks:describe_groups"),
        errors=ErrorReply((Entries("groups", "groups", {"group_id": ITSELF}),)),
        divisions=(Division(("groups",), (Answers("groups", ("group_id",)),), joins=True),),
        waits_for=Coordinated(GROUPS, "groups"),
    ),
    ServedApi(
        ApiKey.DELETE_GROUPS,
        Access((DELETE_GROUP,)),
        broker=_broker("groups.delete_groups:handle_delete_groups", "group_checks:delete_groups"),
        errors=ErrorReply((Entries("results", "groups_names", {"group_id": ITSELF}),)),
        divisions=(Division(("groups_names",), (Answers("results", ("group_id",)),), joins=True),),
        waits_for=Coordinated(GROUPS, "groups_names"),
    ),
    # Directories
    ServedApi(
        ApiKey.DESCRIBE_LOG_DIRS, Access((DESCRIBE,)), broker=_broker("admin.replica_log_dirs:handle_describe_log_dirs")
    ),
    ServedApi(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        Access((ALTER,)),
        broker=_broker("admin.replica_log_dirs:handle_alter_replica_log_dirs"),
        errors=ErrorReply(
            (
                Entries(
                    "results", "topics", {"topic_name": "name"}, Entries("partitions", "partitions", _BARE_PARTITIONS)
                ),
            ),
            inside="dirs",
        ),
        divisions=(
            Division(
                ("dirs", "topics", "partitions"),
                (Answers("results", ("topic_name",)), _PARTITIONS_IN_ORDER),
                joins=True,
            ),
        ),
    ),
    # The cluster
    ServedApi(
        ApiKey.API_VERSIONS,
        OPEN,
        broker=_broker("cluster.api_versions:handle_api_versions"),
        controller=_of_connection("controller_listener:handle_api_versions"),
    ),
    ServedApi(
        ApiKey.SASL_HANDSHAKE,
        OPEN,
        broker=Answer("ottla.serving.sasl_state:handle_sasl_handshake"),
        controller=_of_connection("controller_listener:handle_sasl_handshake"),
    ),
    ServedApi(
        ApiKey.SASL_AUTHENTICATE,
        OPEN,
        broker=Answer("ottla.serving.sasl_state:handle_sasl_authenticate"),
        controller=_of_connection("controller_listener:handle_sasl_authenticate"),
    ),
    ServedApi(
        ApiKey.METADATA,
        Access((DESCRIBE_TOPIC,)),
        broker=_broker("cluster.metadata_requests:handle_metadata", "cluster_checks:metadata"),
        errors=ErrorReply((Entries("topics", "topics", _same("name", "topic_id")),)),
        divisions=(Division(("topics",), (Answers("topics", ("name", "topic_id")),), joins=True),),
        topics=NamedTopics(only_reads=True),
    ),
    ServedApi(
        ApiKey.DESCRIBE_CLUSTER,
        OPEN,
        broker=_broker(
            "cluster.describe_cluster:handle_describe_cluster", "ottla.serving.access.shared_checks:describe_cluster"
        ),
        controller=_of_connection("controller_listener:handle_describe_cluster", "access:describe_cluster"),
    ),
    ServedApi(
        ApiKey.DESCRIBE_QUORUM,
        Access((DESCRIBE,), words=CLUSTER_WORDS),
        broker=FORWARDED,
        controller=_controller("describe_quorum:describe_quorum"),
        may_be_forwarded=True,
        divisions=(Division(("topics", "partitions"), (Answers("topics", ("topic_name",)), _PARTITIONS_IN_ORDER)),),
    ),
    ServedApi(
        ApiKey.ADD_RAFT_VOTER,
        Access((ALTER,), words=CLUSTER_WORDS),
        broker=FORWARDED,
        controller=_controller("voter_requests:add_raft_voter"),
        may_be_forwarded=True,
    ),
    ServedApi(
        ApiKey.REMOVE_RAFT_VOTER,
        Access((ALTER,), words=CLUSTER_WORDS),
        broker=FORWARDED,
        controller=_controller("voter_requests:remove_raft_voter"),
        may_be_forwarded=True,
    ),
    ServedApi(
        ApiKey.UPDATE_FEATURES,
        Access((ALTER,)),
        broker=FORWARDED,
        controller=_controller("update_features:update_features"),
        may_be_forwarded=True,
        decision=_decision("update_features:update_features"),
        log_lines=_log_lines("features"),
    ),
    ServedApi(
        ApiKey.UNREGISTER_BROKER,
        Access((ALTER,)),
        broker=FORWARDED,
        controller=_controller("committed_decisions:decide"),
        may_be_forwarded=True,
        decision=_decision("registration:unregister_broker"),
    ),
    # Topics
    ServedApi(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        Access((DESCRIBE_TOPIC,)),
        broker=_broker(
            "cluster.topic_partitions:handle_describe_topic_partitions", "cluster_checks:describe_topic_partitions"
        ),
        errors=ErrorReply((Entries("topics", "topics", _same("name")),)),
        topics=NamedTopics(only_reads=True),
    ),
    ServedApi(
        ApiKey.CREATE_TOPICS,
        Access((CREATE_TOPIC,), Quota.CONTROLLER_MUTATION, CREATE),
        broker=FORWARDED,
        controller=_controller("mutation_quotas:decide_counted", "access:create_topics"),
        may_be_forwarded=True,
        decision=_decision("create_topics:create_topics"),
        strict_since=6,
        errors=ErrorReply((Entries("topics", "topics", _same("name")),)),
        topics=NamedTopics(outcomes="topics"),
    ),
    ServedApi(
        ApiKey.DELETE_TOPICS,
        Access((DELETE_TOPIC,), Quota.CONTROLLER_MUTATION),
        broker=FORWARDED,
        controller=_controller("mutation_quotas:decide_counted", "access:delete_topics"),
        may_be_forwarded=True,
        decision=_decision("delete_topics:delete_topics"),
        strict_since=5,
        errors=ErrorReply(
            (
                Entries("responses", "topics", _same("name", "topic_id")),
                Entries("responses", "topic_names", {"name": ITSELF}),
            )
        ),
        topics=NamedTopics(("topics", "topic_names"), outcomes="responses"),
    ),
    ServedApi(
        ApiKey.CREATE_PARTITIONS,
        Access((ALTER_TOPIC,), Quota.CONTROLLER_MUTATION),
        broker=FORWARDED,
        controller=_controller("mutation_quotas:decide_counted", "access:create_partitions"),
        may_be_forwarded=True,
        decision=_decision("create_partitions:create_partitions"),
        strict_since=3,
        errors=ErrorReply((Entries("results", "topics", _same("name")),)),
        divisions=(Division(("topics",), (Answers("results", ("name",)),), joins=True, named_once=_name),),
        topics=NamedTopics(outcomes="results"),
    ),
    ServedApi(
        ApiKey.ELECT_LEADERS,
        Access((ALTER,)),
        broker=FORWARDED,
        controller=_controller("committed_decisions:decide"),
        may_be_forwarded=True,
        decision=_decision("elect_leaders:elect_leaders"),
        errors=ErrorReply(
            (
                Entries(
                    "replica_election_results",
                    "topic_partitions",
                    _same("topic"),
                    Entries("partition_result", "partitions", {"partition_id": ITSELF}),
                ),
            )
        ),
        divisions=(
            Division(
                ("topic_partitions", "partitions"),
                (Answers("replica_election_results", ("topic",)), Answers("partition_result")),
            ),
        ),
    ),
    ServedApi(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        Access((ALTER,)),
        broker=FORWARDED,
        controller=_controller("committed_decisions:decide"),
        may_be_forwarded=True,
        decision=_decision("reassign_partitions:alter_partition_reassignments"),
        errors=ErrorReply((Entries("responses", "topics", _same("name"), _PARTITIONS),)),
        divisions=(Division(("topics", "partitions"), (Answers("responses", ("name",)), _PARTITIONS_IN_ORDER)),),
    ),
    ServedApi(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        Access((DESCRIBE,)),
        broker=FORWARDED,
        controller=_controller("committed_decisions:decide"),
        may_be_forwarded=True,
        decision=_decision("reassign_partitions:list_partition_reassignments"),
    ),
    # Settings: of brokers and their loggers on the cluster, of topics and groups on each.
    ServedApi(
        ApiKey.DESCRIBE_CONFIGS,
        Access((CONFIGS, CONFIGS_OF_TOPIC, CONFIGS_OF_GROUP)),
        broker=_broker("admin.described:handle_describe_configs", _DESCRIBE_CONFIGS),
        controller=_controller("described:describe_configs", _DESCRIBE_CONFIGS),
        errors=ErrorReply((Entries("results", "resources", _RESOURCES),)),
        divisions=(Division(("resources",), (Answers("results", _BY_RESOURCE),), joins=True),),
    ),
    ServedApi(
        ApiKey.ALTER_CONFIGS,
        Access((ALTER_CONFIGS, ALTER_CONFIGS_OF_TOPIC, ALTER_CONFIGS_OF_GROUP)),
        broker=_broker("admin.alter_configs:handle_alter_configs", "admin_checks:alter_configs"),
        controller=_controller("committed_decisions:decide", "access:alter_configs"),
        may_be_forwarded=True,
        decision=_decision("alter_configs:alter_configs"),
        log_lines=_log_lines("configs"),
        errors=ErrorReply((Entries("responses", "resources", _RESOURCES),)),
        divisions=(Division(("resources",), (Answers("responses"),), named_once=_resource),),
    ),
    ServedApi(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        Access((ALTER_CONFIGS, ALTER_CONFIGS_OF_TOPIC, ALTER_CONFIGS_OF_GROUP)),
        broker=_broker("admin.alter_configs:handle_incremental_alter_configs", "admin_checks:alter_configs"),
        controller=_controller("alter_configs:incremental_alter_configs", "access:alter_configs"),
        may_be_forwarded=True,
        decision=_decision("alter_configs:incremental_alter_configs"),
        log_lines=_log_lines("configs"),
        errors=ErrorReply((Entries("responses", "resources", _RESOURCES),)),
        divisions=(Division(("resources",), (Answers("responses"),), named_once=_resource),),
    ),
    ServedApi(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        OPEN,
        broker=_broker("telemetry.telemetry_requests:handle_get_telemetry_subscriptions"),
        is_telemetry=True,
    ),
    ServedApi(
        ApiKey.PUSH_TELEMETRY,
        OPEN,
        broker=_broker("telemetry.telemetry_requests:handle_push_telemetry"),
        is_telemetry=True,
    ),
    ServedApi(
        ApiKey.LIST_CONFIG_RESOURCES,
        Access((CONFIGS,)),
        broker=_broker("admin.config_resources:handle_list_config_resources"),
    ),
    ServedApi(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        Access((CONFIGS,), words=NO_WORDS),
        broker=_broker("admin.quotas:handle_describe_client_quotas"),
    ),
    ServedApi(
        ApiKey.ALTER_CLIENT_QUOTAS,
        Access((ALTER_CONFIGS,), words=CLUSTER_WORDS),
        broker=FORWARDED,
        controller=_controller("alter_client_quotas:alter_client_quotas"),
        may_be_forwarded=True,
        decision=_decision("alter_quotas:alter_client_quotas"),
        log_lines=_log_lines("quotas"),
        errors=ErrorReply((Entries("entries", "entries", _same("entity")),)),
    ),
    # Users, and what they may do. One's own tokens need no right; another's CREATE_TOKENS or DESCRIBE_TOKENS on the
    # user, or DESCRIBE on the token.
    ServedApi(
        ApiKey.DESCRIBE_ACLS,
        Access((DESCRIBE,)),
        broker=_broker("admin.described:handle_describe_acls"),
        controller=_controller("acl_requests:describe_acls"),
    ),
    ServedApi(
        ApiKey.CREATE_ACLS,
        Access((ALTER,)),
        broker=FORWARDED,
        controller=_controller("acl_requests:alter_acls"),
        may_be_forwarded=True,
        decision=_decision("alter_acls:create_acls"),
        log_lines=_log_lines("created_rules"),
        errors=ErrorReply((Entries("results", "creations", {}),)),
    ),
    ServedApi(
        ApiKey.DELETE_ACLS,
        Access((ALTER,)),
        broker=FORWARDED,
        controller=_controller("acl_requests:alter_acls"),
        may_be_forwarded=True,
        decision=_decision("alter_acls:delete_acls"),
        log_lines=_log_lines("deleted_rules"),
        errors=ErrorReply((Entries("filter_results", "filters", {}),)),
    ),
    ServedApi(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        Access((DESCRIBE,), words=NO_WORDS),
        broker=_broker("admin.described:handle_describe_user_scram_credentials"),
        controller=_controller("described:describe_user_scram_credentials"),
        errors=ErrorReply((Entries("results", "users", {"user": "name"}),)),
    ),
    ServedApi(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        Access((ALTER,)),
        broker=FORWARDED,
        controller=_controller("committed_decisions:decide"),
        may_be_forwarded=True,
        decision=_decision("alter_scram:alter_user_scram_credentials"),
        log_lines=_log_lines("users"),
        errors=ErrorReply(
            (
                Entries("results", "deletions", {"user": "name"}),
                Entries("results", "upsertions", {"user": "name"}),
            )
        ),
    ),
    ServedApi(
        ApiKey.CREATE_DELEGATION_TOKEN,
        OPEN,
        broker=_broker("admin.delegation_tokens:handle_alter_token", _CREATE_TOKEN),
        controller=_controller("delegation_tokens:alter_token", _CREATE_TOKEN),
        may_be_forwarded=True,
    ),
    ServedApi(
        ApiKey.RENEW_DELEGATION_TOKEN,
        OPEN,
        broker=_broker("admin.delegation_tokens:handle_alter_token", _BY_THE_CONTROLLER),
        controller=_controller("delegation_tokens:alter_token"),
        may_be_forwarded=True,
    ),
    ServedApi(
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        OPEN,
        broker=_broker("admin.delegation_tokens:handle_alter_token", _BY_THE_CONTROLLER),
        controller=_controller("delegation_tokens:alter_token"),
        may_be_forwarded=True,
    ),
    ServedApi(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        OPEN,
        broker=_broker("admin.delegation_tokens:handle_describe_delegation_token", "admin_checks:describe_tokens"),
        controller=_controller("delegation_tokens:describe_tokens"),
    ),
    # What nodes of the cluster ask
    ServedApi(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        OF_NODES,
        controller=_controller("committed_decisions:decide"),
        decision=_decision("assign_directories:assign_replicas_to_dirs"),
    ),
    ServedApi(
        ApiKey.BROKER_REGISTRATION,
        OF_NODES,
        controller=_controller("committed_decisions:decide"),
        decision=_decision("registration:register_broker"),
    ),
    ServedApi(
        ApiKey.BROKER_HEARTBEAT,
        OF_NODES,
        controller=_controller("committed_decisions:decide"),
        decision=_decision("heartbeats:heartbeat"),
    ),
    ServedApi(
        ApiKey.CONTROLLER_REGISTRATION,
        OF_NODES,
        controller=_controller("committed_decisions:decide"),
        decision=_decision("registration:register_controller"),
    ),
    ServedApi(ApiKey.VOTE, OF_NODES, controller=_controller("quorum_requests:vote")),
    ServedApi(ApiKey.BEGIN_QUORUM_EPOCH, OF_NODES, controller=_controller("quorum_requests:begin_quorum_epoch")),
    ServedApi(ApiKey.END_QUORUM_EPOCH, OF_NODES, controller=_controller("quorum_requests:end_quorum_epoch")),
    ServedApi(ApiKey.FETCH_SNAPSHOT, OF_NODES, controller=_controller("quorum_requests:fetch_snapshot")),
    ServedApi(ApiKey.UPDATE_RAFT_VOTER, OF_NODES, controller=_controller("voter_requests:update_raft_voter")),
    ServedApi(
        ApiKey.ALTER_PARTITION,
        OF_NODES,
        controller=_controller("committed_decisions:decide"),
        decision=_decision("alter_partition:alter_partition"),
    ),
    ServedApi(
        ApiKey.ALLOCATE_PRODUCER_IDS,
        OF_NODES,
        controller=_controller("committed_decisions:decide"),
        may_be_forwarded=True,
        decision=_decision("allocate_producer_ids:allocate_producer_ids"),
    ),
    ServedApi(ApiKey.ENVELOPE, OF_NODES, controller=_of_connection("envelope:handle_envelope")),
)

APIS: Final[dict[int, ServedApi]] = {row.key: row for row in _ROWS}
"""By key. It is looked into anew each time, never copied: a test adds an API here, and nowhere else."""


def served_by_brokers() -> tuple[ApiKey, ...]:
    return tuple([row.key for row in APIS.values() if row.broker is not None])


def served_by_controllers() -> tuple[ApiKey, ...]:
    return tuple([row.key for row in APIS.values() if row.controller is not None])
