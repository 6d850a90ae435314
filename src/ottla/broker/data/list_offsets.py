"""ListOffsets, versions 1 to 11: the offset of a time, or of one of the special times.

-1  latest            the high watermark, or the last stable offset for read_committed
-2  earliest          the log start offset
-3  max timestamp     the record with the largest timestamp (KIP-734), version 7
-4  earliest local    as earliest: nothing is tiered here (KIP-405), version 8
-5  latest tiered     -1, as nothing is tiered (KIP-1005), version 9
-6  earliest pending upload   -1, as nothing is to be uploaded (KIP-1023), version 11
"""

from collections import Counter
from typing import Final, NamedTuple, TypeAlias

from ottla.base.ports import Workers
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import NO_EPOCH, Partition
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.log.outcomes import TimestampAndOffset
from ottla.log.reading import TimeLookup
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.world import World
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
_LANES: Final = 2  # So many lookups continue at the same time: workers have other things to do.
_NOTHING: Final = TimestampAndOffset(-1, -1, NO_EPOCH)

_Answer = ListOffsetsResponse.ListOffsetsPartitionResponse


def handle_list_offsets(
    partitions: Partitions, world: World, context: RequestContext, request: ListOffsetsRequest, respond: Respond
) -> None:
    ListOffsets(partitions, world.workers, context, request, respond).begin()


class _Lookup(NamedTuple):
    """A lookup by time, for a worker."""

    partition: Partition
    work: TimeLookup
    asked: ListOffsetsRequest.ListOffsetsPartition
    answer: ListOffsetsResponse.ListOffsetsPartitionResponse


_Found: TypeAlias = "tuple[int, int] | Exception | None"
"""Timestamp and offset, or one of `STORAGE_PROBLEMS`."""


class ListOffsets:
    """One request. Lookups by time are done by a worker, together: they read cold files and decompress batches.

    Meanwhile the connection is paused, as Kafka answers the requests of a connection one after the other.
    """

    __slots__ = ("_context", "_is_consumer", "_lookups", "_partitions", "_request", "_respond", "_response", "_workers")

    def __init__(
        self,
        partitions: Partitions,
        workers: Workers,
        context: RequestContext,
        request: ListOffsetsRequest,
        respond: Respond,
    ) -> None:
        self._partitions = partitions
        self._workers = workers
        self._context = context
        self._request = request
        self._respond = respond
        self._response = ListOffsetsResponse()
        self._is_consumer = request.replica_id == _CONSUMER
        self._lookups: list[_Lookup] = []

    def begin(self) -> None:
        topics = self._request.topics
        times_asked = Counter((topic.name, asked.partition_index) for topic in topics for asked in topic.partitions)
        for topic in topics:
            answers: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = []
            for asked in topic.partitions:
                if times_asked[topic.name, asked.partition_index] > 1:
                    answers.append(_Answer(partition_index=asked.partition_index, error_code=ErrorCode.INVALID_REQUEST))
                else:
                    answers.append(self._answer(topic.name, asked))
            self._response.topics.append(
                ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=answers)
            )
        if self._lookups:
            self._look_up()
        else:
            self._respond(self._response)

    def _answer(
        self, topic: str, asked: ListOffsetsRequest.ListOffsetsPartition
    ) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        version, timestamp = self._context.api_version, asked.timestamp
        answer = _Answer(partition_index=asked.partition_index)
        if timestamp < 0 and version < _FIRST_VERSION_OF.get(timestamp, version + 1):
            return self._fill(answer, ErrorCode.UNSUPPORTED_VERSION)
        partition = self._partitions.get((topic, asked.partition_index))
        if partition is None:
            return self._fill(answer, self._partitions.find_error(topic, asked.partition_index))
        error = partition.check_leader(asked.current_leader_epoch)
        if error:
            return self._fill(answer, error)
        if timestamp >= 0 or timestamp == MAX_TIMESTAMP:
            return self._start_lookup(partition, asked, answer)
        return self._fill(answer, *self._special(partition, timestamp))

    def _special(self, partition: Partition, timestamp: int) -> tuple[ErrorCode, TimestampAndOffset]:
        """What the log knows without looking into its files."""
        log = partition.log
        if timestamp == LATEST:
            if self._is_lagging(partition):
                return ErrorCode.OFFSET_NOT_AVAILABLE, _NOTHING
            end_offset = self._end_offset(partition)
            return ErrorCode.NONE, TimestampAndOffset(_NO_TIMESTAMP, end_offset, partition.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            start_offset = log.log_start_offset
            return ErrorCode.NONE, TimestampAndOffset(_NO_TIMESTAMP, start_offset, log.epochs.epoch_at(start_offset))
        return ErrorCode.NONE, _NOTHING

    def _end_offset(self, partition: Partition) -> int:
        if self._is_consumer:
            return partition.end_for_readers(self._request.isolation_level)
        return partition.log.log_end_offset

    def _is_lagging(self, partition: Partition) -> bool:
        """A new leader does not know yet how far its predecessor had got; offsets would seem to go back (KIP-207)."""
        assert partition.state is not None
        return self._is_consumer and partition.log.high_watermark < partition.state.epoch_start_offset

    def _fill(
        self,
        answer: ListOffsetsResponse.ListOffsetsPartitionResponse,
        error: ErrorCode,
        found: TimestampAndOffset = _NOTHING,
    ) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        version = self._context.api_version
        if error is ErrorCode.OFFSET_NOT_AVAILABLE and version < _KNOWS_OFFSET_NOT_AVAILABLE:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        answer.error_code, answer.timestamp, answer.offset = error, found.timestamp, found.offset
        answer.leader_epoch = found.leader_epoch if version >= _HAS_LEADER_EPOCH else NO_EPOCH
        return answer

    # By time

    def _start_lookup(
        self,
        partition: Partition,
        asked: ListOffsetsRequest.ListOffsetsPartition,
        answer: ListOffsetsResponse.ListOffsetsPartitionResponse,
    ) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        if partition.is_changing_log:  # Which waits until no worker is at the log. The client asks again.
            return self._fill(answer, ErrorCode.OFFSET_NOT_AVAILABLE)
        timestamp = None if asked.timestamp == MAX_TIMESTAMP else asked.timestamp
        partition.begin_job()
        self._lookups.append(_Lookup(partition, partition.log.start_time_lookup(timestamp), asked, answer))
        return answer

    def _look_up(self) -> None:
        client = self._context.connection
        client.pause()
        self._workers.run(
            self._find_all, self._on_found, self._on_fault, key=("time lookups", client.connection_id % _LANES)
        )

    def _find_all(self) -> list[_Found]:
        """On a worker."""
        return [_find(lookup.work) for lookup in self._lookups]

    def _on_found(self, found: list[_Found]) -> None:
        self._end_lookups()
        for lookup, one in zip(self._lookups, found, strict=True):
            self._fill(lookup.answer, *self._outcome(lookup, one))
        self._respond(self._response)
        self._context.connection.resume()

    def _on_fault(self, problem: Exception) -> None:
        self._end_lookups()
        raise problem

    def _end_lookups(self) -> None:
        for lookup in self._lookups:
            lookup.work.end()
            lookup.partition.end_job()

    def _outcome(self, lookup: _Lookup, found: _Found) -> tuple[ErrorCode, TimestampAndOffset]:
        """Much may have happened meanwhile: the answer is as of now."""
        partition = lookup.partition
        if not self._partitions.holds(partition):
            return self._partitions.find_error(*partition.name), _NOTHING
        error = partition.check_leader(lookup.asked.current_leader_epoch)
        if error:
            return error, _NOTHING
        if isinstance(found, Exception):
            return self._partitions.on_storage_problem(partition, found), _NOTHING
        record = partition.log.with_epoch(found)
        if record is not None and record.offset < self._end_offset(partition):
            return ErrorCode.NONE, record
        return (ErrorCode.OFFSET_NOT_AVAILABLE if self._is_lagging(partition) else ErrorCode.NONE), _NOTHING


def _find(lookup: TimeLookup) -> _Found:
    try:
        return lookup.run()
    except STORAGE_PROBLEMS as problem:
        return problem
