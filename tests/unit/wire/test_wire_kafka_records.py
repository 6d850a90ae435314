"""The records that Apache Kafka 4.3.1 wrote to its internal topics: all are read, and written again byte for byte."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.records.batch import complete_batches
from ottla.records.reader import read_records
from ottla.wire.codec import encode
from ottla.wire.record_values import (
    CoordinatorTopic,
    decode_key,
    decode_metadata_record,
    decode_value,
    encode_key,
    encode_metadata_record,
    encode_versioned,
)

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "kafka-4.3.1" / "clean"
TOPICS = {
    CoordinatorTopic.CONSUMER_OFFSETS: "__consumer_offsets-0",
    CoordinatorTopic.TRANSACTION_STATE: "__transaction_state-0",
    CoordinatorTopic.SHARE_GROUP_STATE: "__share_group_state-0",
}


def records(partition: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    for segment in sorted((GOLDEN / partition).glob("*.log")):
        data = segment.read_bytes()
        for position, header in complete_batches(data):
            if not header.is_control:
                yield from ((record.key, record.value) for record in read_records(data, position, header))


@pytest.mark.parametrize("topic", CoordinatorTopic)
def test_the_coordinators_records_of_kafka(topic: CoordinatorTopic) -> None:
    seen = Counter[str]()
    for key_bytes, value_bytes in records(TOPICS[topic]):
        assert key_bytes is not None
        key = decode_key(topic, key_bytes)
        assert encode_key(key) == key_bytes
        if value_bytes is not None:
            value = decode_value(key, value_bytes)
            assert encode_versioned(value, int.from_bytes(value_bytes[:2], "big")) == value_bytes
            seen[type(value).__name__] += 1
    assert seen.total() > 0


def test_the_metadata_records_of_kafka() -> None:
    seen = Counter[str]()
    for _, value in records("__cluster_metadata-0"):
        assert value is not None
        record, version = decode_metadata_record(value)
        assert encode_metadata_record(record, version) == value
        assert encode(record, version) == value[3:]
        seen[type(record).__name__] += 1
    assert {"RegisterBrokerRecord", "TopicRecord", "PartitionRecord", "FeatureLevelRecord"} <= set(seen)
