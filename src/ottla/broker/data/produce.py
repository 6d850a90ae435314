"""Produce, versions 3 to 13: appending a client's batches to the logs that this node leads.

Each partition's batch is checked, appended and answered for on its own. The reply leaves at once, unless a partition
has to wait for followers (acks=all) or for the disk (`flush.messages`). With acks=0 there is no reply, and an error can
only be told by hanging up. A request with a transactional id first asks the transaction's coordinator, if it is the
first of the transaction at a partition (`transactional_produce`).
"""

from typing import Any, NamedTuple

from ottla.base.lent import Seen
from ottla.broker.data.batch_checks import (
    Outcomes,
    Refusal,
    check,
    check_ahead,
    codec_of,
    drop_records,
    may_take_long,
)
from ottla.broker.data.leader_hints import current_leader, node_endpoints
from ottla.broker.data.ordinary_batch import USES_TOPIC_IDS, OrdinaryBatch, append_ordinary, find_ordinary
from ottla.broker.data.produce_replies import NO_HINT, taken_reply, topic_response
from ottla.broker.data.repeated_produce import learn
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import announce, append
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.broker.transactions.transaction_verification import Verifications
from ottla.broker.transactions.transactional_produce import TransactionalBatches
from ottla.log.outcomes import Appended
from ottla.machines.metadata.topic_names import INTERNAL
from ottla.records.header import BatchHeader, Compression
from ottla.records.validate import Validated
from ottla.runtime.request import Handler, RefusedRequest, RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest, ProduceResponse

_HAS_LEADER_HINTS = 10
_KNOWS_ZSTD = 7
_ALL, _NONE, _LEADER = -1, 0, 1
# Only a client with this id may write to internal topics, as in Kafka: it repairs.
_ADMIN_CLIENT = "__admin_client"

_PartitionResponse = ProduceResponse.PartitionProduceResponse

_NOT_CHECKED: Outcomes = {}

# With these, Kafka does not say where the log begins.
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


def _records(data: ProduceRequest.PartitionProduceData) -> Seen:
    return data.records or b""


class _Awaited(NamedTuple):
    """A batch that is acknowledged when all before `offset` is safe."""

    offset: int
    answer: ProduceResponse.PartitionProduceResponse


def handle_produce(
    partitions: Partitions,
    verifications: Verifications,
    client_quotas: ClientQuotas,
    context: RequestContext,
    request: ProduceRequest,
    respond: Respond,
) -> None:
    ordinary = find_ordinary(partitions, context.api_version, request)
    if ordinary is not None:
        may_learn = not client_quotas.counts_produce(context)
        _take_ordinary(partitions, context, request, respond, ordinary, may_learn=may_learn)
        return
    produce = Produce(partitions, context, request, respond, verifications)
    if may_take_long(request):
        check_ahead(
            partitions,
            context.connection,
            request,
            produce.name_of,
            lambda found: produce.start(request, found),
        )
    else:
        produce.start(request)


def _take_ordinary(
    partitions: Partitions,
    context: RequestContext,
    request: ProduceRequest,
    respond: Respond,
    ordinary: OrdinaryBatch,
    *,
    may_learn: bool,
) -> None:
    """Appends the batch. If all goes as it mostly does the reply is made here, and otherwise by a `Produce`."""
    partition, records, header = ordinary
    outcome = append_ordinary(partitions, partition, records, header)
    if isinstance(outcome, Appended):
        go_on(partitions, partition, header, outcome)(context, request, respond)
        return
    if request.acks == _NONE:
        respond(None)
    else:
        respond(taken_reply(request, context.api_version, outcome, partition.log.log_start_offset))
        if may_learn:
            learn(partitions, context, request, partition, go_on)
    announce(partitions, partition)


def go_on(partitions: Partitions, partition: Partition, header: BatchHeader, appended: Appended) -> Handler:
    """What answers a request whose only batch has been handed to its log, if that is not the end of it."""

    def handle(context: RequestContext, request: Any, respond: Respond) -> None:
        Produce(partitions, context, request, respond).go_on(request, partition, Validated(header), appended)

    return handle


class Produce(Operation):
    """One request, from its batches to its reply. `_awaited`: what acknowledged partitions still have to reach."""

    __slots__ = (
        "_acks",
        "_awaited",
        "_checked",
        "_context",
        "_grown",
        "_has_error",
        "_partitions",
        "_respond",
        "_response",
        "_timeout_ms",
        "_transactional",
        "_verifications",
    )

    def __init__(
        self,
        partitions: Partitions,
        context: RequestContext,
        request: ProduceRequest,
        respond: Respond,
        verifications: Verifications | None = None,
    ) -> None:
        super().__init__(context.connection)
        self._partitions = partitions
        self._verifications = verifications
        self._context = context
        self._respond = respond
        self._acks = request.acks
        self._timeout_ms = request.timeout_ms
        self._transactional: TransactionalBatches | None = None
        self._response = ProduceResponse()
        self._awaited: dict[Partition, list[_Awaited]] = {}
        self._grown: list[Partition] = []
        self._has_error = False
        self._checked = _NOT_CHECKED

    def name_of(self, topic: ProduceRequest.TopicProduceData) -> str | None:
        if self._context.api_version >= USES_TOPIC_IDS:
            return self._partitions.metadata.topic_name(topic.topic_id)
        return topic.name

    def start(self, request: ProduceRequest, checked: Outcomes = _NOT_CHECKED) -> None:
        """Appends the batches, of which some may have been checked ahead."""
        self._checked = checked
        if request.transactional_id is None:
            self._begin(request)
        else:
            assert self._verifications is not None, "an ordinary batch has no transaction"
            self._transactional = TransactionalBatches(
                self._partitions, self._verifications, request.transactional_id, self._context.api_version
            )
            self._transactional.ask(self.client, request, lambda: self._begin(request))

    def go_on(self, request: ProduceRequest, partition: Partition, validated: Validated, appended: Appended) -> None:
        """The request's only batch has been handed to its log, and this became of it."""
        answer = self._answer(partition, validated, appended, -1)
        self._response.responses.append(topic_response(request.topic_data[0], self._context.api_version, [answer]))
        self._finish(request)

    def _begin(self, request: ProduceRequest) -> None:
        for topic in request.topic_data:
            name = self.name_of(topic)
            answers = [self._produce(name, one) for one in topic.partition_data]
            self._response.responses.append(topic_response(topic, self._context.api_version, answers))
        self._finish(request)

    def _finish(self, request: ProduceRequest) -> None:
        """Every batch has been appended or refused."""
        for partition in list(self._awaited):
            self.is_done(partition)  # A disk that failed for a later partition may have taken an earlier one with it.
        if self._awaited:
            self._checked = _NOT_CHECKED
            drop_records(request)
            self._partitions.purgatory.park(self, list(self._awaited), self._timeout_ms)
        else:
            self._reply()
        for partition in self._grown:
            announce(self._partitions, partition)
        if self._acks == _NONE and self._has_error:
            self.client.hang_up(
                RefusedRequest("a produce request with acks=0 failed: nothing else can tell its client")
            )

    # One partition

    def _produce(
        self, topic: str | None, data: ProduceRequest.PartitionProduceData
    ) -> ProduceResponse.PartitionProduceResponse:
        index = data.index
        if topic is None:
            return self._refuse(index, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._partitions.get((topic, index))
        if partition is None or partition.state is None:
            return self._refuse_partition(topic, index, partition)
        partition.traffic.produce_requests += 1
        if not _ALL <= self._acks <= _LEADER:
            return self._refuse(index, ErrorCode.INVALID_REQUIRED_ACKS)
        if topic in INTERNAL and self._context.client_id != _ADMIN_CLIENT:
            return self._refuse(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        settings = partition.settings
        if self._acks == _ALL and not partition.state.has_enough_replicas:
            return self._refuse(index, ErrorCode.NOT_ENOUGH_REPLICAS, log_start_offset=partition.log.log_start_offset)
        # A client that sends zstd in a version from before zstd (KIP-110) does not know what it sends.
        if self._context.api_version < _KNOWS_ZSTD and codec_of(_records(data)) == Compression.ZSTD:
            return self._refuse(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        now_ms = self._partitions.clock.now_ms()
        validated = self._checked.get(id(data)) if self._checked else None
        if validated is None:
            validated = check(_records(data), settings.rules, now_ms)
        if isinstance(validated, Refusal):
            return self._refuse_batch(partition, validated)
        if validated.header.is_transactional:
            error = self._check_transaction(partition, validated.header)
            if error:
                return self._refuse(index, error)
        # What was checked may have waited since, and be a copy by now: the bytes are those that the request has today.
        appended = append(self._partitions, partition, validated.to_append(_records(data)), header=validated.header)
        # The time of the check, which is the one in the batch, and not that of now.
        append_time_ms = validated.header.max_timestamp if settings.stamps_records else -1
        return self._answer(partition, validated, appended, append_time_ms)

    def _check_transaction(self, partition: Partition, header: BatchHeader) -> ErrorCode:
        if self._transactional is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return self._transactional.check(partition, header)

    def _answer(
        self, partition: Partition, validated: Validated, appended: Appended, log_append_time_ms: int
    ) -> ProduceResponse.PartitionProduceResponse:
        log = partition.log
        header = validated.header
        if appended.error:
            return self._refuse_append(partition, appended.error)
        if appended.repeated:
            log_append_time_ms = self._first_timestamp(partition, header)
        else:
            traffic = partition.traffic
            traffic.bytes_in += header.batch_length
            traffic.messages_in += header.record_count
            traffic.produce_conversions += validated.converted
            self._grown.append(partition)
        answer = _PartitionResponse(
            index=partition.name.partition,
            base_offset=appended.base_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=log.log_start_offset,
            record_errors=[],
            current_leader=NO_HINT,
        )
        required_offset = appended.last_offset + 1
        if (
            partition.log.high_watermark < required_offset
            and self._acks
            and (self._acks == _ALL or partition.awaits_flush)
        ):
            self._awaited.setdefault(partition, []).append(_Awaited(required_offset, answer))
        return answer

    @staticmethod
    def _first_timestamp(partition: Partition, header: BatchHeader) -> int:
        """A repetition is told the time of its first appearance."""
        producer = partition.log.producers.get(header.producer_id)
        noted = producer.repetition_of(header) if producer else None
        return noted.timestamp if noted else -1

    # Refusing

    def _refuse(
        self, index: int, error: ErrorCode, message: str | None = None, log_start_offset: int = -1
    ) -> ProduceResponse.PartitionProduceResponse:
        self._has_error = True
        return _PartitionResponse(
            index=index, error_code=error, base_offset=-1, log_start_offset=log_start_offset, error_message=message
        )

    def _refuse_partition(
        self, topic: str, index: int, partition: Partition | None
    ) -> ProduceResponse.PartitionProduceResponse:
        if partition is not None:
            return self._refuse(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self._refuse(index, self._partitions.find_error(topic, index))

    def _refuse_batch(self, partition: Partition, refusal: Refusal) -> ProduceResponse.PartitionProduceResponse:
        index, error, message = partition.name.partition, refusal.error, refusal.message
        partition.traffic.failed_produce_requests += 1
        if error in _WITHOUT_LOG_START:
            return self._refuse(index, error, message)
        answer = self._refuse(index, error, message, partition.log.log_start_offset)
        answer.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in refusal.record_errors
        ]
        return answer

    def _refuse_append(self, partition: Partition, error: ErrorCode) -> ProduceResponse.PartitionProduceResponse:
        partition.traffic.failed_produce_requests += 1
        log_start_offset = -1 if error in _WITHOUT_LOG_START else partition.log.log_start_offset
        return self._refuse(partition.name.partition, error, log_start_offset=log_start_offset)

    # Waiting and replying

    def is_done(self, place: Place) -> bool:
        assert isinstance(place, Partition)
        if place in self._awaited and self._settle(place):
            del self._awaited[place]
        return not self._awaited

    def _settle(self, partition: Partition, unreached: ErrorCode | None = None) -> bool:
        """Gives the partition's answers their outcome; False if there is none yet."""
        awaited = self._awaited[partition]
        error = self._outcome(partition, awaited[-1].offset)
        error = unreached if error is None else error
        if error:
            self._has_error = True
            for _, answer in awaited:
                answer.error_code = error
        return error is not None

    def _outcome(self, partition: Partition, required_offset: int) -> ErrorCode | None:
        if not self._partitions.holds(partition):
            return self._partitions.find_error(*partition.name)
        if partition.state is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self._acks == _ALL:
            return partition.state.acknowledgement(required_offset)
        return ErrorCode.NONE if partition.local_end_offset >= required_offset else None

    def complete(self) -> None:
        """What has not been reached by now was appended, and may or may not last: the client is to ask again."""
        for partition in self._awaited:
            self._settle(partition, ErrorCode.REQUEST_TIMED_OUT)
        self._reply()

    def _reply(self) -> None:
        if self._acks == _NONE:
            self._respond(None)
            return
        if self._has_error and self._context.api_version >= _HAS_LEADER_HINTS:
            self._add_hints()
        self._respond(self._response)

    def _add_hints(self) -> None:
        partitions, leaders = self._partitions, set[int]()
        for topic in self._response.responses:
            name = topic.name or partitions.metadata.topic_name(topic.topic_id)
            for answer in topic.partition_responses:
                if name is not None and answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    leader, epoch = current_leader(partitions, name, answer.index)
                    answer.current_leader = ProduceResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                    leaders.add(leader)
        if leaders:
            self._response.node_endpoints = node_endpoints(
                partitions, leaders, self._context.connection.listener, ProduceResponse.NodeEndpoint
            )
