"""Fetch, versions 4 to 18: reading records, at once or when there are some.

Left out: fetching from a chosen replica (KIP-392) and from tiered storage. `preferred_read_replica` is always -1.

A request reads its partitions in order until `max_bytes` are used up; the first batch of the first partition that has
one comes whole, however large (KIP-74). If there is less than `min_bytes`, no partition has an error and time is left,
the request waits at all of its partitions, and each append there makes it look at that partition again. What it replies
is read anew at the end.
"""

from ottla.base.ids import ZERO_UUID
from ottla.broker.context import Broker
from ottla.broker.fetch_sessions import FetchContext, PartitionKey, Wanted, wanted_partitions
from ottla.broker.leader_hints import current_leader, node_endpoints
from ottla.broker.partition import Partition
from ottla.broker.purgatory import Operation, Place
from ottla.log.errors import OffsetOutOfRange
from ottla.log.outcomes import FileSlice
from ottla.records.header import Compression
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest, FetchResponse

_USES_TOPIC_IDS = 13
_HAS_REPLICA_STATE = 15
_HAS_LEADER_HINTS = 16
_KNOWS_STORAGE_ERRORS = 6
_KNOWS_ZSTD = 10

_PartitionData = FetchResponse.PartitionData
_NOTHING_DIVERGES = FetchResponse.EpochEndOffset()
_NO_HINT = FetchResponse.LeaderIdAndEpoch()
_NO_SNAPSHOT = FetchResponse.SnapshotId()
_NO_BYTES = b""

_LEADER_IS_ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
# What the metadata does not know may be known soon: these do not end the wait of the other partitions.
_WAITS_WITH = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


def handle_fetch(broker: Broker, context: RequestContext, request: FetchRequest, respond: Respond) -> None:
    by_id = context.api_version >= _USES_TOPIC_IDS
    names = {topic.topic_id: broker.topic_name(topic.topic_id) for topic in request.topics} if by_id else {}
    wanted = wanted_partitions(request, by_id, names)
    session = broker.fetch_sessions.begin(request, wanted, by_id=by_id, now_ms=broker.clock.now_ms())
    if session.error:
        respond(FetchResponse(error_code=session.error))
        return
    Fetch(broker, context, request, session, respond).begin()


class Fetch(Operation):
    """One request, from the first look at the logs to the reply."""

    __slots__ = (
        "_available",
        "_broker",
        "_by_id",
        "_context",
        "_ends_wait",
        "_isolation_level",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_places",
        "_replica_id",
        "_respond",
        "_session",
        "_size",
        "_wanted",
    )

    def __init__(
        self, broker: Broker, context: RequestContext, request: FetchRequest, session: FetchContext, respond: Respond
    ) -> None:
        super().__init__(context.connection)
        version = context.api_version
        self._broker = broker
        self._context = context
        self._session = session
        self._respond = respond
        self._by_id = version >= _USES_TOPIC_IDS
        self._replica_id = request.replica_id if version < _HAS_REPLICA_STATE else request.replica_state.replica_id
        self._isolation_level = request.isolation_level
        self._max_bytes = min(request.max_bytes, broker.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._max_wait_ms = request.max_wait_ms
        self._wanted = list(session.partitions.items())
        self._size = 0
        self._ends_wait = False
        self._places: dict[Partition, Wanted] = {}
        self._available: dict[Partition, int] = {}

    def begin(self) -> None:
        read = self._read_all()
        if self._max_wait_ms <= 0 or self._size >= self._min_bytes or self._ends_wait:
            self._reply(read)
            return
        self._park(read)

    # Waiting

    def _park(self, read: list[tuple[PartitionKey, FetchResponse.PartitionData]]) -> None:
        partitions = self._broker.partitions
        for (_, wanted), (_, data) in zip(self._wanted, read, strict=True):
            place = partitions.get((wanted.topic, wanted.index))  # type: ignore[arg-type]
            if place is not None:
                self._places[place] = wanted
                self._available[place] = len(data.records)  # type: ignore[arg-type]
        if self._places:
            self._broker.purgatory.hold(self, list(self._places), self._max_wait_ms)
        else:
            self._reply(read)

    def is_done(self, place: Place) -> bool:
        assert isinstance(place, Partition)
        wanted = self._places[place]
        if place.check_leader(wanted.current_leader_epoch):
            return True
        end_offset = self._end_of(place)
        if end_offset == wanted.offset:
            return False
        if end_offset < wanted.offset or self._min_bytes <= 1:
            return True
        if wanted.offset < place.log.log_start_offset:
            return True
        self._available[place] = place.log.read(wanted.offset, wanted.max_bytes, end_offset).size
        return sum(self._available.values()) >= self._min_bytes

    def complete(self) -> None:
        self._reply(self._read_all())

    # Reading

    def _end_of(self, partition: Partition) -> int:
        if self._replica_id >= 0:
            return partition.log.log_end_offset
        return partition.end_for_readers(self._isolation_level)

    def _read_all(self) -> list[tuple[PartitionKey, FetchResponse.PartitionData]]:
        left, total = self._max_bytes, 0
        min_one_batch = True
        read: list[tuple[PartitionKey, FetchResponse.PartitionData]] = []
        for key, wanted in self._wanted:
            data = self._read(wanted, left, min_one_batch)
            if data.error_code:
                if data.error_code not in _WAITS_WITH:
                    self._ends_wait = True
            elif size := len(data.records):  # type: ignore[arg-type]
                min_one_batch = False
                total += size
                left = max(left - size, 0)
            read.append((key, data))
        self._size = total
        return read

    def _read(self, wanted: Wanted, left: int, min_one_batch: bool) -> FetchResponse.PartitionData:
        broker = self._broker
        if wanted.topic is None:
            wanted.topic = broker.topic_name(wanted.topic_id)
            if wanted.topic is None:
                return self._error(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = broker.partitions.get((wanted.topic, wanted.index))
        if partition is None:
            return self._error(wanted, broker.find_error(wanted.topic, wanted.index))
        if partition.topic_id != wanted.topic_id and wanted.topic_id != ZERO_UUID:
            return self._error(wanted, ErrorCode.INCONSISTENT_TOPIC_ID)
        error = partition.check_leader(wanted.current_leader_epoch)
        if error:
            return self._error(wanted, error)
        try:
            return self._read_partition(partition, wanted, left, min_one_batch)
        except OffsetOutOfRange:
            return self._error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        except OSError as problem:
            broker.on_disk_error(partition.directory, problem)
            partition.traffic.failed_fetch_requests += 1
            return self._error(wanted, ErrorCode.KAFKA_STORAGE_ERROR)

    def _read_partition(
        self, partition: Partition, wanted: Wanted, left: int, min_one_batch: bool
    ) -> FetchResponse.PartitionData:
        log = partition.log
        offset = wanted.offset
        if wanted.last_fetched_epoch >= 0 and (diverging := self._diverging(partition, wanted)):
            return self._data(partition, wanted, _NO_BYTES, diverging)
        if self._replica_id >= 0 and (error := self._note_follower(partition, wanted)):
            return self._error(wanted, error)
        end_offset = self._end_of(partition)
        if offset == end_offset:
            return self._data(partition, wanted, _NO_BYTES)
        if self._context.api_version < _KNOWS_ZSTD and partition.settings.rules.compression is Compression.ZSTD:
            return self._error(wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        records = log.read(offset, min(wanted.max_bytes, left), end_offset, min_one_batch=min_one_batch)
        return self._data(partition, wanted, records)

    def _data(
        self,
        partition: Partition,
        wanted: Wanted,
        records: FileSlice | bytes,
        diverging: FetchResponse.EpochEndOffset = _NOTHING_DIVERGES,
    ) -> FetchResponse.PartitionData:
        log = partition.log
        aborted = None
        if self._isolation_level:
            aborted = self._aborted(partition, wanted) if len(records) else []
        return _PartitionData(
            partition_index=wanted.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=diverging,
            current_leader=_NO_HINT,
            snapshot_id=_NO_SNAPSHOT,
            aborted_transactions=aborted,
            records=records,
        )

    def _aborted(self, partition: Partition, wanted: Wanted) -> list[FetchResponse.AbortedTransaction]:
        found = partition.log.aborted_transactions(wanted.offset, self._end_of(partition))
        return [
            FetchResponse.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in found
        ]

    @staticmethod
    def _diverging(partition: Partition, wanted: Wanted) -> FetchResponse.EpochEndOffset | None:
        """Where the client's log and ours part, if they do (KIP-595)."""
        log = partition.log
        epoch, end_offset = log.epochs.end_offset(wanted.last_fetched_epoch, log.log_end_offset)
        if epoch < 0 or end_offset < 0 or wanted.offset < log.log_start_offset:
            raise OffsetOutOfRange(wanted.offset, log.log_start_offset, log.log_end_offset)
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.offset:
            return FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return None

    def _note_follower(self, partition: Partition, wanted: Wanted) -> ErrorCode:
        """A follower that asks for an offset has all before it."""
        state = partition.state
        assert state is not None
        if self._replica_id not in state.followers:
            known_epoch = wanted.current_leader_epoch >= 0
            return ErrorCode.UNKNOWN_LEADER_EPOCH if known_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if state.on_fetched(self._replica_id, wanted.offset, wanted.log_start_offset, self._broker.clock.now_ms()):
            partition.log.advance_high_watermark(state.high_watermark)
            self._broker.purgatory.wake(partition)
        return ErrorCode.NONE

    def _error(self, wanted: Wanted, error: ErrorCode) -> FetchResponse.PartitionData:
        if error is ErrorCode.KAFKA_STORAGE_ERROR and self._context.api_version < _KNOWS_STORAGE_ERRORS:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _PartitionData(
            partition_index=wanted.index,
            error_code=error,
            high_watermark=-1,
            aborted_transactions=None,
            records=_NO_BYTES,
        )

    # Replying

    def _reply(self, read: list[tuple[PartitionKey, FetchResponse.PartitionData]]) -> None:
        broker = self._broker
        session_id, error, news = self._session.finish(
            read, broker.clock.now_ms(), by_id=self._by_id, follower=self._replica_id >= 0
        )
        response = FetchResponse(error_code=error, session_id=session_id)
        topics = response.responses
        last: PartitionKey | None = None
        for key, data in news:
            if last is None or last[0] != key[0]:
                topics.append(self._topic(key))
            topics[-1].partitions.append(data)
            last = key
        self._count(read)
        if self._context.api_version >= _HAS_LEADER_HINTS:
            self._add_hints(response, news)
        self._respond(response)

    def _topic(self, key: PartitionKey) -> FetchResponse.FetchableTopicResponse:
        if self._by_id:
            return FetchResponse.FetchableTopicResponse(topic_id=key[0], partitions=[])  # type: ignore[arg-type]
        return FetchResponse.FetchableTopicResponse(topic=key[0], partitions=[])  # type: ignore[arg-type]

    def _count(self, read: list[tuple[PartitionKey, FetchResponse.PartitionData]]) -> None:
        partitions = self._broker.partitions
        for (_, wanted), (_, data) in zip(self._wanted, read, strict=True):
            partition = partitions.get((wanted.topic, wanted.index))  # type: ignore[arg-type]
            if partition is not None:
                partition.traffic.fetch_requests += 1
                partition.traffic.bytes_out += len(data.records)  # type: ignore[arg-type]

    def _add_hints(self, response: FetchResponse, news: list[tuple[PartitionKey, FetchResponse.PartitionData]]) -> None:
        leaders: set[int] = set()
        for key, data in news:
            if data.error_code in _LEADER_IS_ELSEWHERE:
                name = self._session.partitions[key].topic
                assert name is not None, "a topic without a name has another error"
                leader, epoch = current_leader(self._broker, name, data.partition_index)
                data.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                leaders.add(leader)
        if leaders:
            response.node_endpoints = node_endpoints(
                self._broker, leaders, self._context.connection.listener, FetchResponse.NodeEndpoint
            )
