"""Reads one partition for one fetch: the checks, the limits, and what goes into the reply.

The order of the checks is Kafka's, so that a client that has several things wrong gets the same error.
"""

from collections.abc import Callable
from struct import Struct

from ottla.base.ids import ZERO_UUID
from ottla.base.ports import Disk
from ottla.broker.data.fetch_replies import partition_data
from ottla.broker.data.fetch_sessions import Wanted
from ottla.broker.data.replica_selector import ReplicaSelector
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import STORAGE_PROBLEMS, OffsetOutOfRange
from ottla.log.outcomes import FileSlice
from ottla.records.header import LOG_OVERHEAD
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchResponse

_KNOWS_STORAGE_ERRORS = 6
_TELLS_DIVERGENCE = 12
READS_FROM_FOLLOWERS = 11
_BATCH_LENGTH = Struct(">8xi")

NOT_IN_METADATA = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})

_PartitionData = FetchResponse.PartitionData
_NOTHING_DIVERGES = FetchResponse.EpochEndOffset()
_NO_BYTES = b""


class FetchReader:
    """`leaves_out_known`: partitions of which the client knows all there is to say are None, and cost little.

    `selector` chooses replicas for consumers that say where they are (KIP-392); `rack` is where this one is.

    `may_read` says of a topic whether this client may; without it, it may read all.

    `may_wait`: whether `read` may wait for the disk, or raises `ColdRead`.
    """

    __slots__ = (
        "_disk",
        "_isolation_level",
        "_leaves_out_known",
        "_may_read",
        "_partitions",
        "_rack",
        "_replica_id",
        "_selector",
        "_version",
        "check",
        "may_wait",
    )

    def __init__(
        self,
        partitions: Partitions,
        disk: Disk,
        version: int,
        replica_id: int,
        isolation_level: int,
        *,
        leaves_out_known: bool,
        rack: str = "",
        selector: ReplicaSelector | None = None,
        may_read: Callable[[str], bool] | None = None,
    ) -> None:
        self._partitions = partitions
        self._disk = disk
        self._version = version
        self._replica_id = replica_id
        self._rack = rack
        self._selector = selector if replica_id < 0 else None
        is_free_to_choose = replica_id < 0 and version >= READS_FROM_FOLLOWERS
        self.check = Partition.check_replica if is_free_to_choose else Partition.check_leader
        """Whether this client may read from the partition here."""
        self._isolation_level = isolation_level
        self._leaves_out_known = leaves_out_known
        self._may_read = may_read
        self.may_wait = True

    @property
    def chooses_replicas(self) -> bool:
        return self._selector is not None

    def restrict(self, may_read: Callable[[str], bool]) -> None:
        """Rights were taken since the request came."""
        self._may_read = may_read

    def may_read(self, wanted: Wanted) -> bool:
        """Whether the client may read the topic, as far as that is known before it is found."""
        return self._may_read is None or wanted.topic is None or self._may_read(wanted.topic)

    def end_of(self, partition: Partition) -> int:
        """The offset before which this client may read."""
        if self._replica_id >= 0:
            return partition.log.log_end_offset
        return partition.end_for_readers(self._isolation_level)

    def find(self, wanted: Wanted) -> Partition | FetchResponse.PartitionData:
        """The partition to read from; or the answer, if there is nothing to read for this client."""
        partitions = self._partitions
        if wanted.topic is None:
            wanted.topic = partitions.metadata.topic_name(wanted.topic_id)
            if wanted.topic is None:
                return self.error(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
        if not self.may_read(wanted):
            return self.error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = partitions.get((wanted.topic, wanted.index))
        if partition is None:
            return self.error(wanted, partitions.find_error(wanted.topic, wanted.index))
        if partition.topic_id != wanted.topic_id and wanted.topic_id != ZERO_UUID:
            return self.error(wanted, ErrorCode.INCONSISTENT_TOPIC_ID)
        error = self.check(partition, wanted.current_leader_epoch)
        if error:
            return self.error(wanted, error)
        if self._selector is not None and partition.state is not None:
            replica_id = self._selector.choose(partition, wanted.offset, self._rack)
            if replica_id is not None:
                return self._elsewhere(partition, wanted, replica_id)
        if wanted.last_fetched_epoch >= 0 and self._version >= _TELLS_DIVERGENCE:
            try:
                diverging = _diverging(partition, wanted)
            except OffsetOutOfRange:
                return self.error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
            if diverging is not None:
                return self._data(partition, wanted, _NO_BYTES, diverging)
        if self._replica_id >= 0 and (error := self._check_follower(partition, wanted)):
            return self.error(wanted, error)
        return partition

    def _check_follower(self, partition: Partition, wanted: Wanted) -> ErrorCode:
        log, state = partition.log, partition.state
        assert state is not None, "followers fetch from leaders"
        if not log.log_start_offset <= wanted.offset <= log.log_end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if self._replica_id not in state.followers:
            knows_epoch = wanted.current_leader_epoch >= 0
            return ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def read(
        self, partition: Partition, wanted: Wanted, left: int, min_one_batch: bool
    ) -> FetchResponse.PartitionData | None:
        """At most `left` bytes of a partition that was found, or its error."""
        try:
            return self._read(partition, wanted, left, min_one_batch)
        except OffsetOutOfRange:
            return self.error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        except STORAGE_PROBLEMS as problem:
            partition.traffic.failed_fetch_requests += 1
            return self.error(wanted, self._partitions.on_storage_problem(partition, problem))

    def _read(
        self, partition: Partition, wanted: Wanted, left: int, min_one_batch: bool
    ) -> FetchResponse.PartitionData | None:
        end_offset = self.end_of(partition)
        if wanted.offset == end_offset:
            if self._leaves_out_known and wanted.knows(partition.log.high_watermark, partition.log.log_start_offset):
                return None
            return self._data(partition, wanted, _NO_BYTES)
        if self._replica_id >= 0 and self.has_to_wait(partition):
            return self._data(partition, wanted, _NO_BYTES)
        max_bytes = min(wanted.max_bytes, left)
        disk = self._disk
        disk.reads_may_wait(self.may_wait)  # Here, and nowhere else: what others do for us is not ready for it.
        try:
            records = partition.read(wanted.offset, max_bytes, end_offset, min_one_batch=min_one_batch)
            if not min_one_batch and records.size == max_bytes and begins_with_a_cut_batch(records):
                return self._data(partition, wanted, _NO_BYTES)
            if self._replica_id >= 0:
                self._count_against_quota(partition, records)
            return self._data(partition, wanted, records)
        finally:
            disk.reads_may_wait(True)

    def has_to_wait(self, partition: Partition) -> bool:
        """Whether it is a follower that is not in sync, and would be sent more than it may be at this time (KIP-73)."""
        state, quota = partition.state, self._partitions.replication_quotas.leader
        if self._replica_id < 0 or state is None or self._replica_id in state.isr:
            return False
        return quota.wait_s > 0 and quota.is_throttled(partition.name)

    def _count_against_quota(self, partition: Partition, records: FileSlice) -> None:
        quota = self._partitions.replication_quotas.leader
        if quota.is_throttled(partition.name):
            quota.record(records.size)

    def _data(
        self,
        partition: Partition,
        wanted: Wanted,
        records: FileSlice | bytes,
        diverging: FetchResponse.EpochEndOffset = _NOTHING_DIVERGES,
    ) -> FetchResponse.PartitionData:
        aborted = None
        if self._isolation_level:
            aborted = self._aborted(partition, wanted, records) if isinstance(records, FileSlice) and records else []
        data = partition_data(partition, records)
        data.diverging_epoch = diverging
        data.aborted_transactions = aborted
        return data

    def _elsewhere(self, partition: Partition, wanted: Wanted, replica_id: int) -> FetchResponse.PartitionData:
        data = self._data(partition, wanted, _NO_BYTES)
        data.preferred_read_replica = replica_id
        return data

    def error(self, wanted: Wanted, error: ErrorCode) -> FetchResponse.PartitionData:
        if error is ErrorCode.KAFKA_STORAGE_ERROR and self._version < _KNOWS_STORAGE_ERRORS:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _PartitionData(
            partition_index=wanted.index,
            error_code=error,
            high_watermark=-1,
            aborted_transactions=[] if error in NOT_IN_METADATA else None,
            records=_NO_BYTES,
        )

    def _aborted(
        self, partition: Partition, wanted: Wanted, records: FileSlice
    ) -> list[FetchResponse.AbortedTransaction]:
        """The aborted transactions among the records; the client ignores those beyond what it gets."""
        return [
            FetchResponse.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in partition.log.aborted_in(wanted.offset, records, self.end_of(partition))
        ]


def _diverging(partition: Partition, wanted: Wanted) -> FetchResponse.EpochEndOffset | None:
    """Where the client's log and ours part, if they do (KIP-595)."""
    log = partition.log
    epoch, end_offset = log.epochs.end_offset(wanted.last_fetched_epoch, log.log_end_offset)
    if epoch < 0 or end_offset < 0 or wanted.offset < log.log_start_offset:
        raise OffsetOutOfRange(wanted.offset, log.log_start_offset, log.log_end_offset)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.offset:
        return FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def begins_with_a_cut_batch(records: FileSlice) -> bool:
    """Whether not even the first batch is whole: it is of no use to the client, and would only take up room."""
    if records.size < LOG_OVERHEAD or records.file is None:
        return True
    (length,) = _BATCH_LENGTH.unpack_from(records.data or records.file.read_at(records.position, LOG_OVERHEAD))
    return bool(LOG_OVERHEAD + length > records.size)
