"""What replies to Fetch are made like, and the part of one that tells of a partition."""

from ottla.broker.data.fetch_sessions import Read
from ottla.broker.partitions.partition import Partition
from ottla.log.outcomes import FileSlice
from ottla.wire.message import like
from ottla.wire.messages import FetchResponse

TOPIC = FetchResponse.FetchableTopicResponse(partitions=[])
RESPONSE = FetchResponse(node_endpoints=())  # type: ignore[arg-type]
DATA = FetchResponse.PartitionData(
    aborted_transactions=None,
    diverging_epoch=FetchResponse.EpochEndOffset(),
    current_leader=FetchResponse.LeaderIdAndEpoch(),
    snapshot_id=FetchResponse.SnapshotId(),
)


def partition_data(partition: Partition, records: FileSlice | bytes) -> FetchResponse.PartitionData:
    """Records of a partition, and where it ends for readers. What is a struct in it is shared, and to be replaced."""
    log, data = partition.log, like(DATA)
    data.partition_index = partition.name[1]
    data.high_watermark = log.high_watermark
    data.last_stable_offset = log.last_stable_offset
    data.log_start_offset = log.log_start_offset
    data.records = records
    return data


def put_partitions(response: FetchResponse, news: Read, *, by_id: bool) -> None:
    """Adds partitions to a response, those of one topic that follow each other under the topic."""
    topics, last = response.responses, None
    if topics:
        last = topics[-1].topic_id if by_id else topics[-1].topic
    for key, _, data in news:
        if not topics or last != key[0]:
            topic = like(TOPIC)
            topic.partitions = []
            setattr(topic, "topic_id" if by_id else "topic", key[0])
            topics.append(topic)
            last = key[0]
        topics[-1].partitions.append(data)
