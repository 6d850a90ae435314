"""Replies to Produce, made like prototypes: of the messages of a node these are made most often."""

from ottla.base.ids import ZERO_UUID
from ottla.broker.data.ordinary_batch import USES_TOPIC_IDS
from ottla.wire.message import like
from ottla.wire.messages import ProduceRequest, ProduceResponse

NO_HINT = ProduceResponse.LeaderIdAndEpoch()
# What replies are made like.
_TAKEN = ProduceResponse.PartitionProduceResponse(log_append_time_ms=-1, record_errors=(), current_leader=NO_HINT)  # type: ignore[arg-type]
_TOPIC = ProduceResponse.TopicProduceResponse(name="", topic_id=ZERO_UUID)
_RESPONSE = ProduceResponse(node_endpoints=())  # type: ignore[arg-type]


def taken_reply(request: ProduceRequest, version: int, base_offset: int, log_start_offset: int) -> ProduceResponse:
    """The reply to a request whose only batch was taken."""
    (topic,) = request.topic_data
    answer = like(_TAKEN)
    answer.index = topic.partition_data[0].index
    answer.base_offset = base_offset
    answer.log_start_offset = log_start_offset
    response = like(_RESPONSE)
    response.responses = [topic_response(topic, version, [answer])]
    return response


def topic_response(
    topic: ProduceRequest.TopicProduceData, version: int, answers: list[ProduceResponse.PartitionProduceResponse]
) -> ProduceResponse.TopicProduceResponse:
    response = like(_TOPIC)
    if version >= USES_TOPIC_IDS:
        response.topic_id = topic.topic_id
    else:
        response.name = topic.name
    response.partition_responses = answers
    return response
