"""What a controller writes first when it becomes the leader.

Into an empty log, the records that formatting left (`bootstrap.checkpoint`): the feature levels above all. A
transaction that a controller before it began and did not end is aborted, as nobody is there to end it. A feature that
no node serves any more is switched off: Apache Kafka's directory, which this node has taken over alone, may have some.
Where there are users of SCRAM, there is the secret that salts of nobody are made of: formatting, an older version or
Apache Kafka's controller may have left users without one.
"""

from collections.abc import Iterable, Iterator

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.decisions.alter_scram import salt_secret_records
from ottla.machines.metadata.image.configs_image import MIN_INSYNC_REPLICAS, ResourceType
from ottla.machines.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    NOT_SUPPORTED,
    OLDEST_METADATA_VERSION,
    SERVED,
    default_level,
    has_metadata_transactions,
)
from ottla.wire.message import Message
from ottla.wire.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    UserScramCredentialRecord,
)


def activate(context: ControllerContext, bootstrap: Iterable[Message]) -> Decision[None]:
    """The records of a controller's first batch; none if the log is in order."""
    records: list[Message] = []
    if context.image.in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if not context.image.is_bootstrapped:
        records += _first_records(context, [record for record in bootstrap if not _is_of_unserved(record)])
    records += [FeatureLevelRecord(name=name, feature_level=0) for name in _abandoned_features(context)]
    if context.image.security.scram_credentials or any(isinstance(one, UserScramCredentialRecord) for one in records):
        records += salt_secret_records(context)
    return Decision(None, [VersionedRecord(record, 0) for record in records])


def _is_of_unserved(record: Message) -> bool:
    return isinstance(record, FeatureLevelRecord) and record.name not in SERVED


def _abandoned_features(context: ControllerContext) -> list[str]:
    """Those that are switched on though no node but this one, in the life before this, has registered with them.

    Elsewhere an operator decides: brokers of Apache Kafka's may have share groups, and clients of them.
    """
    brokers = context.image.brokers
    others = [dict(one.features) for one in brokers.by_id.values() if one.id != context.node_id]
    others += [dict(one.features) for one in brokers.controllers.values() if one.id != context.node_id]
    return [
        name
        for name, level in sorted(context.image.features.levels.items())
        if name not in SERVED and not any(level in supported.get(name, NOT_SUPPORTED) for supported in others)
    ]


def _first_records(context: ControllerContext, bootstrap: list[Message]) -> Iterator[Message]:
    levels = {record.name: record.feature_level for record in bootstrap if isinstance(record, FeatureLevelRecord)}
    level = levels.get(METADATA_VERSION, OLDEST_METADATA_VERSION)
    if has_metadata_transactions(level):
        yield BeginTransactionRecord(name="Bootstrap records")
    yield from bootstrap
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0):
        value = str(context.config.integer(MIN_INSYNC_REPLICAS))
        yield ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name=MIN_INSYNC_REPLICAS, value=value)
    if has_metadata_transactions(level):
        yield EndTransactionRecord()


def bootstrap_records(metadata_version: int = LATEST_METADATA_VERSION) -> list[Message]:
    """What formatting a cluster at `metadata_version` writes down: the levels of its features, those above 0."""
    names = [METADATA_VERSION, *sorted(SERVED.keys() - {METADATA_VERSION, KRAFT_VERSION})]
    levels = [(name, default_level(name, metadata_version)) for name in names]
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels if level]
