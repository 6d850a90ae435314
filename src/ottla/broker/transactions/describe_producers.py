"""DescribeProducers, version 0: the producers that a partition remembers (KIP-664)."""

from ottla.broker.partitions.held_partitions import Partitions
from ottla.log.producer_state import Producer
from ottla.machines.metadata.topic_names import name_problem
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode, error_with_message
from ottla.wire.messages import DescribeProducersRequest, DescribeProducersResponse

_Answer = DescribeProducersResponse.PartitionResponse


def handle_describe_producers(
    partitions: Partitions, _context: RequestContext, request: DescribeProducersRequest, respond: Respond
) -> None:
    respond(
        DescribeProducersResponse(
            topics=[
                DescribeProducersResponse.TopicResponse(
                    name=topic.name,
                    partitions=[_answer(partitions, topic.name, index) for index in topic.partition_indexes],
                )
                for topic in request.topics
            ]
        )
    )


def _answer(partitions: Partitions, topic: str, index: int) -> DescribeProducersResponse.PartitionResponse:
    problem = name_problem(topic)
    if problem is not None:
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partition = partitions.get((topic, index))
    if partition is None:
        known = topic in partitions.metadata.image.topics.by_name
        message = None if known else f"There is no topic {topic}."
        return _refused(index, partitions.find_error(topic, index), message)
    return _Answer(partition_index=index, active_producers=[_described(one) for one in partition.log.producers])


def _refused(index: int, error: ErrorCode, message: str | None) -> _Answer:
    error, message = error_with_message(error, message)
    return _Answer(partition_index=index, error_code=error, error_message=message)


def _described(producer: Producer) -> DescribeProducersResponse.ProducerState:
    return DescribeProducersResponse.ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )
