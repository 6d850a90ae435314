"""DeleteRecords, versions 0 to 2: everything before an offset goes (KIP-107).

The records are gone for readers at once; files follow with the next round of retention. Where there are followers the
reply waits until they have deleted too; what it says is the smallest log start offset among the replicas.
"""

from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.log.errors import OffsetOutOfRange
from ottla.machines.metadata.topic_names import INTERNAL
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse

_TO_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1

_Answer = DeleteRecordsResponse.DeleteRecordsPartitionResult


def handle_delete_records(
    partitions: Partitions, context: RequestContext, request: DeleteRecordsRequest, respond: Respond
) -> None:
    DeleteRecords(partitions, context, respond).begin(request)


class DeleteRecords(Operation):
    """One request. `_awaited` is what followers have yet to delete, for each partition."""

    __slots__ = ("_awaited", "_partitions", "_respond", "_response")

    def __init__(self, partitions: Partitions, context: RequestContext, respond: Respond) -> None:
        super().__init__(context.connection)
        self._partitions = partitions
        self._respond = respond
        self._response = DeleteRecordsResponse()
        self._awaited: dict[Partition, tuple[int, DeleteRecordsResponse.DeleteRecordsPartitionResult]] = {}

    def begin(self, request: DeleteRecordsRequest) -> None:
        for topic in request.topics:
            answers = [self._delete(topic.name, asked.partition_index, asked.offset) for asked in topic.partitions]
            self._response.topics.append(
                DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=answers)
            )
        if self._awaited:
            self._partitions.purgatory.park(self, list(self._awaited), request.timeout_ms)
        else:
            self._respond(self._response)

    def _delete(self, topic: str, index: int, offset: int) -> DeleteRecordsResponse.DeleteRecordsPartitionResult:
        partition = self._partitions.get((topic, index))
        error = self._refusal(topic, index, partition)
        if partition is None or error:
            return _Answer(partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error)
        if offset == _TO_HIGH_WATERMARK:
            offset = partition.log.high_watermark
        try:
            if offset < 0:
                raise OffsetOutOfRange(offset, partition.log.log_start_offset, partition.log.high_watermark)
            partition.log.advance_log_start_offset(offset)
        except OffsetOutOfRange:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
            return _Answer(partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error)
        self._partitions.has_news_for_checkpoints = True
        answer = _Answer(partition_index=index, low_watermark=_low_watermark(partition))
        if answer.low_watermark < offset:
            self._awaited[partition] = offset, answer
        return answer

    def _refusal(self, topic: str, index: int, partition: Partition | None) -> ErrorCode:
        if partition is None:
            return self._partitions.find_error(topic, index)
        if topic in INTERNAL:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if partition.state is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE if partition.settings.log.deletes_old else ErrorCode.POLICY_VIOLATION

    def is_done(self, place: Place) -> bool:
        assert isinstance(place, Partition)
        if place in self._awaited:
            offset, answer = self._awaited[place]
            if place.state is None:
                answer.error_code, answer.low_watermark = ErrorCode.NOT_LEADER_OR_FOLLOWER, _NO_LOW_WATERMARK
            else:
                answer.low_watermark = _low_watermark(place)
            if answer.error_code or answer.low_watermark >= offset:
                del self._awaited[place]
        return not self._awaited

    def complete(self) -> None:
        for partition in list(self._awaited):
            self.is_done(partition)
        for _, answer in self._awaited.values():
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._respond(self._response)


def _low_watermark(partition: Partition) -> int:
    """The smallest log start offset among the replicas in sync."""
    assert partition.state is not None
    others = partition.state.low_watermark
    own = partition.log.log_start_offset
    return own if others is None else min(own, others)
