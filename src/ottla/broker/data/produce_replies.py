"""Replies to Produce, made like prototypes: of the messages of a node these are made most often."""

from ottla.base.ids import ZERO_UUID
from ottla.broker.partitions.partition import Partition
from ottla.wire.message import like
from ottla.wire.messages import ProduceRequest, ProduceResponse

USES_TOPIC_IDS = 13
NO_HINT = ProduceResponse.LeaderIdAndEpoch()
# What replies are made like.
TAKEN = ProduceResponse.PartitionProduceResponse(log_append_time_ms=-1, record_errors=(), current_leader=NO_HINT)  # type: ignore[arg-type]
TOPIC = ProduceResponse.TopicProduceResponse(name="", topic_id=ZERO_UUID)
_RESPONSE = ProduceResponse(node_endpoints=())  # type: ignore[arg-type]


def taken(partition: Partition, base_offset: int) -> ProduceResponse.PartitionProduceResponse:
    """The answer for a batch that was appended."""
    answer = like(TAKEN)
    answer.index = partition.name[1]
    answer.base_offset = base_offset
    answer.log_start_offset = partition.log.log_start_offset
    return answer


def response_of(topics: list[ProduceResponse.TopicProduceResponse]) -> ProduceResponse:
    response = like(_RESPONSE)
    response.responses = topics
    return response


def topic_response(
    topic: ProduceRequest.TopicProduceData, version: int, answers: list[ProduceResponse.PartitionProduceResponse]
) -> ProduceResponse.TopicProduceResponse:
    response = like(TOPIC)
    if version >= USES_TOPIC_IDS:
        response.topic_id = topic.topic_id
    else:
        response.name = topic.name
    response.partition_responses = answers
    return response
