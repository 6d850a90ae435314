"""TxnOffsetCommit, versions 0 to 5: offsets of a group that count when a producer's transaction is committed (KIP-447).

To the transaction the group's partition of `__consumer_offsets` is one more partition. Up to version 4 the producer has
announced it to its coordinator (AddOffsetsToTxn), which is looked up; from version 5 on it is announced here (KIP-890).
"""

from ottla.base.ids import TopicPartition
from ottla.broker.coordination.coordinators import Groups
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.transactions.coordinator_questions import Producer
from ottla.broker.transactions.transaction_verification import Guard, Verifications
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_ADDS_PARTITIONS = 5
_KNOWS_ABORTABLE = 4
_KNOWS_LOADING = 2

_Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
_Partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
_AnsweredTopic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_AnsweredPartition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def handle_txn_offset_commit(
    groups: Groups,
    partitions: Partitions,
    verifications: Verifications,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    respond: Respond,
) -> None:
    _Commit(groups, partitions, verifications, context.api_version, request, respond).begin()


class _Commit:
    """One request. `_refused` are partitions that the cluster does not have; the rest is committed together."""

    def __init__(
        self,
        groups: Groups,
        partitions: Partitions,
        verifications: Verifications,
        version: int,
        request: TxnOffsetCommitRequest,
        respond: Respond,
    ) -> None:
        self._groups = groups
        self._partitions = partitions
        self._verifications = verifications
        self._version = version
        self._request = request
        self._respond = respond
        self._refused: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = []
        self._guard: Guard | None = None

    def begin(self) -> None:
        request, groups, verifications = self._request, self._groups, self._verifications
        request.topics = [known for topic in request.topics if (known := self._known(topic)).partitions]
        if not request.topics:
            self._reply(TxnOffsetCommitResponse())
            return
        if not request.group_id:
            self._fail(ErrorCode.INVALID_GROUP_ID)
            return
        name = TopicPartition(groups.topic_name, groups.partition_for(request.group_id))
        partition = self._partitions.get(name)
        adds = self._version >= _ADDS_PARTITIONS
        is_checked = adds or verifications.is_enabled
        if partition is None or partition.state is None or not is_checked:
            self._commit()
            return
        begun = verifications.begin(partition, request.producer_id, request.producer_epoch)
        if not isinstance(begun, Guard):
            self._fail(begun) if begun else self._commit()
            return
        self._guard = begun
        producer = Producer(request.transactional_id, request.producer_id, request.producer_epoch)
        if adds:
            verifications.questions.add(producer, [name], self._on_answer, self._renew_guard)
        else:
            verifications.questions.verify(producer, [name], self._on_answer)

    def _known(self, topic: _Topic) -> _Topic:
        """What of a topic the cluster has; the rest is refused."""
        there: list[_Partition] = []
        missing: list[_Partition] = []
        for partition in topic.partitions:
            is_there = self._partitions.metadata.knows(topic.name, partition.partition_index)
            (there if is_there else missing).append(partition)
        if missing:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._refused.append(_answered(_Topic(name=topic.name, partitions=missing), error))
        return _Topic(name=topic.name, partitions=there)

    def _renew_guard(self) -> None:
        assert self._guard is not None
        self._guard = self._verifications.renewed(self._guard)

    def _on_answer(self, errors: dict[TopicPartition, ErrorCode]) -> None:
        guard = self._guard
        assert guard is not None
        self._verifications.release(guard)
        if errors:
            (error,) = errors.values()
            self._fail(self._as_answered(error))
        elif guard.refusal:
            is_moved = guard.refusal is ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._fail(ErrorCode.NOT_COORDINATOR if is_moved else guard.refusal)
        else:
            self._commit()

    def _as_answered(self, error: ErrorCode) -> ErrorCode:
        if error is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if error is ErrorCode.TRANSACTION_ABORTABLE and self._version < _KNOWS_ABORTABLE:
            return ErrorCode.INVALID_TXN_STATE
        return error

    def _commit(self) -> None:
        request = self._request
        self._groups.submit(
            request.group_id,
            lambda machine, now_ms: machine.commit_offsets_in_transaction(request, now_ms, api_version=self._version),
            lambda outcome: self._fail(outcome) if isinstance(outcome, ErrorCode) else self._reply(outcome),
            self._fail,
            only_reads=True,
        )

    def _fail(self, error: ErrorCode) -> None:
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self._version < _KNOWS_LOADING:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE  # Older producers break on the other.
        self._reply(TxnOffsetCommitResponse(topics=[_answered(topic, error) for topic in self._request.topics]))

    def _reply(self, response: TxnOffsetCommitResponse) -> None:
        topics = {topic.name: topic for topic in self._refused}
        for topic in response.topics:
            known = topics.setdefault(topic.name, topic)
            if known is not topic:
                known.partitions += topic.partitions
        self._respond(TxnOffsetCommitResponse(topics=list(topics.values())))


def _answered(topic: _Topic, error: ErrorCode) -> TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic:
    return _AnsweredTopic(
        name=topic.name,
        partitions=[
            _AnsweredPartition(partition_index=one.partition_index, error_code=error) for one in topic.partitions
        ],
    )
