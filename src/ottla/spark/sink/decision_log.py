"""The topic of decisions: one compacted record for each query.

Whoever reads it after it has fenced the query's older drivers sees the query's last decision, and no other can follow
but its own. Records are read uncommitted, and each one counts when its producer's commit marker is met: other queries
share the partition, and one of their transactions that hangs must not hide what lies behind it.
"""

from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.admin.records import OffsetSpec
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import OffsetOutOfRange, TopicAlreadyExists
from ottla.client.producer.append import partition_for_key
from ottla.records.control import parse_end_transaction_marker
from ottla.records.reader import read_records
from ottla.spark.sink.cluster_access import ClusterAccess, FetchedBatches
from ottla.spark.sink.decision import Decision

TOPIC: Final = "__ottla_spark_decisions"
PARTITIONS: Final = 16
MOST_BYTES: Final = 64 << 20
"""Of one decision: a batch of 10,000 tasks that write to 100 partitions each fits, compressed."""
_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(MOST_BYTES),
}


def partition_of(query_id: str) -> TopicPartition:
    return TopicPartition(TOPIC, partition_for_key(query_id.encode(), PARTITIONS))


def create_topic(access: ClusterAccess) -> None:
    """Makes the topic if it is not there."""
    try:
        access.create_topics([NewTopic(TOPIC, PARTITIONS, config=_CONFIG)]).raise_first()
    except TopicAlreadyExists:
        return


def last_decision(access: ClusterAccess, query_id: str) -> Decision | None:
    """The newest committed decision of a query; None if it has none. The topic must be there."""
    partition = partition_of(query_id)
    reading = _Reading(query_id.encode())
    offset, end_offset = 0, -1
    while True:
        try:
            fetched = access.fetch(partition, offset)
        except OffsetOutOfRange:
            offset = access.list_offsets({partition: OffsetSpec.EARLIEST})[partition].offset or 0
            continue
        if end_offset < 0:
            end_offset = fetched.high_watermark
        next_offset = reading.take(fetched)
        if next_offset is None or next_offset >= end_offset:
            return reading.last
        offset = next_offset


class _Reading:
    """Goes through the log once. A record waits for its producer's marker."""

    def __init__(self, key: bytes) -> None:
        self.last: Decision | None = None
        self._key = key
        self._waiting: dict[int, Decision] = {}

    def take(self, fetched: FetchedBatches) -> int | None:
        """The offset to read on from; None if there was nothing."""
        next_offset = None
        for position, header in fetched.batches():
            next_offset = header.next_offset
            if header.is_control:
                marker = parse_end_transaction_marker(fetched.records, position, header)
                decided = self._waiting.pop(header.producer_id, None)
                if decided is not None and marker is not None and marker.committed:
                    self.last = decided
                continue
            for record in read_records(fetched.records, position, header, limit=MOST_BYTES):
                if record.key == self._key and record.value is not None:
                    self._waiting[header.producer_id] = Decision.decode(bytes(record.value))
        return next_offset
