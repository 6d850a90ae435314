"""The produce request that comes most often, recognised at a glance: one batch for one partition, taken as it is.

Thousands of clients with small batches send nothing else, so what is done for it is all that a node does. Nothing is
changed here: what is not ordinary (compressed, of a transaction, for several partitions, or with anything about it
to refuse) takes the long way, which looks at everything again and has the words for a refusal.
"""

from typing import TypeAlias

from ottla.base.lent import Seen, Writable
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import append, on_failed
from ottla.log.outcomes import Appended
from ottla.log.producer_state import AppendOrigin
from ottla.machines.metadata.topic_names import INTERNAL
from ottla.records.header import BatchHeader, TimestampType
from ottla.records.kernel import ordinary_header
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest

USES_TOPIC_IDS = 13
MAX_PLAIN_BYTES = 4 << 20
_ALL, _LEADER = -1, 1
_CREATE_TIME = TimestampType.CREATE_TIME


OrdinaryBatch: TypeAlias = tuple[Partition, Writable, BatchHeader]


def find_ordinary(partitions: Partitions, version: int, request: ProduceRequest) -> OrdinaryBatch | None:
    """The only batch of `request`, if it may be appended without another look."""
    topics, acks = request.topic_data, request.acks
    if len(topics) != 1 or request.transactional_id is not None or not _ALL <= acks <= _LEADER:
        return None
    topic = topics[0]
    if len(topic.partition_data) != 1:
        return None
    data = topic.partition_data[0]
    records: Writable | None = data.records  # type: ignore[assignment]  # `ordinary_header` knows none other
    name = topic.name if version < USES_TOPIC_IDS else partitions.metadata.topic_name(topic.topic_id)
    partition = partitions.get((name, data.index))  # type: ignore[arg-type]  # no partition has no name
    if partition is None or not records or name in INTERNAL:
        return None
    header = check_ordinary(partitions, partition, acks, records)
    return (partition, records, header) if header is not None else None


def check_ordinary(partitions: Partitions, partition: Partition, acks: int, records: Seen) -> BatchHeader | None:
    """The header of a batch for that partition, if it may be appended without another look."""
    state, settings = partition.state, partition.settings
    if state is None or (acks == _ALL and not state.has_enough_replicas):
        return None
    rules = settings.rules
    if rules.compression or rules.timestamp_type is not _CREATE_TIME or len(records) > MAX_PLAIN_BYTES:
        return None
    earliest, latest = rules.timestamps_around(partitions.clock.now_ms())
    header = ordinary_header(records, rules.max_message_bytes, earliest, latest, rules.compacted)
    return None if header is None or header.attributes else header


def append_ordinary(
    partitions: Partitions, partition: Partition, records: Writable, header: BatchHeader
) -> int | Appended:
    """Appends such a batch. If that settles it (it is taken, seen by readers, and there is no work left for the disk),
    its records are counted, and its offset is all that there is to tell.
    """
    traffic, log = partition.traffic, partition.log
    traffic.produce_requests += 1
    try:
        base_offset = partition.append_in_line(records, header)
    except Exception as problem:
        return on_failed(partitions, partition, problem)
    if base_offset < 0:
        appended = append(partitions, partition, records, AppendOrigin.CLIENT, header)
        if appended.error or appended.repeated:
            return appended
        base_offset = appended.base_offset
    else:
        partitions.has_news_for_checkpoints = True
    if log.high_watermark < log.log_end_offset or log.recovery_point < log.segments[-1].base_offset:
        return Appended(ErrorCode.NONE, base_offset, base_offset + header.last_offset_delta)
    traffic.bytes_in += header.batch_length
    traffic.messages_in += header.record_count
    return base_offset
