"""The end of a coordinator's partition: gathers what is decided, appends it, and tells of it when it is committed.

Everything that one turn of the network brings about is one batch and one append (`group.coordinator.append.linger.ms`
is -1; 0 gathers nothing, and more waits for that long), up to `max.message.bytes`. Clients get their replies when the
high watermark has passed the batch. If that takes longer than `offsets.commit.timeout.ms`, the client is told that the
coordinator is not available: what it asked for may or may not have happened, and is safe to ask for again.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.coordination.gathered_batch import GatheredBatch, Outcome, Uncommitted, fail, give_out
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import announce, append, append_made_here
from ottla.log.producer_state import AppendOrigin
from ottla.machines.coordinator_machine import EncodedRecord, TransactionStamp
from ottla.records.header import BatchHeader
from ottla.runtime.rate_limited_log import FaultLog
from ottla.runtime.world import World
from ottla.wire.errors import NO_ERROR, ErrorCode

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_PAUSE_AFTER_FAILURE_S = 1.0
"""For how long nothing is accepted after an append has failed: a full disk is not to cost a loading each time."""

# What a client of a coordinator gets instead of what happened to the coordinator's partition, as in Kafka.
_AS_COORDINATOR = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.CORRUPT_MESSAGE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class CoordinatorLog:
    """See the module. `on_failed` is called when a batch could not be appended, after all who waited for it."""

    __slots__ = (
        "_appended",
        "_base_sequence",
        "_commit_timeout_ms",
        "_compression",
        "_failed_s",
        "_faults",
        "_is_awaited",
        "_linger_ms",
        "_on_failed",
        "_open",
        "_partitions",
        "_world",
        "is_closed",
        "partition",
    )

    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        faults: FaultLog,
        partition: Partition,
        *,
        base_sequence: int,
        compression: int,
        commit_timeout_ms: int,
        linger_ms: int,
        on_failed: Callable[[ErrorCode], None],
    ) -> None:
        self.is_closed = False
        self.partition = partition
        self._partitions = partitions
        self._world = world
        self._faults = faults
        self._base_sequence = base_sequence
        self._compression = compression
        self._commit_timeout_ms = commit_timeout_ms
        self._linger_ms = linger_ms
        self._on_failed = on_failed
        self._open: GatheredBatch | None = None
        self._appended: list[Outcome] = []
        self._is_awaited = False
        self._failed_s: float | None = None

    def close(self) -> None:
        """What is still open is not written. Clients that wait are sent to the next coordinator."""
        self.is_closed = True
        batch, self._open = self._open, None
        appended, self._appended = self._appended, []
        fail(appended, ErrorCode.NOT_COORDINATOR)
        if batch is not None:
            fail(batch.waiting, ErrorCode.NOT_COORDINATOR)
        self._partitions.purgatory.wake(self.partition)

    # Gathering

    @property
    def refusal(self) -> ErrorCode:
        """Why nothing can be written at the moment."""
        if self._failed_s is not None and self.partition.state is not None:
            if self._world.timers.now_s() - self._failed_s < _PAUSE_AFTER_FAILURE_S:
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
            self._failed_s = None
        return self._cannot_append

    @property
    def max_batch_bytes(self) -> int:
        return self.partition.settings.rules.max_message_bytes

    def make_room(
        self, records: Sequence[EncodedRecord], size: int, transaction: TransactionStamp | None, now_ms: int
    ) -> ErrorCode:
        """Before `add`. Writes what is open, if these do not go with it; if that fails, they rest on what never was."""
        limit = self.max_batch_bytes
        batch = self._open
        if batch is not None:
            if batch.transaction == transaction and batch.size + size <= limit:
                return ErrorCode.NONE
            if self.append_open():
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
        batch = self.begin_batch(transaction)
        if batch.size + size > limit:
            # It may still fit: sizes are estimates, and the batch may be compressed.
            alone = self.begin_batch(transaction)
            alone.add(records, size, now_ms)
            if len(alone.build(0, 0)) > limit:
                return ErrorCode.MESSAGE_TOO_LARGE
        self._open = batch
        return ErrorCode.NONE

    def begin_batch(self, transaction: TransactionStamp | None) -> GatheredBatch:
        """An empty one. It is not open yet."""
        return GatheredBatch(transaction, self._base_sequence, self._compression)

    def add(self, records: Sequence[EncodedRecord], size: int, now_ms: int) -> None:
        assert self._open is not None, "room is made first"
        self._open.add(records, size, now_ms)

    # Writing

    def write_soon(self) -> None:
        """Has what is open written, and answered, when it is time to, if it is not going to be already."""
        if self._is_awaited or (self._open is None and not self._appended):
            return
        self._is_awaited = True
        if self._linger_ms < 0:
            self._world.network.at_end_of_turn(self.write)
        elif self._linger_ms:
            self._world.timers.after(self._linger_ms / 1000, self.write)
        else:
            self.write()

    def write(self) -> None:
        """Appends the batch that is open, if one is, and tells of all that has been appended."""
        self._is_awaited = False
        self.append_open()
        appended, self._appended = self._appended, []
        if appended:
            self._when_committed(appended)
            announce(self._partitions, self.partition)

    def append_open(self) -> ErrorCode:
        """Appends the batch that is open, and tells nobody yet: a client that has its reply may ask for more at once.

        That one must not come between a decision and its records, nor between two batches of one decision.
        """
        batch, self._open = self._open, None
        if batch is None:
            return ErrorCode.NONE
        try:
            error = self._append_gathered(batch) if batch.writer.record_count else ErrorCode.NONE
        except Exception as problem:
            what = f"cannot encode a batch of records for {self.partition.name}"
            self._faults.error(what, problem)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        if error:
            self._failed_s = self._world.timers.now_s()
            fail(batch.waiting, error)
            self._on_failed(error)
        else:
            self._appended += batch.waiting
        return error

    def _append_gathered(self, batch: GatheredBatch) -> ErrorCode:
        partition, writer = self.partition, batch.writer
        data = batch.build(partition.log.log_end_offset, partition.leader_epoch)
        if batch.transaction is not None:
            return self.append(data, batch.header)
        error = self._cannot_append
        if not error:
            made = writer.record_count, writer.max_timestamp
            error = append_made_here(self._partitions, partition, data, *made)
        return self._as_answered(error, len(data))

    def append(self, data: bytearray, header: BatchHeader | None = None) -> ErrorCode:
        """Appends a batch by itself; nothing is open. `on_appended` says who waits for it."""
        error = self._cannot_append
        if not error:
            error = append(self._partitions, self.partition, data, AppendOrigin.COORDINATOR, header).error
        return self._as_answered(error, len(data))

    def _as_answered(self, error: ErrorCode, size: int) -> ErrorCode:
        """What became of an append of so many bytes, in a coordinator's words."""
        if error:
            return _AS_COORDINATOR.get(error, error)
        self.partition.traffic.bytes_in += size
        return NO_ERROR

    @property
    def _cannot_append(self) -> ErrorCode:
        """Why the partition takes no batch of ours."""
        state = self.partition.state
        if state is None:
            return ErrorCode.NOT_COORDINATOR
        return NO_ERROR if state.has_enough_replicas else ErrorCode.COORDINATOR_NOT_AVAILABLE

    # PendingOutcome for the commit

    def tell_when_committed(self, waiting: Outcome) -> None:
        """The outcome of a decision, which may have seen all that is written and all that is open."""
        if self._open is not None:
            self._open.waiting.append(waiting)
        elif self._appended:
            self._appended.append(waiting)
        else:
            self._when_committed((waiting,))

    def on_appended(self, waiting: Outcome) -> None:
        """A batch has been appended by itself: `write` tells who waits for it."""
        self._appended.append(waiting)

    def _when_committed(self, waiting: Sequence[Outcome]) -> None:
        log = self.partition.log
        if log.high_watermark >= log.log_end_offset:
            give_out(waiting)
        else:
            uncommitted = Uncommitted(self, log.log_end_offset, waiting)
            self._partitions.purgatory.park(uncommitted, [self.partition], self._commit_timeout_ms)
