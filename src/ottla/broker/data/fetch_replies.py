"""What replies to Fetch are made like, and the part of one that tells of a partition."""

from ottla.broker.data.fetch_sessions import Read
from ottla.broker.partitions.partition import Partition
from ottla.log.outcomes import FileSlice
from ottla.wire.message import like
from ottla.wire.messages import FetchRequest, FetchResponse

TOPIC = FetchResponse.FetchableTopicResponse(partitions=[])
RESPONSE = FetchResponse(node_endpoints=())  # type: ignore[arg-type]
_DATA = FetchResponse.PartitionData(
    aborted_transactions=None,
    diverging_epoch=FetchResponse.EpochEndOffset(),
    current_leader=FetchResponse.LeaderIdAndEpoch(),
    snapshot_id=FetchResponse.SnapshotId(),
)


def partition_data(partition: Partition, records: FileSlice | bytes) -> FetchResponse.PartitionData:
    """Records of a partition, and where it ends for readers. What is a struct in it is shared, and to be replaced."""
    log = partition.log
    return numbered_data(partition.name[1], log.high_watermark, log.last_stable_offset, log.log_start_offset, records)


def numbered_data(
    index: int, high_watermark: int, last_stable_offset: int, log_start_offset: int, records: FileSlice | bytes
) -> FetchResponse.PartitionData:
    data = like(_DATA)
    data.partition_index = index
    data.high_watermark = high_watermark
    data.last_stable_offset = last_stable_offset
    data.log_start_offset = log_start_offset
    data.records = records
    return data


def reply_of_one(topic: FetchRequest.FetchTopic, data: FetchResponse.PartitionData, *, by_id: bool) -> FetchResponse:
    """The reply to a fetch of one partition, without a session."""
    of_topic = like(TOPIC)
    if by_id:
        of_topic.topic_id = topic.topic_id
    else:
        of_topic.topic = topic.topic
    of_topic.partitions = [data]
    response = like(RESPONSE)
    response.responses = [of_topic]
    return response


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
