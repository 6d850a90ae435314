"""What a controller writes before it takes its first decision."""

from collections.abc import Sequence

from ottla.machines.decision import VersionedRecord
from ottla.machines.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    has_metadata_transactions,
)
from ottla.machines.metadata.image import MetadataImage
from ottla.wire.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

_BROKER_RESOURCE = 4
_CLUSTER_DEFAULT = ""


def activation_records(
    image: MetadataImage, bootstrap: Sequence[VersionedRecord], min_insync_replicas: int
) -> list[VersionedRecord]:
    """Ends what a controller before this one left half done, and bootstraps a log that has nothing in it yet."""
    records: list[VersionedRecord] = []
    if image.in_transaction:
        records.append(VersionedRecord(AbortTransactionRecord(reason="Controller failover"), 0))
    if not image.is_bootstrapped:
        records += _bootstrap_records(bootstrap, min_insync_replicas)
    return records


def _bootstrap_records(bootstrap: Sequence[VersionedRecord], min_insync_replicas: int) -> list[VersionedRecord]:
    """The records that formatting left, in a metadata transaction (KIP-868) where the level has those.

    With eligible leader replicas (KIP-966), `min.insync.replicas` must be the same for all who look at a partition, so
    the cluster gets one as its default, from the controller that happened to be first.
    """
    levels = {
        record.message.name: record.message.feature_level
        for record in bootstrap
        if isinstance(record.message, FeatureLevelRecord)
    }
    records = list(bootstrap)
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
        default = ConfigRecord(
            resource_type=_BROKER_RESOURCE,
            resource_name=_CLUSTER_DEFAULT,
            name="min.insync.replicas",
            value=str(min_insync_replicas),
        )
        records.append(VersionedRecord(default, 0))
    if not has_metadata_transactions(levels.get(METADATA_VERSION, 0)):
        return records
    begin, end = BeginTransactionRecord(name="Bootstrap records"), EndTransactionRecord()
    return [VersionedRecord(begin, 0), *records, VersionedRecord(end, 0)]
