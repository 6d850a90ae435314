"""AlterConfigs and IncrementalAlterConfigs: settings at run time, of topics, brokers, groups and metrics subscriptions.

The old request states all settings that a resource is to have, the incremental one only what changes (KIP-339). Each
resource is taken whole or not at all; one that is refused does not stop the others.

`min.insync.replicas` decides which replicas are eligible leaders, so a change of it clears what was found so far where
somebody is in the ISR. While that feature is on it is given for the whole cluster, and never for one broker (KIP-966).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.config.scopes import Scope, settings
from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import Type, value_text
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.image.configs_image import (
    CLUSTER_DEFAULT,
    MIN_INSYNC_REPLICAS,
    ConfigResource,
    ResourceType,
)
from ottla.machines.metadata.image.security_image import SALT_SECRET
from ottla.machines.metadata.refusal import Refusal
from ottla.machines.metadata.settings.effective_settings import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS
from ottla.machines.metadata.settings.setting_checks import (
    check_broker_settings,
    check_client_metrics_settings,
    check_group_settings,
    check_topic_settings,
)
from ottla.machines.metadata.topic_names import check_name
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    ClearElrRecord,
    ConfigRecord,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    PartitionChangeRecord,
)

LONGEST_VALUE = 32_767
ALTERABLE = frozenset({ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP})
LONGEST_NODE_ID = 10
"""Digits: what is longer is none, and Python refuses to read numbers of thousands of digits."""


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS = frozenset(Operation)


class Change(NamedTuple):
    key: str
    operation: int
    value: str | None


class Outcome(NamedTuple):
    resource: ConfigResource
    refusal: Refusal | None
    records: list[VersionedRecord]


def incremental_alter_configs(
    context: ControllerContext, request: IncrementalAlterConfigsRequest
) -> Decision[IncrementalAlterConfigsResponse]:
    wanted = [
        (
            ConfigResource(resource.resource_type, resource.resource_name),
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    outcomes = _alter_all(context, wanted, is_replacing=False)
    reply = IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=type, resource_name=name
            )
            for code, message, type, name in map(_in_words, outcomes)
        ]
    )
    return Decision(reply, [] if request.validate_only else _records(outcomes))


def alter_configs(context: ControllerContext, request: AlterConfigsRequest) -> Decision[AlterConfigsResponse]:
    wanted = [
        (
            ConfigResource(resource.resource_type, resource.resource_name),
            [Change(config.name, Operation.SET, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    outcomes = _alter_all(context, wanted, is_replacing=True)
    reply = AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=type, resource_name=name
            )
            for code, message, type, name in map(_in_words, outcomes)
        ]
    )
    return Decision(reply, [] if request.validate_only else _records(outcomes))


def setting_records(
    context: ControllerContext,
    resource: ConfigResource,
    before: Mapping[str, str],
    changes: Mapping[str, str | None],
    *,
    is_new: bool = False,
) -> list[VersionedRecord] | Refusal:
    """The records of changed settings, checked; None for a value deletes. What is as before needs no record, but for
    brokers, whose settings may refer to files that changed.
    """
    changed: list[tuple[str, str | None]] = []
    after = dict(before)
    for key, value in changes.items():
        if before.get(key) == value and resource.type != ResourceType.BROKER:
            continue
        refusal = _check_elr(context, resource, key, value)
        if refusal is not None:
            return refusal
        if value is None:
            after.pop(key, None)
        elif len(value) > LONGEST_VALUE:
            problem = (
                "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."
            )
            return Refusal(ErrorCode.INVALID_CONFIG, problem)
        else:
            after[key] = value
        changed.append((key, value))
    refusal = _check_settings(context, resource, after) or (None if is_new else _check_existence(context, resource))
    if refusal is not None:
        return refusal
    # Not before: there may be a hundred thousand settings that nobody knows.
    made = [
        VersionedRecord(
            ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=key, value=value), 0
        )
        for key, value in changed
    ]
    if context.image.features.is_elr_enabled and any(key == MIN_INSYNC_REPLICAS for key, _ in changed):
        topic = resource.name if resource.type == ResourceType.TOPIC else ""
        made += [VersionedRecord(ClearElrRecord(topic_name=topic), 0), *_kept_eligible_leaders(context, topic)]
    return made


def _kept_eligible_leaders(context: ControllerContext, topic_name: str) -> Iterator[VersionedRecord]:
    """Of one topic, or with no name of all. Where nobody is in the ISR, nothing was committed after they left.

    So they are eligible whatever `min.insync.replicas` is now. With Apache Kafka 4.3.1 they are not, and the partition
    has no leader when all its replicas are back, until an unclean election.
    """
    topics = context.image.topics
    named = topics.by_name.get(topic_name)
    for topic in topics.by_id.values() if not topic_name else [] if named is None else [named]:
        for partition_id, partition in topic.partitions.items():
            eligible, last_known = partition.eligible_leader_replicas, partition.last_known_elr
            if not partition.isr and (eligible or last_known):
                change = PartitionChangeRecord(topic_id=topic.id, partition_id=partition_id)
                change.eligible_leader_replicas, change.last_known_elr = eligible or None, last_known or None
                yield context.partition_change(change)


def _alter_all(
    context: ControllerContext, wanted: list[tuple[ConfigResource, list[Change]]], *, is_replacing: bool
) -> list[Outcome]:
    times = Counter(resource for resource, _ in wanted)
    outcomes = []
    for resource, changes in wanted:
        made: list[VersionedRecord] | Refusal
        if times[resource] > 1:
            made = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        else:
            made = _alter(context, resource, changes, is_replacing=is_replacing)
        if isinstance(made, Refusal):
            outcomes.append(Outcome(resource, made, []))
        else:
            outcomes.append(Outcome(resource, None, made))
    return outcomes


def _alter(
    context: ControllerContext, resource: ConfigResource, changes: list[Change], *, is_replacing: bool
) -> list[VersionedRecord] | Refusal:
    refusal = _check_form(resource, changes)
    if refusal is not None:
        return refusal
    before = context.image.configs.of(*resource)
    after: dict[str, str | None] = {}
    for change in changes:
        value = _changed(resource, before.get(change.key), change)
        if isinstance(value, Refusal):
            return value
        after[change.key] = value
    if is_replacing:
        # Nobody can state what is never shown and was put there by a controller: a request that leaves it out keeps it.
        after |= {key: None for key in before if key not in after and key != SALT_SECRET}
    return setting_records(context, resource, before, after)


def _check_form(resource: ConfigResource, changes: list[Change]) -> Refusal | None:
    if len({change.key for change in changes}) < len(changes):
        return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [change.key for change in changes if change.operation != Operation.DELETE and change.value is None]
    if nulls:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    if resource.type not in ALTERABLE:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")
    strange = [change.operation for change in changes if change.operation not in _OPERATIONS]
    if strange:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {strange[0]}")
    return None


def _changed(resource: ConfigResource, before: str | None, change: Change) -> str | Refusal | None:
    """What a setting becomes."""
    if change.operation in (Operation.SET, Operation.DELETE):
        return change.value if change.operation == Operation.SET else None
    row = _row(resource, change.key)
    name = Operation(change.operation).name
    if row is None or row.type is not Type.LIST:
        problem = f"Can't {name} to key {change.key} because its type is not LIST."
        if resource.type == ResourceType.BROKER:
            problem = f"Config value {name.lower()} is not allowed for config key: {change.key}"
        return Refusal(ErrorCode.INVALID_CONFIG, problem)
    default = "" if row.default is REQUIRED else value_text(row.default)
    items = [item for item in (default if before is None else before).split(",") if item]
    assert change.value is not None, "nulls are refused before"
    for item in change.value.split(","):
        if change.operation == Operation.APPEND and item not in items:
            items.append(item)
        elif change.operation == Operation.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def _row(resource: ConfigResource, key: str) -> Setting | None:
    match resource.type:
        case ResourceType.TOPIC:
            return settings(Scope.TOPIC).get(key)
        case ResourceType.BROKER:
            return settings(Scope.BROKER).get(key)
        case ResourceType.GROUP:
            return GROUP_SETTINGS.get(key)
    return CLIENT_METRICS_SETTINGS.get(key)


def _check_elr(context: ControllerContext, resource: ConfigResource, key: str, value: str | None) -> Refusal | None:
    if key != MIN_INSYNC_REPLICAS or resource.type != ResourceType.BROKER or not context.image.features.is_elr_enabled:
        return None
    if resource != CLUSTER_DEFAULT:
        problem = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        return Refusal(ErrorCode.INVALID_CONFIG, problem)
    if value is None:
        problem = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        return Refusal(ErrorCode.INVALID_CONFIG, problem)
    return None


def _check_settings(context: ControllerContext, resource: ConfigResource, after: Mapping[str, str]) -> Refusal | None:
    match resource.type:
        case ResourceType.TOPIC:
            if not resource.name:
                return Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            unset = {key: context.topic_setting("", key) for key in ("min.compaction.lag.ms", "max.compaction.lag.ms")}
            return check_name(resource.name) or check_topic_settings(after, unset, context.config)
        case ResourceType.BROKER:
            return _check_broker(context, resource.name) or check_broker_settings(
                after, of_one_broker=resource != CLUSTER_DEFAULT
            )
        case ResourceType.GROUP:
            if not resource.name:
                return Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            return check_group_settings(after, context.config)
    return check_client_metrics_settings(resource.name, after)


def _check_broker(context: ControllerContext, name: str) -> Refusal | None:
    """A broker's settings are given to that broker, which knows what it can do; on a single node, to us."""
    if not name:
        return None
    digits = name.removeprefix("-")
    if not digits.isdecimal() or len(digits) > LONGEST_NODE_ID:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != context.node_id and int(name) not in context.image.brokers.by_id:
        problem = f"Unexpected broker id, expected {context.node_id}, but received {name}"
        return Refusal(ErrorCode.INVALID_REQUEST, problem)
    return None


def _check_existence(context: ControllerContext, resource: ConfigResource) -> Refusal | None:
    if resource.type == ResourceType.TOPIC and resource.name not in context.image.topics.by_name:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    return None


def _records(outcomes: Iterable[Outcome]) -> list[VersionedRecord]:
    return [record for outcome in outcomes for record in outcome.records]


def _in_words(outcome: Outcome) -> tuple[ErrorCode, str | None, int, str]:
    return *(outcome.refusal or (ErrorCode.NONE, None)), *outcome.resource
