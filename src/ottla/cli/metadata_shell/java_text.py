"""What the metadata says of a broker, a partition or an ACL, in a line as Apache Kafka's shell has it."""

from collections.abc import Iterable

from ottla.base.ids import Uuid, uuid_text
from ottla.machines.metadata.image.brokers_image import BrokerRegistration, ControllerRegistration, Endpoint
from ottla.machines.metadata.image.features import Range
from ottla.machines.metadata.image.partition_image import RECOVERED, PartitionImage
from ottla.wire.messages import AccessControlEntryRecord, DelegationTokenRecord, UserScramCredentialRecord

_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_RESOURCE_TYPES = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
_OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
_PATTERN_TYPES = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_PERMISSION_TYPES = ("UNKNOWN", "ANY", "DENY", "ALLOW")


def broker_text(broker: BrokerRegistration) -> str:
    rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, incarnationId={uuid_text(broker.incarnation_id)}, "
        f"listeners={_endpoints(broker.endpoints)}, supportedFeatures={_features(broker.features)}, rack={rack}, "
        f"fenced={_flag(broker.fenced)}, inControlledShutdown={_flag(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_flag(broker.is_migrating_zk_broker)}, directories={_uuids(broker.directories)}, "
        f"cordonedDirectories={_uuids(broker.cordoned_directories or ())})"
    )


def controller_text(controller: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={controller.id}, incarnationId={uuid_text(controller.incarnation_id)}, "
        f"zkMigrationReady={_flag(controller.zk_migration_ready)}, listeners={_endpoints(controller.endpoints)}, "
        f"supportedFeatures={_features(controller.features)})"
    )


def partition_text(partition: PartitionImage) -> str:
    recovery = "RECOVERED" if partition.leader_recovery_state == RECOVERED else "RECOVERING"
    return (
        f"PartitionRegistration(replicas={_list(partition.replicas)}, directories={_uuids(partition.directories)}, "
        f"isr={_list(partition.isr)}, removingReplicas={_list(partition.removing_replicas)}, "
        f"addingReplicas={_list(partition.adding_replicas)}, elr={_list(partition.eligible_leader_replicas)}, "
        f"lastKnownElr={_list(partition.last_known_elr)}, leader={partition.leader}, leaderRecoveryState={recovery}, "
        f"leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
    )


def acl_text(acl: AccessControlEntryRecord) -> str:
    return (
        f"StandardAcl[resourceType={_named(_RESOURCE_TYPES, acl.resource_type)}, resourceName={acl.resource_name}, "
        f"patternType={_named(_PATTERN_TYPES, acl.pattern_type)}, principal={acl.principal}, host={acl.host}, "
        f"operation={_named(_OPERATIONS, acl.operation)}, "
        f"permissionType={_named(_PERMISSION_TYPES, acl.permission_type)}]"
    )


def scram_text(credential: UserScramCredentialRecord) -> str:
    return (
        f"ScramCredentialData(salt={bytes(credential.salt).hex()}, storedKey={bytes(credential.stored_key).hex()}, "
        f"serverKey={bytes(credential.server_key).hex()}, iterations={credential.iterations})"
    )


def token_text(token: DelegationTokenRecord) -> str:
    """Kafka forgets the opening brackets, and so do we."""
    return (
        f"DelegationTokenDatatokenId={token.token_id}(owner={token.owner}(tokenRequester={token.requester}"
        f"(renewers={' '.join(token.renewers)}, issueTimestamp={token.issue_timestamp}, "
        f"maxTimestamp={token.max_timestamp}), expiryTimestamp={token.expiration_timestamp}"
    )


def _endpoints(endpoints: Iterable[Endpoint]) -> str:
    return _list(
        f"Endpoint(listenerName='{end.listener}', "
        f"securityProtocol={_named(_SECURITY_PROTOCOLS, end.security_protocol)}, "
        f"host='{end.host}', port={end.port})"
        for end in sorted(endpoints, key=lambda end: end.listener)
    )


def _features(features: Iterable[tuple[str, Range]]) -> str:
    return f"{{{', '.join(f'{name}: {levels.lowest}-{levels.highest}' for name, levels in features)}}}"


def _uuids(uuids: Iterable[Uuid]) -> str:
    return _list(map(uuid_text, uuids))


def _list(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "UNKNOWN"
