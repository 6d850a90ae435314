"""Requests that an administrator may make, good and bad; one after the other, on a node with one broker, number 1.

`kafka_answers.json` has what Apache Kafka 4.3.1 answered to them. To ask it again, with a node of it at BOOTSTRAP:

    python -m tests.unit.machines.metadata.record_kafka_answers
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from ottla.base.ids import Uuid
from ottla.wire.message import Message
from ottla.wire.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NOWHERE = Uuid(b"no such topic id")


class Scene(NamedTuple):
    name: str
    request: Message


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Any:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def assigned(name: str, *replicas: tuple[int, ...], numbers: tuple[int, ...] | None = None, **rest: int) -> Any:
    made = topic(name, rest.get("partitions", -1), rest.get("replicas", -1))
    made.assignments = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
        for number, brokers in zip(numbers or range(len(replicas)), replicas, strict=True)
    ]
    return made


def create(*topics: Any, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only)


def grow(*wanted: tuple[Any, ...], validate_only: bool = False) -> CreatePartitionsRequest:
    request = CreatePartitionsRequest(timeout_ms=30_000, validate_only=validate_only)
    for name, count, *replicas in wanted:
        assignments = [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=brokers) for brokers in replicas]
        request.topics.append(
            CreatePartitionsRequest.CreatePartitionsTopic(
                name=name, count=count, assignments=assignments if replicas else None
            )
        )
    return request


def delete(*names: str, ids: tuple[Uuid, ...] = (), both: tuple[tuple[str, Uuid], ...] = ()) -> DeleteTopicsRequest:
    state = DeleteTopicsRequest.DeleteTopicState
    topics = [state(name=name) for name in names] + [state(name=None, topic_id=id) for id in ids]
    topics += [state(name=name, topic_id=id) for name, id in both]
    return DeleteTopicsRequest(topics=topics, timeout_ms=30_000)


def alter(*resources: tuple[Any, ...], validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    request = IncrementalAlterConfigsRequest(validate_only=validate_only)
    for type, name, *operations in resources:
        configs = [
            IncrementalAlterConfigsRequest.AlterableConfig(config_operation=operation, name=key, value=value)
            for operation, key, value in operations
        ]
        request.resources.append(
            IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=type, resource_name=name, configs=configs)
        )
    return request


def replace(*resources: tuple[int, str, Mapping[str, str | None]], validate_only: bool = False) -> AlterConfigsRequest:
    request = AlterConfigsRequest(validate_only=validate_only)
    for type, name, configs in resources:
        request.resources.append(
            AlterConfigsRequest.AlterConfigsResource(
                resource_type=type,
                resource_name=name,
                configs=[AlterConfigsRequest.AlterableConfig(name=key, value=text) for key, text in configs.items()],
            )
        )
    return request


def quotas(*entries: tuple[Any, ...], validate_only: bool = False) -> AlterClientQuotasRequest:
    request = AlterClientQuotasRequest(validate_only=validate_only)
    for entity, *operations in entries:
        request.entries.append(
            AlterClientQuotasRequest.EntryData(
                entity=[
                    AlterClientQuotasRequest.EntityData(entity_type=type, entity_name=name) for type, name in entity
                ],
                ops=[
                    AlterClientQuotasRequest.OpData(
                        key=key, value=0.0 if value is None else value, remove=value is None
                    )
                    for key, value in operations
                ],
            )
        )
    return request


def features(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    update = UpdateFeaturesRequest.FeatureUpdateKey
    return UpdateFeaturesRequest(
        timeout_ms=30_000,
        validate_only=validate_only,
        feature_updates=[update(feature=name, max_version_level=to, upgrade_type=type) for name, to, type in updates],
    )


def elect(type: int, *topics: tuple[str, tuple[int, ...]], all: bool = False) -> ElectLeadersRequest:
    wanted = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics]
    return ElectLeadersRequest(election_type=type, topic_partitions=None if all else wanted, timeout_ms=30_000)


def reassign(
    *wanted: tuple[str, int, tuple[int, ...] | None], allow_change: bool = True
) -> AlterPartitionReassignmentsRequest:
    request = AlterPartitionReassignmentsRequest(timeout_ms=30_000, allow_replication_factor_change=allow_change)
    for name, number, replicas in wanted:
        partition = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=number, replicas=replicas)
        request.topics.append(AlterPartitionReassignmentsRequest.ReassignableTopic(name=name, partitions=[partition]))
    return request


def scenes(ids: Mapping[str, Uuid]) -> Iterator[Scene]:
    """`ids` has the ids of the topics that earlier scenes created."""
    yield Scene("create", create(topic("plain", 3), topic("defaults", -1, -1)))
    yield Scene("create again", create(topic("plain"), topic("fresh")))
    yield Scene("create, names", create(*(topic(name) for name in ("", ".", "..", "a" * 250, "a b", "ünder", "a/b"))))
    yield Scene("create, longest name", create(topic("a" * 249)))
    yield Scene("create, a dot", create(topic("a.b")))
    yield Scene("create, collision", create(topic("a_b"), topic("a.c"), topic("a_c")))
    yield Scene("create, the metadata topic", create(topic("__cluster_metadata")))
    yield Scene("create, an internal topic", create(topic("__consumer_offsets", 2)))
    yield Scene("create, counts", create(*(topic(f"count{n}", n) for n in (0, -2, -1))))
    yield Scene("create, replication factors", create(*(topic(f"factor{n}", 1, n) for n in (0, -2, -1, 2, 100))))
    yield Scene("create, too many", create(topic("many", 10_001)))
    yield Scene("create, too many together", create(topic("many1", 5_000), topic("many2", 5_001)))
    yield Scene("create, too many records", create(topic("large1", 5_000), topic("large2", 4_999), topic("plain")))
    yield Scene("create, too many records to validate", create(topic("large", 10_000), validate_only=True))
    yield Scene("create, by hand", create(assigned("hand", (1,), (1,))))
    yield Scene(
        "create, by hand and counts", create(assigned("h1", (1,), partitions=1), assigned("h2", (1,), replicas=1))
    )
    yield Scene(
        "create, wrong by hand",
        create(
            assigned("h3", (7,)),
            assigned("h4", (1, 1)),
            assigned("h5", ()),
            assigned("h6", (1,), numbers=(1,)),
            assigned("h7", (1,), (1,), numbers=(0, 0)),
            assigned("h8", (1,), ()),
            assigned("h9", (1, 7)),
        ),
    )
    yield Scene("create, settings", create(topic("set", 1, 1, cleanup_policy="compact", retention_ms="1000")))
    yield Scene("create, min.insync.replicas", create(topic("isr", 1, 1, min_insync_replicas="2")))
    yield Scene(
        "create, wrong settings",
        create(
            topic("s1", retention_ms="soon"),
            topic("s2", retention_ms="-2"),
            topic("s3", nonsense="1"),
            topic("s4", cleanup_policy="burn"),
            topic("s5", cleanup_policy="compact,burn"),
            topic("s6", compression_type="zip"),
            topic("s7", retention_ms=None),
            topic("s8", preallocate="maybe"),
            topic("s9", min_compaction_lag_ms="10", max_compaction_lag_ms="5"),
            topic("s10", min_cleanable_dirty_ratio="1.5"),
            topic("s11", segment_bytes="1"),
            topic("s12", remote_storage_enable="true"),
            topic("s13", message_timestamp_type="Never"),
            topic("s14", compression_gzip_level="10"),
            topic("s15", retention_ms=""),
            topic("s16", min_insync_replicas="0"),
            topic("s17", min_cleanable_dirty_ratio="half"),
            topic("s18", segment_bytes="99999999999"),
            topic("s19", max_message_bytes="x"),
            topic("s20", leader_replication_throttled_replicas="zero"),
            topic("s21", cleanup_policy="compact,compact"),
            topic("s22", compression_zstd_level="23"),
        ),
    )
    yield Scene("create, empty list", create(topic("kept", cleanup_policy="")))
    yield Scene("validate a creation", create(topic("later", 2), topic("plain"), validate_only=True))
    yield Scene("validated is not created", create(topic("later", 2)))
    yield Scene("create, no topics", create())

    yield Scene("grow", grow(("plain", 5)))
    yield Scene("grow by hand", grow(("defaults", 2, (1,))))
    yield Scene("grow, counts", grow(("plain", 5)))
    yield Scene("grow, fewer", grow(("plain", 2), ("fresh", 0), ("set", -1)))
    yield Scene("grow, unknown", grow(("nowhere", 2)))
    yield Scene("grow, twice", grow(("plain", 6), ("plain", 7)))
    yield Scene("grow, wrong by hand", grow(("plain", 7, (1,)), ("fresh", 2, (7,)), ("set", 2, (1, 1)), ("isr", 2, ())))
    yield Scene("validate a growth", grow(("plain", 6), ("nowhere", 2), validate_only=True))

    yield Scene("set", alter((TOPIC, "plain", (SET, "retention.ms", "5000"), (SET, "cleanup.policy", "delete"))))
    yield Scene("append and subtract", alter((TOPIC, "plain", (APPEND, "cleanup.policy", "compact"))))
    yield Scene("subtract", alter((TOPIC, "plain", (SUBTRACT, "cleanup.policy", "delete"))))
    yield Scene("append to the default", alter((TOPIC, "fresh", (APPEND, "cleanup.policy", "compact"))))
    yield Scene("append to no list", alter((TOPIC, "plain", (APPEND, "retention.ms", "1"))))
    yield Scene("subtract from no list", alter((TOPIC, "plain", (SUBTRACT, "retention.ms", "1"))))
    yield Scene("unset", alter((TOPIC, "plain", (DELETE, "retention.ms", None), (DELETE, "segment.ms", None))))
    yield Scene("set, unknown", alter((TOPIC, "nowhere", (SET, "retention.ms", "1"))))
    yield Scene("set, wrong", alter((TOPIC, "plain", (SET, "retention.ms", "x"))))
    yield Scene("set, wrong name", alter((TOPIC, "plain", (SET, "retentions.ms", "1"))))
    yield Scene("set, null", alter((TOPIC, "plain", (SET, "retention.ms", None), (APPEND, "cleanup.policy", None))))
    yield Scene("set, twice", alter((TOPIC, "plain", (SET, "retention.ms", "1"), (SET, "retention.ms", "2"))))
    yield Scene("set, no name", alter((TOPIC, "", (SET, "retention.ms", "1"))))
    yield Scene("set, resource twice", alter((TOPIC, "plain", (SET, "retention.ms", "1")), (TOPIC, "plain")))
    yield Scene("set, unknown type", alter((1, "plain", (SET, "retention.ms", "1"))))
    yield Scene("validate a setting", alter((TOPIC, "plain", (SET, "retention.ms", "77")), validate_only=True))
    yield Scene("set, min.insync.replicas", alter((TOPIC, "plain", (SET, "min.insync.replicas", "2"))))

    yield Scene("broker", alter((BROKER, "1", (SET, "log.cleaner.threads", "2"))))
    yield Scene("cluster", alter((BROKER, "", (SET, "log.retention.ms", "60000"))))
    yield Scene("broker, wrong", alter((BROKER, "1", (SET, "log.cleaner.threads", "many"))))
    yield Scene("broker, out of bounds", alter((BROKER, "1", (SET, "log.cleaner.threads", "-1"))))
    yield Scene("broker, read-only", alter((BROKER, "1", (SET, "log.dirs", "elsewhere"))))
    yield Scene("cluster, read-only", alter((BROKER, "", (SET, "num.partitions", "3"))))
    yield Scene("cluster, of one broker", alter((BROKER, "", (SET, "advertised.listeners", "PLAINTEXT://x:1"))))
    yield Scene("broker, unknown name", alter((BROKER, "1", (SET, "nonsense", "1"))))
    yield Scene("broker, another", alter((BROKER, "2", (SET, "log.cleaner.threads", "2"))))
    yield Scene("broker, no number", alter((BROKER, "one", (SET, "log.cleaner.threads", "2"))))
    yield Scene("broker, min.insync.replicas", alter((BROKER, "1", (SET, "min.insync.replicas", "2"))))
    yield Scene("cluster, min.insync.replicas", alter((BROKER, "", (SET, "min.insync.replicas", "2"))))
    yield Scene("cluster, no min.insync.replicas", alter((BROKER, "", (DELETE, "min.insync.replicas", None))))
    yield Scene("cluster, unset", alter((BROKER, "", (DELETE, "log.retention.ms", None))))
    yield Scene("broker, append to no list", alter((BROKER, "1", (APPEND, "log.cleaner.threads", "2"))))
    yield Scene("group", alter((GROUP, "readers", (SET, "consumer.session.timeout.ms", "50000"))))
    yield Scene("group, unknown name", alter((GROUP, "readers", (SET, "nonsense", "1"))))
    yield Scene("group, no name", alter((GROUP, "", (SET, "consumer.session.timeout.ms", "50000"))))
    yield Scene("metrics", alter((CLIENT_METRICS, "m", (SET, "interval.ms", "1000"))))
    yield Scene("metrics, unknown name", alter((CLIENT_METRICS, "m", (SET, "nonsense", "1"))))

    yield Scene("replace", replace((TOPIC, "fresh", {"retention.ms": "1", "segment.ms": "2"})))
    yield Scene("replace again", replace((TOPIC, "fresh", {"retention.ms": "1"})))
    yield Scene("replace, wrong", replace((TOPIC, "fresh", {"retention.ms": "x"}), (TOPIC, "nowhere", {})))
    yield Scene("replace, null", replace((TOPIC, "fresh", {"retention.ms": None})))
    yield Scene("replace, unknown type", replace((1, "fresh", {})))
    yield Scene("validate a replacement", replace((TOPIC, "fresh", {}), validate_only=True))
    yield Scene("settings as they are now", create(topic("seen")))

    user, client = ("user", "ann"), ("client-id", "app")
    yield Scene(
        "quota",
        quotas(([user, client], ("producer_byte_rate", 1000.0)), ([("user", None)], ("request_percentage", 5.5))),
    )
    yield Scene("quota removed", quotas(([user, client], ("producer_byte_rate", None), ("consumer_byte_rate", None))))
    yield Scene("quota of an address", quotas(([("ip", "127.0.0.1")], ("connection_creation_rate", 10.0))))
    yield Scene("quota, nobody", quotas(([], ("producer_byte_rate", 1.0))))
    yield Scene("quota, unknown kind", quotas(([("dog", "rex")], ("producer_byte_rate", 1.0))))
    yield Scene("quota, unknown key", quotas(([user], ("nonsense", 1.0))))
    yield Scene("quota, zero", quotas(([user], ("producer_byte_rate", 0.0))))
    yield Scene("quota, a part", quotas(([user], ("producer_byte_rate", 1.5))))
    yield Scene("quota, empty name", quotas(([("user", "")], ("producer_byte_rate", 1.0))))
    yield Scene("quota, mixed", quotas(([("ip", "127.0.0.1"), user], ("connection_creation_rate", 1.0))))
    yield Scene("quota, of the wrong kind", quotas(([user], ("connection_creation_rate", 1.0))))
    yield Scene("quota, too large", quotas(([("ip", "127.0.0.1")], ("connection_creation_rate", 3e9))))
    for key, entity in [
        ("producer_byte_rate", user),
        ("request_percentage", user),
        ("connection_creation_rate", ("ip", "127.0.0.1")),
    ]:
        for value in (inf, -inf, -1.0, -0.0, 5e-324, 1e300, 2.0**63, 2.0**31, 0.9999999, 1.0000005):
            yield Scene(f"quota, {key} {value}", quotas(([entity], (key, value))))
    yield Scene("quota, twice", quotas(([user], ("producer_byte_rate", 1.0)), ([user], ("producer_byte_rate", 2.0))))

    yield Scene("features, as they are", features(("group.version", 1, 1)))
    yield Scene("features, unknown", features(("nonsense", 1, 1)))
    yield Scene("features, too high", features(("group.version", 9, 1)))
    yield Scene("features, down", features(("group.version", 0, 1)))
    yield Scene("features, down safely", features(("group.version", 0, 2), validate_only=True))
    yield Scene("features, up by going down", features(("transaction.version", 3, 2)))
    yield Scene("features, metadata down", features(("metadata.version", 29, 2)))
    yield Scene("features, metadata down unsafely", features(("metadata.version", 29, 3)))
    yield Scene("features, metadata too low", features(("metadata.version", 3, 2)))
    yield Scene("features, unknown type", features(("group.version", 1, 9)))
    yield Scene("features, negative", features(("group.version", -1, 2)))

    yield Scene("elect the preferred", elect(0, ("plain", (0, 1)), ("nowhere", (0,))))
    yield Scene("elect uncleanly", elect(1, ("plain", (0, 9))))
    yield Scene("elect all", elect(0, all=True))
    yield Scene("elect somehow", elect(7, ("plain", (0,))))

    yield Scene("reassign to where it is", reassign(("plain", 0, (1,))))
    yield Scene("reassign, wrong", reassign(("plain", 1, (7,)), ("hand", 0, ()), ("fresh", 0, (1, 1))))
    yield Scene("reassign, unknown", reassign(("plain", 99, (1,)), ("nowhere", 0, (1,))))
    yield Scene("cancel nothing", reassign(("plain", 0, None)))
    yield Scene("list reassignments", ListPartitionReassignmentsRequest(timeout_ms=30_000, topics=None))
    listed = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(name="plain", partition_indexes=(0,))
    yield Scene("list some", ListPartitionReassignmentsRequest(timeout_ms=30_000, topics=[listed]))

    yield Scene("delete, unknown", delete("nowhere", ids=(NOWHERE,)))
    yield Scene("delete, twice", delete("plain", "plain", ids=(NOWHERE, NOWHERE)))
    yield Scene("delete, nothing named", delete(ids=(Uuid(bytes(16)),)))
    yield Scene("delete, name and id", delete(both=(("plain", ids["plain"]),)))
    yield Scene("delete, name of the id", delete("plain", ids=(ids["plain"],)))
    yield Scene("delete", delete("plain"))
    yield Scene("delete by id", delete(ids=(ids["fresh"],)))
    yield Scene("create what was deleted", create(topic("plain")))
    yield Scene("unregister, unknown", UnregisterBrokerRequest(broker_id=7))
