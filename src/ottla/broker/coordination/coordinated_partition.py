"""One partition of a coordinator's topic that this node leads, and the machine that its log is the state of.

    loading ──(the log is replayed)──> active ──(leadership is lost, or the disk fails)──> closed
       └───────────(the log cannot be read, or leadership is lost)───────────────────────────^

A decision's records are appended and replayed in the turn in which it was made, so that the machine is always exactly
what its log says; nothing is gathered first (Kafka's `group.coordinator.append.linger.ms`), and so nothing has to be
taken back when an append fails. Its answers wait until the high watermark has passed the records; a decision without
records waits for what was written before it. If that takes longer than `offsets.commit.timeout.ms`, those who wait are
told that the coordinator is not available: what they asked for may or may not have happened, and is safe to ask for
again.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.broker.coordination.coordinator_batches import coordinator_batches
from ottla.broker.coordination.loading import Loading
from ottla.broker.coordination.named_timers import NamedTimers
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import announce, append
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.log.producer_state import AppendOrigin
from ottla.machines.coordinator_machine import Answer, CoordinatorDecision, CoordinatorMachine, TransactionStamp
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.records.header import NO_SEQUENCE
from ottla.runtime.request import ClientConnection
from ottla.wire.errors import ErrorCode
from ottla.wire.record_values import CoordinatorTopic

if TYPE_CHECKING:
    from ottla.broker.context import Broker

_log = logging.getLogger(__name__)

MachineT = TypeVar("MachineT", bound=CoordinatorMachine)
ReplyT = TypeVar("ReplyT")

_NOBODY = ClientConnection(-1, "", "")

# What a client of a coordinator is told instead of what happened to the coordinator's partition, as in Kafka.
_AS_COORDINATOR = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


class CoordinatedPartition(Generic[MachineT]):
    """See the module. `leader_epoch` is the coordinator's epoch: a later one has a later object."""

    def __init__(
        self,
        broker: "Broker",
        partition: Partition,
        topic: CoordinatorTopic,
        machine: MachineT,
        *,
        compression: int = 0,
        commit_timeout_ms: int,
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.machine = machine
        self.state = State.LOADING
        self.load_time_ms = 0
        self._broker = broker
        self._compression = compression
        self._base_sequence = NO_SEQUENCE if topic is CoordinatorTopic.TRANSACTION_STATE else 0
        self._commit_timeout_ms = commit_timeout_ms
        self._timers = NamedTimers(broker.timers, lambda expire: self.submit(expire, _nothing, _nothing))
        self._loading = Loading(broker, partition, topic, machine, self._become_active, self._on_unreadable)

    def load(self) -> None:
        self._began_ms = self._broker.clock.now_ms()
        self._loading.read_on()

    def _become_active(self) -> None:
        now_ms = self._broker.clock.now_ms()
        self.load_time_ms = now_ms - self._began_ms
        self.state = State.ACTIVE
        self._carry_out(self.machine.on_loaded(now_ms), _nothing, _nothing)

    def _on_unreadable(self, problem: Exception) -> None:
        _log.error("%s cannot be loaded, and is not coordinated: %s", self.partition.name, problem)
        if isinstance(problem, STORAGE_PROBLEMS):
            self._broker.partitions.on_storage_problem(self.partition, problem)
        self.close()

    def close(self) -> None:
        """Another node coordinates, or none. Whoever waits here is told so."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self._loading.cancel()
        self._timers.close()
        self._broker.partitions.purgatory.wake(self.partition)
        for waiter in self.machine.on_unloaded():
            waiter.failed(ErrorCode.NOT_COORDINATOR)

    # Deciding

    def submit(
        self,
        decide: Callable[[MachineT, int], CoordinatorDecision[ReplyT]],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Lets the machine decide, and hands its reply to `then` once everything that it rests on is committed."""
        if self.state is State.ACTIVE:
            self._carry_out(decide(self.machine, self._broker.clock.now_ms()), then, failed)
        else:
            failed(self.refusal)

    def query(
        self,
        read: Callable[[MachineT, int], ReplyT],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Reads state, and tells of it once all that it came from is committed."""
        self.submit(lambda machine, now_ms: CoordinatorDecision(read(machine, now_ms)), then, failed)

    @property
    def refusal(self) -> ErrorCode:
        is_loading = self.state is State.LOADING
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR

    def _carry_out(
        self,
        decision: CoordinatorDecision[ReplyT],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        error = self._write(decision) if decision.records else ErrorCode.NONE
        if error:
            failed(error)
            if decision.undo is not None and self.state is State.ACTIVE:
                undone = decision.undo(error, self._broker.clock.now_ms())
                self._carry_out(undone, _nothing, _nothing)
            else:
                _fail(decision.answers, error)
            return
        self._timers.set(decision.timers)
        self._when_committed(decision, then, failed)
        if decision.records:
            announce(self._broker, self.partition)

    def _write(self, decision: CoordinatorDecision[Any]) -> ErrorCode:
        broker, partition = self._broker, self.partition
        limit = partition.settings.rules.max_message_bytes
        now_ms = broker.clock.now_ms()
        batches = coordinator_batches(
            decision.records,
            now_ms,
            transaction=decision.transaction,
            base_sequence=self._base_sequence,
            compression=self._compression,
            limit=0 if decision.atomic else limit,
        )
        for data, records in batches:
            if len(data) > limit:
                return ErrorCode.MESSAGE_TOO_LARGE
            error = self._append(data)
            if error:
                return error
            for key, value, _ in records:
                if decision.transaction is None:
                    self.machine.replay(key, value)
                else:
                    self.machine.replay_in_transaction(decision.transaction, key, value)
        return ErrorCode.NONE

    def _append(self, data: bytearray) -> ErrorCode:
        partition = self.partition
        if partition.state is None:
            return ErrorCode.NOT_COORDINATOR
        if not partition.state.has_enough_replicas(partition.settings.min_insync_replicas):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = append(self._broker, partition, data, AppendOrigin.COORDINATOR).error
        if not error:
            partition.traffic.bytes_in += len(data)
        return _AS_COORDINATOR.get(error, error)

    def end_transaction(
        self,
        stamp: TransactionStamp,
        marker: EndTransactionMarker,
        then: Callable[[None], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Writes a producer's marker into this partition: its transaction here is decided (WriteTxnMarkers)."""
        if self.state is not State.ACTIVE:
            failed(self.refusal)
            return
        now_ms = self._broker.clock.now_ms()
        error = self._append(build_end_transaction_marker(marker, *stamp, now_ms))
        if error:
            failed(error)
            return
        self.machine.replay_end_of_transaction(stamp, committed=marker.committed)
        self._when_committed(CoordinatorDecision(None), then, failed)
        announce(self._broker, self.partition)

    # Waiting for the commit

    def _when_committed(
        self,
        decision: CoordinatorDecision[ReplyT],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        log = self.partition.log
        if log.high_watermark >= log.log_end_offset:
            then(decision.reply)
            _give_out(decision.answers)
            return
        waiting = _Uncommitted(self, log.log_end_offset, decision, then, failed)
        self._broker.partitions.purgatory.hold(waiting, [self.partition], self._commit_timeout_ms)

    @property
    def timer_count(self) -> int:
        return len(self._timers)


class _Uncommitted(Operation):
    """A decision whose answers wait for the high watermark."""

    __slots__ = ("_decision", "_end_offset", "_failed", "_place", "_then")

    def __init__(
        self,
        place: CoordinatedPartition[Any],
        end_offset: int,
        decision: CoordinatorDecision[ReplyT],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        super().__init__(_NOBODY)
        self._place = place
        self._end_offset = end_offset
        self._decision = decision
        self._then = then
        self._failed = failed

    def is_done(self, place: Place) -> bool:
        return self._place.state is State.CLOSED or self._is_committed()

    def _is_committed(self) -> bool:
        return self._place.partition.log.high_watermark >= self._end_offset

    def complete(self) -> None:
        if self._place.state is not State.ACTIVE or self._place.partition.state is None:
            error = ErrorCode.NOT_COORDINATOR
        elif self._is_committed():
            self._then(self._decision.reply)
            _give_out(self._decision.answers)
            return
        else:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        self._failed(error)
        _fail(self._decision.answers, error)


def _give_out(answers: Sequence[Answer]) -> None:
    for waiter, reply in answers:
        if isinstance(reply, ErrorCode):
            waiter.failed(reply)
        else:
            waiter.then(reply)


def _fail(answers: Sequence[Answer], error: ErrorCode) -> None:
    for waiter, _ in answers:
        waiter.failed(error)


def _nothing(_: Any) -> None:
    """Nobody waits for the outcome."""
