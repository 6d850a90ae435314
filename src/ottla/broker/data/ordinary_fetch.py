"""The fetch that consumers without sessions send most: one partition, in which there is something to read.

librdkafka has no sessions, and reads so. What is read is in memory, mostly. Then the reply is made in a straight line,
without the objects that a wait, a session or a second partition would need. Nothing is changed here: every other
fetch takes the long way, which looks at everything again and has the words for a refusal.
"""

from ottla.base.ports import ColdRead
from ottla.broker.admin.settings.node_settings import NodeSettings
from ottla.broker.data.fetch_replies import partition_data, reply_of_one
from ottla.broker.data.fetch_sessions import FINAL_EPOCH, NO_SESSION
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import NO_EPOCH, Partition
from ottla.log.errors import STORAGE_PROBLEMS, OffsetOutOfRange
from ottla.log.outcomes import FileSlice
from ottla.wire.messages import FetchRequest, FetchResponse

USES_TOPIC_IDS = 13
HAS_REPLICA_STATE = 15
LONG_WAY = (ColdRead, OffsetOutOfRange, *STORAGE_PROBLEMS)


def most_bytes(request: FetchRequest, node_settings: NodeSettings) -> int:
    """Of records in a reply, unless the first batch is larger."""
    return min(request.max_bytes, node_settings.effective.integer("fetch.max.bytes"))


def find_ordinary(partitions: Partitions, version: int, request: FetchRequest) -> Partition | None:
    """The partition that such a fetch is of, if there is nothing to say about it but what is in it."""
    topics = request.topics
    if len(topics) != 1 or request.session_epoch != FINAL_EPOCH or request.session_id != NO_SESSION:
        return None
    topic = topics[0]
    replica_id = request.replica_state.replica_id if version >= HAS_REPLICA_STATE else request.replica_id
    if len(topic.partitions) != 1 or replica_id >= 0 or request.rack_id:
        return None
    asked = topic.partitions[0]
    by_id = version >= USES_TOPIC_IDS
    name = partitions.metadata.topic_name(topic.topic_id) if by_id else topic.topic
    partition = partitions.get((name, asked.partition))  # type: ignore[arg-type]  # no partition has no name
    if partition is None or partition.state is None or (by_id and partition.topic_id != topic.topic_id):
        return None
    epoch = asked.current_leader_epoch
    if (epoch != NO_EPOCH and epoch != partition.leader_epoch) or asked.last_fetched_epoch >= 0:
        return None
    return partition


def read_ordinary(
    partitions: Partitions, partition: Partition, version: int, request: FetchRequest, max_bytes: int
) -> FetchResponse | None:
    """The reply, at most `max_bytes` of records unless the first batch is larger; None for the long way."""
    (topic,) = request.topics
    (asked,) = topic.partitions
    most = min(asked.partition_max_bytes, max_bytes)
    records = read_in_memory(partitions, partition, asked.fetch_offset, most, request.isolation_level)
    if records is None or (records.size < min(request.min_bytes, max_bytes) and request.max_wait_ms > 0):
        return None
    partition.traffic.fetch_requests += 1
    partition.traffic.bytes_out += records.size
    data = partition_data(partition, records)
    data.aborted_transactions = [] if request.isolation_level else None
    return reply_of_one(topic, data, by_id=version >= USES_TOPIC_IDS)


def read_in_memory(
    partitions: Partitions, partition: Partition, offset: int, max_bytes: int, isolation_level: int
) -> FileSlice | None:
    """What is to be read from an offset on; None if it is nothing, not in memory, or has aborted transactions in it."""
    log, end_offset = partition.log, partition.end_for_readers(isolation_level)
    if not log.log_start_offset <= offset < end_offset:
        return None
    disk = partitions.world.disk
    disk.reads_may_wait(False)
    try:
        records = partition.read(offset, max_bytes, end_offset, min_one_batch=True)
        has_aborted = isolation_level and log.aborted_in(offset, records, end_offset)
        return None if has_aborted else records
    except LONG_WAY:
        return None
    finally:
        disk.reads_may_wait(True)
