"""What a request of each API needs and counts against: one row for every API that a listener serves.

Facts of Apache Kafka 4.3. A route (`broker/dispatch.py`, `controller/controller_apis.py`) says which function answers
an API; this says who may ask. The checks themselves are in `broker/access` and `controller/access.py`, because most say
more than a row can; a test holds that no API is served without a row.

`needs` are the rights that the request's client must have, all of them, each on the resources of that kind that the
request names. `or_instead` is a right that serves as well as all of `needs`, on the cluster: an administrator may do to
every topic what another may do to some. `quota` is what the request is counted against (KIP-13, KIP-124, KIP-599).
"""

from enum import Enum
from typing import Final, NamedTuple

from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.apis import ApiKey, api


class Quota(Enum):
    """What a client may use up. PRODUCE and FETCH count bytes, and the time of the request as all others do."""

    PRODUCE = "produce"
    FETCH = "fetch"
    REQUEST = "request"
    CONTROLLER_MUTATION = "controller mutation"
    EXEMPT = "exempt"
    """What nodes of the cluster ask of each other."""


class Need(NamedTuple):
    operation: AclOperation
    resource: AclResource


class Access(NamedTuple):
    """See the module."""

    needs: tuple[Need, ...]
    quota: Quota = Quota.REQUEST
    or_instead: Need | None = None


def _on(resource: AclResource, operation: AclOperation) -> Need:
    return Need(operation, resource)


_READ_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.READ)
_WRITE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.WRITE)
_DESCRIBE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.DESCRIBE)
_DELETE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.DELETE)
_ALTER_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.ALTER)
_CREATE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.CREATE)
_CONFIGS_OF_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.DESCRIBE_CONFIGS)
_ALTER_CONFIGS_OF_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.ALTER_CONFIGS)
_READ_GROUP: Final = _on(AclResource.GROUP, AclOperation.READ)
_DESCRIBE_GROUP: Final = _on(AclResource.GROUP, AclOperation.DESCRIBE)
_DELETE_GROUP: Final = _on(AclResource.GROUP, AclOperation.DELETE)
_CONFIGS_OF_GROUP: Final = _on(AclResource.GROUP, AclOperation.DESCRIBE_CONFIGS)
_ALTER_CONFIGS_OF_GROUP: Final = _on(AclResource.GROUP, AclOperation.ALTER_CONFIGS)
_WRITE_TXN: Final = _on(AclResource.TRANSACTIONAL_ID, AclOperation.WRITE)
_DESCRIBE_TXN: Final = _on(AclResource.TRANSACTIONAL_ID, AclOperation.DESCRIBE)
_CREATE: Final = _on(AclResource.CLUSTER, AclOperation.CREATE)
_ALTER: Final = _on(AclResource.CLUSTER, AclOperation.ALTER)
_DESCRIBE: Final = _on(AclResource.CLUSTER, AclOperation.DESCRIBE)
_CONFIGS: Final = _on(AclResource.CLUSTER, AclOperation.DESCRIBE_CONFIGS)
_ALTER_CONFIGS: Final = _on(AclResource.CLUSTER, AclOperation.ALTER_CONFIGS)
_CLUSTER_ACTION: Final = _on(AclResource.CLUSTER, AclOperation.CLUSTER_ACTION)
_IDEMPOTENT_WRITE: Final = _on(AclResource.CLUSTER, AclOperation.IDEMPOTENT_WRITE)

_OPEN: Final = Access(())
_OF_NODES: Final = Access((_CLUSTER_ACTION,), Quota.EXEMPT)

ACCESS: Final[dict[ApiKey, Access]] = {
    # Data. A follower that fetches, or asks where an epoch ends, needs CLUSTER_ACTION instead.
    ApiKey.PRODUCE: Access((_WRITE_TXN, _WRITE_TOPIC), Quota.PRODUCE),
    ApiKey.FETCH: Access((_READ_TOPIC,), Quota.FETCH, _CLUSTER_ACTION),
    ApiKey.LIST_OFFSETS: Access((_DESCRIBE_TOPIC,)),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Access((_DESCRIBE_TOPIC,), or_instead=_CLUSTER_ACTION),
    ApiKey.DELETE_RECORDS: Access((_DELETE_TOPIC,)),
    # Producers and transactions. Without a transactional id, WRITE on any topic is enough for an id (KIP-679).
    ApiKey.INIT_PRODUCER_ID: Access((_WRITE_TXN,), or_instead=_IDEMPOTENT_WRITE),
    ApiKey.DESCRIBE_PRODUCERS: Access((_READ_TOPIC,)),
    ApiKey.ADD_PARTITIONS_TO_TXN: Access((_WRITE_TXN, _WRITE_TOPIC), or_instead=_CLUSTER_ACTION),
    ApiKey.ADD_OFFSETS_TO_TXN: Access((_WRITE_TXN, _READ_GROUP)),
    ApiKey.END_TXN: Access((_WRITE_TXN,)),
    ApiKey.TXN_OFFSET_COMMIT: Access((_WRITE_TXN, _READ_GROUP, _READ_TOPIC)),
    ApiKey.WRITE_TXN_MARKERS: Access((_CLUSTER_ACTION,), Quota.EXEMPT, _ALTER),
    ApiKey.DESCRIBE_TRANSACTIONS: Access((_DESCRIBE_TXN,)),
    ApiKey.LIST_TRANSACTIONS: Access((_DESCRIBE_TXN,)),
    # Groups. FindCoordinator needs the right on what it is asked for: groups, or transactional ids.
    ApiKey.FIND_COORDINATOR: Access((_DESCRIBE_GROUP, _DESCRIBE_TXN)),
    ApiKey.JOIN_GROUP: Access((_READ_GROUP,)),
    ApiKey.SYNC_GROUP: Access((_READ_GROUP,)),
    ApiKey.HEARTBEAT: Access((_READ_GROUP,)),
    ApiKey.LEAVE_GROUP: Access((_READ_GROUP,)),
    ApiKey.OFFSET_COMMIT: Access((_READ_GROUP, _READ_TOPIC)),
    ApiKey.OFFSET_FETCH: Access((_DESCRIBE_GROUP, _DESCRIBE_TOPIC)),
    ApiKey.OFFSET_DELETE: Access((_DELETE_GROUP, _READ_TOPIC)),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Access((_READ_GROUP, _DESCRIBE_TOPIC)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Access((_DESCRIBE_GROUP, _DESCRIBE_TOPIC)),
    ApiKey.LIST_GROUPS: Access((_DESCRIBE_GROUP,), or_instead=_DESCRIBE),
    ApiKey.DESCRIBE_GROUPS: Access((_DESCRIBE_GROUP,)),
    ApiKey.DELETE_GROUPS: Access((_DELETE_GROUP,)),
    # Directories
    ApiKey.DESCRIBE_LOG_DIRS: Access((_DESCRIBE,)),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Access((_ALTER,)),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _OF_NODES,
    # The cluster
    ApiKey.API_VERSIONS: _OPEN,
    ApiKey.SASL_HANDSHAKE: _OPEN,
    ApiKey.SASL_AUTHENTICATE: _OPEN,
    # One's own tokens need no right; another's CREATE_TOKENS or DESCRIBE_TOKENS on the user, or DESCRIBE on the token.
    ApiKey.CREATE_DELEGATION_TOKEN: _OPEN,
    ApiKey.RENEW_DELEGATION_TOKEN: _OPEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _OPEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _OPEN,
    ApiKey.METADATA: Access((_DESCRIBE_TOPIC,)),
    ApiKey.DESCRIBE_CLUSTER: _OPEN,
    ApiKey.DESCRIBE_QUORUM: Access((_DESCRIBE,)),
    ApiKey.UPDATE_FEATURES: Access((_ALTER,)),
    ApiKey.UNREGISTER_BROKER: Access((_ALTER,)),
    # Topics
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Access((_DESCRIBE_TOPIC,)),
    ApiKey.CREATE_TOPICS: Access((_CREATE_TOPIC,), Quota.CONTROLLER_MUTATION, _CREATE),
    ApiKey.DELETE_TOPICS: Access((_DELETE_TOPIC,), Quota.CONTROLLER_MUTATION),
    ApiKey.CREATE_PARTITIONS: Access((_ALTER_TOPIC,), Quota.CONTROLLER_MUTATION),
    ApiKey.ELECT_LEADERS: Access((_ALTER,)),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Access((_ALTER,)),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Access((_DESCRIBE,)),
    # Settings: of brokers and their loggers on the cluster, of topics and groups on each.
    ApiKey.DESCRIBE_CONFIGS: Access((_CONFIGS, _CONFIGS_OF_TOPIC, _CONFIGS_OF_GROUP)),
    ApiKey.ALTER_CONFIGS: Access((_ALTER_CONFIGS, _ALTER_CONFIGS_OF_TOPIC, _ALTER_CONFIGS_OF_GROUP)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Access((_ALTER_CONFIGS, _ALTER_CONFIGS_OF_TOPIC, _ALTER_CONFIGS_OF_GROUP)),
    ApiKey.LIST_CONFIG_RESOURCES: Access((_CONFIGS,)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Access((_CONFIGS,)),
    ApiKey.ALTER_CLIENT_QUOTAS: Access((_ALTER_CONFIGS,)),
    # Users
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Access((_DESCRIBE,)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Access((_ALTER,)),
    # Rules of access
    ApiKey.DESCRIBE_ACLS: Access((_DESCRIBE,)),
    ApiKey.CREATE_ACLS: Access((_ALTER,)),
    ApiKey.DELETE_ACLS: Access((_ALTER,)),
    # What nodes of the cluster ask
    ApiKey.BROKER_REGISTRATION: _OF_NODES,
    ApiKey.BROKER_HEARTBEAT: _OF_NODES,
    ApiKey.CONTROLLER_REGISTRATION: _OF_NODES,
    ApiKey.VOTE: _OF_NODES,
    ApiKey.BEGIN_QUORUM_EPOCH: _OF_NODES,
    ApiKey.END_QUORUM_EPOCH: _OF_NODES,
    ApiKey.FETCH_SNAPSHOT: _OF_NODES,
    ApiKey.UPDATE_RAFT_VOTER: _OF_NODES,
    ApiKey.ADD_RAFT_VOTER: Access((_ALTER,)),
    ApiKey.REMOVE_RAFT_VOTER: Access((_ALTER,)),
    ApiKey.ALTER_PARTITION: _OF_NODES,
    ApiKey.ALLOCATE_PRODUCER_IDS: _OF_NODES,
    ApiKey.ENVELOPE: _OF_NODES,
}


def listeners_of(key: ApiKey) -> frozenset[str]:
    """The kinds of listeners that may serve an API: `"broker"`, `"controller"`, or both."""
    return api(key).listeners
