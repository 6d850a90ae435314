"""A snapshot with a record of every kind that the shell shows. Tests beside Apache Kafka read it too."""

from pathlib import Path

from ottla.log.disk import OsDisk
from ottla.machines.decision import VersionedRecord
from ottla.runtime.metadata.storage.snapshots import SnapshotId, snapshot_batches, write_batches
from ottla.wire import messages as m
from ottla.wire.message import Message

TIMESTAMP_MS = 1_234_567
EPOCH = 3


def uuid(number: int) -> bytes:
    return bytes([0] * 15 + [number])


def quota(entity: dict[str, str | None], key: str, value: float) -> m.ClientQuotaRecord:
    parts = [m.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    return m.ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)


def broker() -> m.RegisterBrokerRecord:
    endpoint, feature = m.RegisterBrokerRecord.BrokerEndpoint, m.RegisterBrokerRecord.BrokerFeature
    return m.RegisterBrokerRecord(
        broker_id=3,
        incarnation_id=uuid(9),
        broker_epoch=5,
        end_points=[
            endpoint(name="SSL", host="h", port=1, security_protocol=1),
            endpoint(name="INT", host="::1", port=2, security_protocol=3),
        ],
        features=[
            feature(name="metadata.version", min_supported_version=7, max_supported_version=30),
            feature(name="group.version", min_supported_version=0, max_supported_version=1),
        ],
        rack="r1",
        fenced=True,
        in_controlled_shutdown=True,
        log_dirs=[uuid(3)],
        cordoned_log_dirs=[uuid(3)],
    )


def controller() -> m.RegisterControllerRecord:
    endpoint = m.RegisterControllerRecord.ControllerEndpoint(name="C", host="c", port=3, security_protocol=0)
    return m.RegisterControllerRecord(controller_id=8, incarnation_id=uuid(4), end_points=[endpoint])


def partition(number: int) -> m.PartitionRecord:
    return m.PartitionRecord(
        partition_id=number,
        topic_id=uuid(200),
        replicas=[3, 1],
        isr=[3],
        removing_replicas=[1],
        adding_replicas=[3],
        leader=-1,
        leader_recovery_state=number % 2,
        leader_epoch=4,
        partition_epoch=6,
        directories=[uuid(3), uuid(100)],
    )


def acl(number: int, **fields: object) -> m.AccessControlEntryRecord:
    return m.AccessControlEntryRecord(id=uuid(number), **fields)


RECORDS: list[tuple[Message, int]] = [
    (m.FeatureLevelRecord(name="metadata.version", feature_level=30), 0),
    (m.FeatureLevelRecord(name="group.version", feature_level=1), 0),
    (broker(), 4),
    (controller(), 0),
    (m.TopicRecord(name="a.b_c", topic_id=uuid(200)), 0),
    *((partition(number), 1) for number in range(12)),
    (m.ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"), 0),
    (m.ConfigRecord(resource_type=4, resource_name="3", name="max.connections", value="1000"), 0),
    (m.ConfigRecord(resource_type=16, resource_name="cm", name="interval.ms", value="5"), 0),
    (m.ConfigRecord(resource_type=32, resource_name="gr/up x", name="consumer.session.timeout.ms", value="50000"), 0),
    (m.ConfigRecord(resource_type=2, resource_name="a.b_c", name="retention.ms", value="50000"), 0),
    (m.ConfigRecord(resource_type=2, resource_name="zz", name="retention.ms", value=""), 0),
    (quota({"user": "alice", "client-id": "app 1"}, "producer_byte_rate", 1e9), 0),
    (quota({"client-id": "p(x)\\y"}, "producer_byte_rate", 0.5), 0),
    (quota({"ip": "10.0.0.1"}, "connection_creation_rate", 20), 0),
    (m.ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=77), 0),
    (
        acl(
            77,
            resource_type=2,
            resource_name="foo",
            pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        ),
        0,
    ),
    (
        acl(
            78,
            resource_type=6,
            resource_name="x",
            pattern_type=4,
            principal="User:bob",
            host="1.2.3.4",
            operation=15,
            permission_type=2,
        ),
        0,
    ),
    (
        m.UserScramCredentialRecord(
            name="zoe", mechanism=2, salt=b"salt", stored_key=b"s", server_key=b"k", iterations=4096
        ),
        0,
    ),
    (
        m.DelegationTokenRecord(
            owner="User:alice",
            requester="User:bob",
            renewers=["User:x", "User:y"],
            issue_timestamp=1000,
            max_timestamp=2000,
            expiration_timestamp=1500,
            token_id="tok1",
        ),
        0,
    ),
]


def write_snapshot(directory: Path, *more: Message) -> Path:
    path = directory / SnapshotId(141, EPOCH).name
    records = [*(VersionedRecord(*pair) for pair in RECORDS), *(VersionedRecord(record, 0) for record in more)]
    batches = snapshot_batches(records, TIMESTAMP_MS, epoch=EPOCH, last_contained_log_timestamp=TIMESTAMP_MS)
    write_batches(OsDisk(), str(path), batches)
    return path
