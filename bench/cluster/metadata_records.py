"""A metadata log with very many partitions, as a snapshot that controllers of both kinds start from.

Three brokers are registered and not fenced, and none of them is there: their sessions last longer than the benchmark.
Partitions have lived: their epochs, leaders and in-sync replicas differ.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.base.ids import Uuid
from ottla.log.disk import OsDisk
from ottla.machines.decision import VersionedRecord
from ottla.machines.metadata.image.features import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    SERVED,
    default_level,
    partition_version,
    register_broker_version,
)
from ottla.runtime.metadata.storage.snapshots import SnapshotId, snapshot_batches, write_batches
from ottla.wire.messages import FeatureLevelRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord

BROKER_IDS = (11, 12, 13)
PARTITIONS_A_TOPIC = 100
EPOCH = 1
_DIRECTORIES = {broker_id: Uuid(bytes([0xA0, broker_id]) * 8) for broker_id in BROKER_IDS}
_ORDERS = [(11, 12, 13), (12, 13, 11), (13, 11, 12), (11, 13, 12), (13, 12, 11), (12, 11, 13)]


def records(partitions: int) -> Iterator[VersionedRecord]:
    for name in [METADATA_VERSION, *sorted(SERVED.keys() - {METADATA_VERSION, KRAFT_VERSION})]:
        level = default_level(name, LATEST_METADATA_VERSION)
        if level:
            yield VersionedRecord(FeatureLevelRecord(name=name, feature_level=level), 0)
    for broker_id in BROKER_IDS:
        yield VersionedRecord(_broker(broker_id), register_broker_version(LATEST_METADATA_VERSION))
    version = partition_version(LATEST_METADATA_VERSION)
    for number in range(partitions):
        topic, partition_id = divmod(number, PARTITIONS_A_TOPIC)
        topic_id = Uuid(b"bench-topic" + topic.to_bytes(5, "big"))
        if partition_id == 0:
            yield VersionedRecord(TopicRecord(name=f"topic-{topic:06d}", topic_id=topic_id), 0)
        replicas = _ORDERS[number % len(_ORDERS)]
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas if number % 5 else replicas[:2],
            leader=replicas[0] if number % 3 else replicas[1],
            leader_epoch=number % 17,
            partition_epoch=number % 43,
            directories=tuple(_DIRECTORIES[broker_id] for broker_id in replicas),
        )
        yield VersionedRecord(record, version)


def _broker(broker_id: int) -> RegisterBrokerRecord:
    endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=1, security_protocol=0)
    features = [
        RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, ((low, high), *_) in FEATURES.items()
    ]
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=Uuid(bytes([broker_id]) * 16),
        broker_epoch=broker_id,
        end_points=[endpoint],
        features=features,
        fenced=False,
        log_dirs=[_DIRECTORIES[broker_id]],
    )


def write_metadata(directory: Path, partitions: int, voter_ids: list[int]) -> Path:
    """Into the metadata directory of a controller that is formatted and was never started. Returns the snapshot."""
    directory.mkdir(parents=True, exist_ok=True)
    count = sum(1 for _ in records(partitions))
    snapshot = SnapshotId(count, EPOCH)
    path = directory / snapshot.name
    now_ms = int(time.time() * 1000)
    batches = snapshot_batches(records(partitions), now_ms, epoch=EPOCH, last_contained_log_timestamp=now_ms)
    write_batches(OsDisk(), str(path), batches)
    state = {
        "clusterId": "",
        "leaderId": -1,
        "leaderEpoch": EPOCH,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
        "data_version": 0,
    }
    (directory / "quorum-state").write_text(json.dumps(state, separators=(",", ":")))
    return path
