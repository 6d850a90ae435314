"""ListOffsets, versions 1 to 11: the offset of a time, or of one of the special times.

-1  latest            the high watermark, or the last stable offset for read_committed
-2  earliest          the log start offset
-3  max timestamp     the record with the largest timestamp (KIP-734), version 7
-4  earliest local    as earliest: nothing is tiered here (KIP-405), version 8
-5  latest tiered     -1, as nothing is tiered (KIP-1005), version 9
-6  earliest pending upload   -1, as nothing is to be uploaded (KIP-1023), version 11
"""

from collections import Counter
from typing import Final

from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import NO_EPOCH, Partition
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.log.outcomes import TimestampAndOffset
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListOffsetsRequest, ListOffsetsResponse

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

_FIRST_VERSION_OF: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_CONSUMER: Final = -1
_HAS_LEADER_EPOCH: Final = 4
_KNOWS_OFFSET_NOT_AVAILABLE: Final = 5
_NO_TIMESTAMP: Final = -1
_NOTHING: Final = TimestampAndOffset(-1, -1, NO_EPOCH)

_Asked = ListOffsetsRequest.ListOffsetsPartition
_Answer = ListOffsetsResponse.ListOffsetsPartitionResponse


def handle_list_offsets(
    partitions: Partitions, context: RequestContext, request: ListOffsetsRequest, respond: Respond
) -> None:
    times_asked = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    response = ListOffsetsResponse()
    for topic in request.topics:
        answers: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = []
        for asked in topic.partitions:
            if times_asked[topic.name, asked.partition_index] > 1:
                answers.append(_Answer(partition_index=asked.partition_index, error_code=ErrorCode.INVALID_REQUEST))
            else:
                answers.append(_answer(partitions, context.api_version, request, topic.name, asked))
        response.topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    respond(response)


def _answer(
    partitions: Partitions,
    version: int,
    request: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsRequest.ListOffsetsPartition,
) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
    error, found = ErrorCode.UNSUPPORTED_VERSION, _NOTHING
    if asked.timestamp >= 0 or version >= _FIRST_VERSION_OF.get(asked.timestamp, version + 1):
        error, found = _find(partitions, request, topic, asked)
    if error is ErrorCode.OFFSET_NOT_AVAILABLE and version < _KNOWS_OFFSET_NOT_AVAILABLE:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return _Answer(
        partition_index=asked.partition_index,
        error_code=error,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= _HAS_LEADER_EPOCH else NO_EPOCH,
    )


def _find(
    partitions: Partitions, request: ListOffsetsRequest, topic: str, asked: ListOffsetsRequest.ListOffsetsPartition
) -> tuple[ErrorCode, TimestampAndOffset]:
    partition = partitions.get((topic, asked.partition_index))
    if partition is None:
        return partitions.find_error(topic, asked.partition_index), _NOTHING
    error = partition.check_leader(asked.current_leader_epoch)
    if error:
        return error, _NOTHING
    try:
        return _lookup(partition, asked.timestamp, request.isolation_level, request.replica_id == _CONSUMER)
    except STORAGE_PROBLEMS as problem:
        return partitions.on_storage_problem(partition, problem), _NOTHING


def _lookup(
    partition: Partition, timestamp: int, isolation_level: int, is_consumer: bool
) -> tuple[ErrorCode, TimestampAndOffset]:
    log, state = partition.log, partition.state
    assert state is not None
    end_offset = partition.end_for_readers(isolation_level) if is_consumer else log.log_end_offset
    # A new leader does not know yet how far its predecessor had got; offsets would seem to go back (KIP-207).
    is_lagging = is_consumer and log.high_watermark < state.epoch_start_offset
    if timestamp == LATEST:
        if is_lagging:
            return ErrorCode.OFFSET_NOT_AVAILABLE, _NOTHING
        return ErrorCode.NONE, TimestampAndOffset(_NO_TIMESTAMP, end_offset, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start_offset = log.log_start_offset
        return ErrorCode.NONE, TimestampAndOffset(_NO_TIMESTAMP, start_offset, log.epochs.epoch_at(start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return ErrorCode.NONE, _NOTHING
    found = log.offset_of_max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is not None and found.offset < end_offset:
        return ErrorCode.NONE, found
    return (ErrorCode.OFFSET_NOT_AVAILABLE if is_lagging else ErrorCode.NONE), _NOTHING
