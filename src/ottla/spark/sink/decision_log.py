"""The topic of decisions: one compacted record for each query.

A driver that reads it after it has fenced the query's older drivers sees the query's last decision, and no other can
follow but its own. Records are read uncommitted, and each one counts when its producer's commit marker is met: other
queries share the partition, and one of their transactions that hangs must not hide what lies behind it.
"""

from typing import Final, NamedTuple

from ottla.client.admin.records import OffsetSpec
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import KafkaError, OffsetOutOfRange, TopicAlreadyExists
from ottla.records.control import parse_end_transaction_marker
from ottla.records.reader import read_records
from ottla.spark.sink.cluster_access import ClusterAccess, FetchedBatches
from ottla.spark.sink.decision import MOST_BYTES, Decision, NewerVersion
from ottla.spark.sink.names import SHARED_PARTITIONS, SinkNames

_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(MOST_BYTES),
}


class WrongDecision(KafkaError):
    """The query's topic of decisions has a record that no driver of this query has written.

    Nothing is written on its word. A principal that may write to that topic can stop the query: give the job a topic of
    its own (options `decisionsTopic` and `transactionalIdPrefix`) and let only the job write to it.
    """


def create_topic(access: ClusterAccess, names: SinkNames, query_id: str) -> None:
    """Makes the topic if it is not there. Only then the right to make it is needed."""
    partition = names.decisions_of(query_id)
    if access.has_partition(partition):
        return
    count = SHARED_PARTITIONS if partition.topic == names.decisions else 1
    try:
        access.create_topics([NewTopic(partition.topic, count, config=_CONFIG)]).raise_first()
    except TopicAlreadyExists:
        return


class LastDecision(NamedTuple):
    decision: Decision
    producer_id: int
    """Whose it is: only who may use the driver's transactional id gets the driver's."""


def last_decision(access: ClusterAccess, names: SinkNames, query_id: str) -> LastDecision | None:
    """The newest committed decision of a query; None if it has none. The topic must be there.

    Raises `WrongDecision` if it cannot be this query's own: it would have the driver end transactions of others.
    """
    partition = names.decisions_of(query_id)
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
            if reading.last is None:
                return None
            producer_id, value = reading.last
            return LastDecision(_read(value, names, query_id), producer_id)
        offset = next_offset


def _read(value: bytes, names: SinkNames, query_id: str) -> Decision:
    topic = names.decisions_of(query_id)
    try:
        decision = Decision.decode(value)
    except NewerVersion:
        raise
    except Exception as problem:
        raise WrongDecision(f"{topic}, query {query_id}: it cannot be read ({problem})") from None
    prefix = names.task_prefix(query_id)
    if foreign := [one for one in decision.transactions if not one.transactional_id.startswith(prefix)]:
        raise WrongDecision(f"{topic}, query {query_id}: it names the transaction {foreign[0].transactional_id}")
    return decision


class _Reading:
    """Goes through the log once. A record waits for its producer's marker.

    Records outside transactions are nobody's decisions: anybody who may write to the topic could send them under a
    driver's producer id, and the driver's next marker would count for them.
    """

    def __init__(self, key: bytes) -> None:
        self.last: tuple[int, bytes] | None = None
        """Its producer's id, and the record's value."""
        self._key = key
        self._waiting: dict[int, bytes] = {}

    def take(self, fetched: FetchedBatches) -> int | None:
        """The offset to read on from; None if there was nothing."""
        next_offset = None
        for position, header in fetched.batches():
            next_offset = header.next_offset
            if header.is_control:
                marker = parse_end_transaction_marker(fetched.records, position, header)
                decided = self._waiting.pop(header.producer_id, None)
                if decided is not None and marker is not None and marker.committed:
                    self.last = header.producer_id, decided
                continue
            if not header.is_transactional:
                continue
            for record in read_records(fetched.records, position, header, limit=MOST_BYTES):
                if record.key == self._key and record.value is not None:
                    self._waiting[header.producer_id] = bytes(record.value)
        return next_offset
