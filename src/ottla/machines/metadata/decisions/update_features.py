"""UpdateFeatures: levels go up when every node can, and down only where nothing is lost (KIP-584, KIP-778).

All updates of a request are made, or none.

`kraft.version` belongs to the Raft layer (KIP-853), which says what is in the way of raising it and carries it out when
the rest is decided. It is never lowered.
"""

from enum import IntEnum

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.image.configs_image import CLUSTER_DEFAULT, MIN_INSYNC_REPLICAS, ResourceType
from ottla.machines.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSIONS,
    NOT_SUPPORTED,
    SERVED,
)
from ottla.wire.errors import ErrorCode, error_with_message
from ottla.wire.messages import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_KRAFT_DOWNGRADE = "Can't downgrade the version of this feature."
LAST_VERSION_WITH_RESULTS = 1


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    context: ControllerContext, request: UpdateFeaturesRequest, version: int
) -> Decision[UpdateFeaturesResponse]:
    """Of a feature that is named twice, the last counts. Up to version 1 the reply lists the features."""
    levels = context.image.features.levels | {KRAFT_VERSION: context.kraft_version}
    updates = list({update.feature: update for update in request.feature_updates}.values())
    proposed = levels | {update.feature: update.max_version_level for update in updates}
    records: list[VersionedRecord] = []
    for update in updates:
        upgrade_type = update.upgrade_type
        if version == 0:
            upgrade_type = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
        problem = _problem(context, update.feature, update.max_version_level, upgrade_type, levels, proposed)
        if problem is not None:
            message = f"The update failed for all features since the following feature had an error: {problem}"
            error, words = error_with_message(ErrorCode.INVALID_UPDATE_VERSION, message)
            return Decision(UpdateFeaturesResponse(error_code=error, error_message=words))
        if update.feature != KRAFT_VERSION:
            record = FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
            records.append(VersionedRecord(record, 0))
    reply = UpdateFeaturesResponse(error_message=None)
    if version <= LAST_VERSION_WITH_RESULTS:
        result = UpdateFeaturesResponse.UpdatableFeatureResult
        reply.results = [result(feature=update.feature, error_message="NONE") for update in updates]
    if request.validate_only:
        return Decision(reply)
    elr_before, elr_after = (found.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) for found in (levels, proposed))
    if any(update.feature == ELIGIBLE_LEADER_REPLICAS_VERSION for update in updates) and elr_after:
        records = [*_elr_safety_records(context), *records]
    if bool(elr_before) is not bool(elr_after):
        records = [*_without_eligible_leaders(context), *records]
    return Decision(reply, records)


def _problem(
    context: ControllerContext,
    feature: str,
    level: int,
    upgrade_type: int,
    levels: dict[str, int],
    proposed: dict[str, int],
) -> str | None:
    invalid = f"Invalid update version {level} for feature {feature}. "
    current = levels.get(feature, 0)
    if upgrade_type not in set(UpgradeType):
        return invalid + "The controller does not support the given upgrade type."
    if level < 0:
        return invalid + "A feature version cannot be less than 0."
    reason = _reason_not_supported(context, feature, level)
    if reason is not None:
        return invalid + reason
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        return (
            invalid + "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        return invalid + "Can't downgrade to a newer version."
    if feature == METADATA_VERSION:
        return _metadata_downgrade_problem(current, level, upgrade_type)
    if feature == KRAFT_VERSION:
        reason = context.kraft_upgrade_problem if level > current else _KRAFT_DOWNGRADE
        return None if level == current or reason is None else invalid + reason
    if feature not in FEATURES:
        return invalid + f"Feature {feature} not found."
    needed = FEATURES[feature].needs_metadata_version
    if level and proposed[METADATA_VERSION] < needed:
        return (
            invalid + f"{feature} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}"
        )
    return None


def _reason_not_supported(context: ControllerContext, feature: str, level: int) -> str | None:
    nodes = [(f"Local controller {context.node_id}", SERVED.get(feature, NOT_SUPPORTED))]
    nodes += [
        (f"Broker {broker.id}", dict(broker.features).get(feature, NOT_SUPPORTED))
        for broker in context.image.brokers.by_id.values()
    ]
    nodes += [
        (f"Controller {controller.id}", dict(controller.features).get(feature, NOT_SUPPORTED))
        for controller in context.image.brokers.controllers.values()
        if controller.id != context.node_id
    ]
    for name, supported in nodes:
        if level not in supported:
            if supported.highest == 0:
                return f"{name} does not support this feature."
            return f"{name} only supports versions {supported.lowest}-{supported.highest}"
    return None


def _metadata_downgrade_problem(current: int, level: int, upgrade_type: int) -> str | None:
    if not any(METADATA_VERSIONS[passed].changes_records for passed in range(level + 1, current + 1)):
        return None
    reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    return f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"


def _without_eligible_leaders(context: ControllerContext) -> list[VersionedRecord]:
    """Eligible leaders are found while the feature is on, and are not to be relied on across a time when it was off.

    Meanwhile `min.insync.replicas` can be lowered, and the ISR commit what they have not; brokers that stop uncleanly
    are not taken from them. Apache Kafka 4.3.1 keeps them, and may elect them when the feature is on again. Where
    nobody is in the ISR they are all there is, and nothing was committed after they left: they become the ISR, as the
    last replica of it stays there without the feature.
    """
    records: list[VersionedRecord] = []
    has_some = False
    for _, topic_id, partition_id, partition in context.partitions():
        eligible = partition.eligible_leader_replicas or partition.last_known_elr
        has_some = has_some or bool(eligible)
        if eligible and not partition.isr:
            change = PartitionChangeRecord(topic_id=topic_id, partition_id=partition_id, isr=eligible)
            records.append(context.partition_change(change))
    return [*records, VersionedRecord(ClearElrRecord(), 0)] if has_some else []


def _elr_safety_records(context: ControllerContext) -> list[VersionedRecord]:
    """With eligible leader replicas, `min.insync.replicas` must be the same on all brokers: one is set for all."""
    configs = context.image.configs
    records = []
    if MIN_INSYNC_REPLICAS not in configs.of_cluster():
        value = str(context.config.integer(MIN_INSYNC_REPLICAS))
        records.append(_config_record("", value))
    for (type, name), values in configs.by_resource.items():
        if type == ResourceType.BROKER and name != CLUSTER_DEFAULT.name and MIN_INSYNC_REPLICAS in values:
            records.append(_config_record(name, None))
    return [VersionedRecord(record, 0) for record in records]


def _config_record(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=broker, name=MIN_INSYNC_REPLICAS, value=value)
