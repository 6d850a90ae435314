"""Produce, versions 3 to 13: appending a client's batches to the logs that this node leads.

All batches of a request are looked at before the first is appended (`batch_checks`): one that takes long is checked by
a worker, and a request with a transactional id may have to ask the transaction's coordinator, if it is the first of the
transaction at a partition (`transactional_produce`). Then each partition's batch is appended and answered for on its
own. The reply leaves at once, unless a partition has to wait for followers (acks=all) or for the disk
(`flush.messages`). With acks=0 there is no reply, and an error can only be reported by hanging up.
"""

from typing import NamedTuple

from ottla.base.ports import Clock
from ottla.broker.data.batch_checks import Outcome, Outcomes, Refusal, check, check_ahead, codec_of, drop_records
from ottla.broker.data.leader_hints import current_leader, node_endpoints
from ottla.broker.data.plain_produce import append_all_plain
from ottla.broker.data.produce_replies import USES_TOPIC_IDS, response_of, taken, topic_response
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import announce, append, on_failed
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.broker.transactions.transaction_verification import Verifications
from ottla.broker.transactions.transactional_produce import TransactionalBatches
from ottla.log.outcomes import Appended
from ottla.machines.metadata.topic_names import INTERNAL
from ottla.records.header import BatchHeader, Compression
from ottla.records.validate import Validated
from ottla.runtime.request import RefusedRequest, RequestContext, Respond
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest, ProduceResponse

_HAS_LEADER_HINTS = 10
_KNOWS_ZSTD = 7
_ALL, _NONE, _LEADER = -1, 0, 1
# Only a client with this id may write to internal topics, as in Kafka: it repairs.
_ADMIN_CLIENT = "__admin_client"

_PartitionResponse = ProduceResponse.PartitionProduceResponse

# With these, Kafka does not say where the log begins.
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class _Awaited(NamedTuple):
    """A batch that is acknowledged when all before `offset` is safe."""

    offset: int
    answer: ProduceResponse.PartitionProduceResponse


def handle_produce(
    partitions: Partitions,
    world: World,
    verifications: Verifications,
    context: RequestContext,
    request: ProduceRequest,
    respond: Respond,
) -> None:
    grown: list[Partition] = []
    given = partitions, world.clock, verifications, context, request, respond, grown
    if request.transactional_id is None:
        acks, by_id = request.acks, context.api_version >= USES_TOPIC_IDS
        now_ms = world.clock.now_ms()
        plain = append_all_plain(partitions, request.topic_data, acks, by_id, now_ms, grown, Produce, given)
        if plain is not None:
            if grown:  # What was refused, or came again, is no news.
                partitions.has_news_for_checkpoints = True
            topics, produce = plain
            if produce is not None:
                produce.finish(topics)
                return
            respond(response_of(topics) if acks else None)
            for partition in grown:
                announce(partitions, partition)
            return
    produce = Produce(*given)
    check_ahead(partitions, world, context.connection, request, produce.name_of, produce.start)


class Produce(Operation):
    """One request, from its batches to its reply. `_awaited`: what acknowledged partitions still have to reach.

    `_grown`: partitions that have something to announce when the request has its reply, or waits for it.
    """

    __slots__ = (
        "_acks",
        "_awaited",
        "_clock",
        "_context",
        "_grown",
        "_has_error",
        "_partitions",
        "_request",
        "_respond",
        "_response",
        "_transactional",
        "_verifications",
    )

    _response: ProduceResponse

    def __init__(
        self,
        partitions: Partitions,
        clock: Clock,
        verifications: Verifications,
        context: RequestContext,
        request: ProduceRequest,
        respond: Respond,
        grown: list[Partition],
    ) -> None:
        super().__init__(context.connection)
        self._partitions = partitions
        self._clock = clock
        self._verifications = verifications
        self._context = context
        self._request = request
        self._respond = respond
        self._acks = request.acks
        self._transactional: TransactionalBatches | None = None
        self._awaited: dict[Partition, list[_Awaited]] = {}
        self._grown = grown
        self._has_error = False

    def start(self, checked: Outcomes) -> None:
        """Appends the batches, of which some have been checked by now."""
        transactional_id = self._request.transactional_id
        if transactional_id is None:
            self._append_all(checked)
        else:
            self._transactional = TransactionalBatches(
                self._partitions, self._verifications, transactional_id, self._context.api_version
            )
            self._transactional.ask(self.client, self._request, lambda: self._append_all(checked))

    def name_of(self, topic: ProduceRequest.TopicProduceData) -> str | None:
        if self._context.api_version >= USES_TOPIC_IDS:
            return self._partitions.metadata.topic_name(topic.topic_id)
        return topic.name

    def _append_all(self, checked: Outcomes) -> None:
        topics: list[ProduceResponse.TopicProduceResponse] = []
        for topic in self._request.topic_data:
            name = self.name_of(topic)
            answers = [self._produce(name, data, checked.get(id(data))) for data in topic.partition_data]
            topics.append(topic_response(topic, self._context.api_version, answers))
        self.finish(topics)

    def finish(self, topics: list[ProduceResponse.TopicProduceResponse]) -> None:
        """Every batch has been appended or refused."""
        self._response = response_of(topics)
        if self._awaited and not self._is_settled():
            drop_records(self._request)
            self._partitions.purgatory.park(self, list(self._awaited), self._request.timeout_ms)
        else:
            self._reply()
        for partition in self._grown:
            announce(self._partitions, partition)
        if self._has_error and self._acks == _NONE:
            self.client.hang_up(
                RefusedRequest("a produce request with acks=0 failed: nothing else can tell its client")
            )

    def _is_settled(self) -> bool:
        """A disk that failed for a later partition may have taken an earlier one with it."""
        for partition in list(self._awaited):
            self.is_done(partition)
        return not self._awaited

    # One partition

    def _produce(
        self, topic: str | None, data: ProduceRequest.PartitionProduceData, checked: Outcome | None
    ) -> ProduceResponse.PartitionProduceResponse:
        index = data.index
        if topic is None:
            return self._refuse(index, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._partitions.get((topic, index))
        if partition is None or partition.state is None:
            return self._refuse_partition(topic, index, partition)
        if not _ALL <= self._acks <= _LEADER:
            partition.traffic.produce_requests += 1
            return self._refuse(index, ErrorCode.INVALID_REQUIRED_ACKS)
        if topic in INTERNAL and self._context.client_id != _ADMIN_CLIENT:
            partition.traffic.produce_requests += 1
            return self._refuse(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        return self.append(partition, data, checked)

    def append(
        self, partition: Partition, data: ProduceRequest.PartitionProduceData, checked: Outcome | None = None
    ) -> ProduceResponse.PartitionProduceResponse:
        """Appends a batch, which is looked at now if that was not done before."""
        index, settings, state, records = data.index, partition.settings, partition.state, data.records or b""
        partition.traffic.produce_requests += 1
        if state is None:
            return self._refuse_partition(partition.name.topic, index, partition)
        if self._acks == _ALL and not state.has_enough_replicas:
            return self._refuse(index, ErrorCode.NOT_ENOUGH_REPLICAS, log_start_offset=partition.log.log_start_offset)
        # A client that sends zstd in a version from before zstd (KIP-110) does not know what it sends.
        if self._context.api_version < _KNOWS_ZSTD and codec_of(records) == Compression.ZSTD:
            return self._refuse(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if checked is None:
            checked = check(records, settings.rules, self._clock.now_ms())
        if isinstance(checked, Refusal):
            return self._refuse_batch(partition, checked)
        header = checked.header
        if header.is_transactional and (error := self._check_transaction(partition, header)):
            return self._refuse(index, error)
        # What was checked may have waited since, and be a copy by now: the bytes are those that the request has today.
        appended = append(self._partitions, partition, checked.to_append(records), header=header)
        # The time of the check, which is the one in the batch, and not that of now.
        append_time_ms = header.max_timestamp if settings.stamps_records else -1
        return self._answer(partition, checked, appended, append_time_ms)

    def _check_transaction(self, partition: Partition, header: BatchHeader) -> ErrorCode:
        if self._transactional is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return self._transactional.check(partition, header)

    def _answer(
        self, partition: Partition, validated: Validated, appended: Appended, log_append_time_ms: int
    ) -> ProduceResponse.PartitionProduceResponse:
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
        answer = taken(partition, appended.base_offset)
        answer.log_append_time_ms = log_append_time_ms
        required_offset = appended.last_offset + 1
        if self._acks and partition.log.high_watermark < required_offset:
            self.maybe_await(partition, required_offset, answer)
        return answer

    def maybe_await(
        self, partition: Partition, required_offset: int, answer: ProduceResponse.PartitionProduceResponse
    ) -> None:
        """A batch was appended that ends before an offset which the high watermark has not reached."""
        if self._acks == _ALL or partition.awaits_flush:
            self._awaited.setdefault(partition, []).append(_Awaited(required_offset, answer))

    @staticmethod
    def _first_timestamp(partition: Partition, header: BatchHeader) -> int:
        """A repetition gets the time of its first appearance."""
        producer = partition.log.producers.get(header.producer_id)
        noted = producer.repetition_of(header) if producer else None
        return noted.timestamp if noted else -1

    # Refusing

    def on_failed(self, partition: Partition, problem: Exception) -> ProduceResponse.PartitionProduceResponse:
        """An append has raised that."""
        partition.traffic.produce_requests += 1
        return self._refuse_append(partition, on_failed(self._partitions, partition, problem).error)

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
