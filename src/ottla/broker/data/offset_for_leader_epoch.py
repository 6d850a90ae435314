"""OffsetForLeaderEpoch, versions 2 to 4: where a leader's epoch ended, which tells a follower what was truncated."""

from ottla.broker.partitions.held_partitions import Partitions
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

_Answer = OffsetForLeaderEpochResponse.EpochEndOffset


def handle_offset_for_leader_epoch(
    partitions: Partitions, _context: RequestContext, request: OffsetForLeaderEpochRequest, respond: Respond
) -> None:
    respond(
        OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[_answer(partitions, topic.topic, asked) for asked in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    )


def _answer(
    partitions: Partitions, topic: str, asked: OffsetForLeaderEpochRequest.OffsetForLeaderPartition
) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    partition = partitions.get((topic, asked.partition))
    error = partitions.find_error(topic, asked.partition)
    if partition is not None:
        error = partition.check_leader(asked.current_leader_epoch)
    if partition is None or error is not ErrorCode.NONE:
        return _Answer(partition=asked.partition, error_code=error)
    leader_epoch, end_offset = partition.log.epochs.end_offset(asked.leader_epoch, partition.log.log_end_offset)
    return _Answer(partition=asked.partition, leader_epoch=leader_epoch, end_offset=end_offset)
