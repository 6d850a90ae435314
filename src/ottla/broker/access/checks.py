"""Which check a request of each API has, on the listeners of brokers. An API without a row is served to nobody."""

from typing import Final

from ottla.broker.access import (
    cluster_checks,
    data_checks,
    group_checks,
    setting_checks,
    token_checks,
    transaction_checks,
)
from ottla.broker.access.check_shapes import NO_WORDS, on_cluster, open_to_all
from ottla.broker.access.rights import Check
from ottla.wire.acls import AclOperation
from ottla.wire.apis import ApiKey

_BY_THE_CONTROLLER: Final = open_to_all
"""The controller checks what is passed on to it, with the client's principal (KIP-590)."""

CHECKS: Final[dict[int, Check]] = {
    # Data
    ApiKey.PRODUCE: data_checks.produce,
    ApiKey.FETCH: data_checks.fetch,
    ApiKey.LIST_OFFSETS: data_checks.list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: data_checks.offset_for_leader_epoch,
    ApiKey.DELETE_RECORDS: data_checks.delete_records,
    # Producers and transactions
    ApiKey.INIT_PRODUCER_ID: transaction_checks.init_producer_id,
    ApiKey.DESCRIBE_PRODUCERS: transaction_checks.describe_producers,
    ApiKey.ADD_PARTITIONS_TO_TXN: transaction_checks.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transaction_checks.add_offsets_to_txn,
    ApiKey.END_TXN: transaction_checks.end_txn,
    ApiKey.TXN_OFFSET_COMMIT: transaction_checks.txn_offset_commit,
    ApiKey.WRITE_TXN_MARKERS: transaction_checks.write_txn_markers,
    ApiKey.DESCRIBE_TRANSACTIONS: transaction_checks.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transaction_checks.list_transactions,
    # Groups
    ApiKey.FIND_COORDINATOR: group_checks.find_coordinator,
    ApiKey.JOIN_GROUP: group_checks.join_group,
    ApiKey.SYNC_GROUP: group_checks.sync_group,
    ApiKey.HEARTBEAT: group_checks.heartbeat,
    ApiKey.LEAVE_GROUP: group_checks.leave_group,
    ApiKey.OFFSET_COMMIT: group_checks.offset_commit,
    ApiKey.OFFSET_FETCH: group_checks.offset_fetch,
    ApiKey.OFFSET_DELETE: group_checks.offset_delete,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: group_checks.consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: group_checks.consumer_group_describe,
    ApiKey.LIST_GROUPS: group_checks.list_groups,
    ApiKey.DESCRIBE_GROUPS: group_checks.describe_groups,
    ApiKey.DELETE_GROUPS: group_checks.delete_groups,
    # Directories
    ApiKey.DESCRIBE_LOG_DIRS: on_cluster(AclOperation.DESCRIBE),
    ApiKey.ALTER_REPLICA_LOG_DIRS: on_cluster(AclOperation.ALTER),
    # The cluster
    ApiKey.API_VERSIONS: open_to_all,
    ApiKey.SASL_HANDSHAKE: open_to_all,
    ApiKey.SASL_AUTHENTICATE: open_to_all,
    ApiKey.METADATA: cluster_checks.metadata,
    ApiKey.DESCRIBE_CLUSTER: cluster_checks.describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: cluster_checks.describe_topic_partitions,
    ApiKey.DESCRIBE_QUORUM: _BY_THE_CONTROLLER,
    ApiKey.ADD_RAFT_VOTER: _BY_THE_CONTROLLER,
    ApiKey.REMOVE_RAFT_VOTER: _BY_THE_CONTROLLER,
    ApiKey.UPDATE_FEATURES: _BY_THE_CONTROLLER,
    ApiKey.UNREGISTER_BROKER: _BY_THE_CONTROLLER,
    ApiKey.CREATE_TOPICS: _BY_THE_CONTROLLER,
    ApiKey.DELETE_TOPICS: _BY_THE_CONTROLLER,
    ApiKey.CREATE_PARTITIONS: _BY_THE_CONTROLLER,
    ApiKey.ELECT_LEADERS: _BY_THE_CONTROLLER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _BY_THE_CONTROLLER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _BY_THE_CONTROLLER,
    # Settings
    ApiKey.DESCRIBE_CONFIGS: setting_checks.describe_configs,
    ApiKey.ALTER_CONFIGS: setting_checks.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: setting_checks.alter_configs,
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(AclOperation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: on_cluster(AclOperation.DESCRIBE_CONFIGS, words=NO_WORDS),
    ApiKey.ALTER_CLIENT_QUOTAS: _BY_THE_CONTROLLER,
    # Users and rules
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(AclOperation.DESCRIBE, words=NO_WORDS),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _BY_THE_CONTROLLER,
    ApiKey.CREATE_DELEGATION_TOKEN: token_checks.create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: _BY_THE_CONTROLLER,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _BY_THE_CONTROLLER,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: token_checks.describe_tokens,
    ApiKey.DESCRIBE_ACLS: on_cluster(AclOperation.DESCRIBE),
    ApiKey.CREATE_ACLS: _BY_THE_CONTROLLER,
    ApiKey.DELETE_ACLS: _BY_THE_CONTROLLER,
}
