"""One partition of a coordinator's topic that this node leads, and the machine that its log is the state of.

                             (an append fails)
              ┌─────────────────────────────────────────────┐
              v                                             │
           loading ──────(the log is replayed)──────────> active
              └──────> closed <────(leadership is lost, or the disk fails)

A decision's records are replayed at once, and written with those of the decisions after it (`coordinator_log`). So the
machine is ahead of its log, by the batch that is open. The outcome of a decision is reported when all that the decision
rests on is committed.

Records are refused before they are replayed if they cannot be written as things are: they are too large for a batch,
too few replicas are in sync, or an append has just failed. If the append of a batch fails, its records have been
replayed and are not in the log. Then everybody who waits for the batch gets an error, and the partition is loaded anew.

A subject (a group, a transactional id) that raises is taken offline by name: see `machines.coordinator_machine`.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.broker.coordination.coordinator_log import CoordinatorLog
from ottla.broker.coordination.gathered_batch import PendingOutcome, as_waiting, in_parts
from ottla.broker.coordination.gathering import find_gather
from ottla.broker.coordination.loading import Loading
from ottla.broker.coordination.named_timers import Expire, NamedTimers
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.machines.coordinator_machine import (
    CoordinatorDecision,
    CoordinatorMachine,
    CoordinatorRecord,
    EncodedCommand,
    Timer,
    TimerName,
    TransactionStamp,
    size_of,
)
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.records.header import NO_SEQUENCE
from ottla.runtime.attribution import WORK, current
from ottla.runtime.rate_limited_log import FaultLog
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.record_values import CoordinatorTopic

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)

MachineT = TypeVar("MachineT", bound=CoordinatorMachine)
ReplyT = TypeVar("ReplyT")

_RETRY_MS = 500
"""After which a timer whose command could not be written fires again, as in Kafka."""


class CoordinatorState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


class CoordinatedPartition(Generic[MachineT]):
    """See the module. `leader_epoch` is the coordinator's epoch: a later one has a later object.

    `machine` is another one after each loading. `offline` are its subjects that are broken.
    """

    __slots__ = (
        "__dict__",  # For tests, in which one may do something else.
        "_began_ms",
        "_clock",
        "_faults",
        "_loading",
        "_log",
        "_make_machine",
        "_partitions",
        "_timers",
        "_topic",
        "_world",
        "leader_epoch",
        "load_time_ms",
        "machine",
        "offline",
        "partition",
        "state",
    )

    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        faults: FaultLog,
        partition: Partition,
        topic: CoordinatorTopic,
        make_machine: Callable[[], MachineT],
        *,
        compression: int = 0,
        commit_timeout_ms: int,
        linger_ms: int = -1,
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.load_time_ms = 0
        self._partitions = partitions
        self._world = world
        self._clock = world.clock
        self._faults = faults
        self._topic = topic
        self._make_machine = make_machine
        self._timers = NamedTimers(world.timers, self._on_timer)
        self._log = CoordinatorLog(
            partitions,
            world,
            faults,
            partition,
            base_sequence=NO_SEQUENCE if topic is CoordinatorTopic.TRANSACTION_STATE else 0,
            compression=compression,
            commit_timeout_ms=commit_timeout_ms,
            linger_ms=linger_ms,
            on_failed=self._on_append_failed,
        )

    # Loading

    def load(self) -> None:
        self.state = CoordinatorState.LOADING
        self.machine = self._make_machine()
        self.offline: set[str] = set()
        self._began_ms = self._clock.now_ms()
        self._loading = Loading(self._partitions, self._world, self.partition, self._topic, self.machine, self)
        self._loading.read_on()

    def on_loaded(self) -> None:
        now_ms = self._clock.now_ms()
        self.load_time_ms = now_ms - self._began_ms
        self.state = CoordinatorState.ACTIVE
        self.submit(lambda machine, now_ms: machine.on_loaded(now_ms), _nothing, _nothing)

    def on_unreadable(self, problem: Exception) -> None:
        name = self.partition.name
        text = "cannot load %s; its groups or transactions are unavailable: %s"
        self._partitions.troubles.error(("coordinator", name), text, name, problem)
        if isinstance(problem, STORAGE_PROBLEMS):
            self._partitions.on_storage_problem(self.partition, problem)
        self.close()

    def _on_append_failed(self, error: ErrorCode) -> None:
        """The machine has seen what is not in the log. Nothing of it is kept."""
        if self.state is not CoordinatorState.ACTIVE:
            return
        name = self.partition.name
        text = "loading %s again: its records could not be written (%s)"
        self._partitions.troubles.warning(("coordinator", name), text, name, error.name)
        self._timers.close()
        for waiter in self.machine.on_unloaded():
            waiter.failed(error)
        self.load()

    # Closing

    @property
    def is_closed(self) -> bool:
        return self.state is CoordinatorState.CLOSED

    def close(self) -> None:
        """Another node coordinates, or none. Clients that wait here are answered with that error. What is still open is
        not written."""
        if self.is_closed:
            return
        self.state = CoordinatorState.CLOSED
        self._loading.cancel()
        self._timers.close()
        self._log.close()
        for waiter in self.machine.on_unloaded():
            waiter.failed(ErrorCode.NOT_COORDINATOR)

    def take_offline(self, subject: str | None, problem: Exception) -> None:
        """Something about a subject contradicts itself; with None, about the partition as a whole."""
        if subject is None:
            _log.error("%s failed; its groups or transactions are unavailable", self.partition.name, exc_info=problem)
            self.close()
            if self.partition.state is not None:
                self._partitions.give_up(self.partition, self.partition.state.isr)
            return
        _log.error(
            "%s failed, and is unavailable until %s is loaded again", subject, self.partition.name, exc_info=problem
        )
        self.offline.add(subject)
        for waiter in self.machine.take_offline(subject):
            waiter.failed(ErrorCode.UNKNOWN_SERVER_ERROR)

    # Deciding

    def submit(
        self,
        decide: Callable[[MachineT, int], CoordinatorDecision[ReplyT]],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
        subject: str | None = None,
        *,
        only_reads: bool = False,
    ) -> None:
        """Lets the machine decide, and hands its reply to `then` once everything that it rests on is committed.

        `subject` is what the decision is about; None: the partition as a whole. `only_reads`: the command changes no
        soft state while it decides, so that one that raises half-way leaves everything as it was.
        """
        if self.state is not CoordinatorState.ACTIVE or subject in self.offline:
            failed(self._refusal_of(subject))
            return
        now_ms = self._clock.now_ms()
        try:
            decision = decide(self.machine, now_ms)
        except Exception as problem:
            self._on_command_failed(subject, problem, only_reads=only_reads)
            failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._carry_out(decision, then, failed, subject, now_ms)
        self._log.write_soon()

    def submit_encoded(self, command: EncodedCommand) -> None:
        """The same for a command whose records are bytes, and that gets its outcome itself. It only reads."""
        if gather(self, command):
            return
        subject, log = command.subject, self._log
        if self.state is not CoordinatorState.ACTIVE or subject in self.offline:
            command.refuse(self._refusal_of(subject))
            return
        now_ms = self._clock.now_ms()
        try:
            command.reply, records, timers = command.decide(self.machine, now_ms)
        except Exception as problem:
            self._on_command_failed(subject, problem, only_reads=True)
            command.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        if records:
            error = log.refusal or log.make_room(records.encoded, records.size, None, now_ms)
            if error:
                command.refuse(error)
                return
            try:
                records.replay(self.machine)
            except Exception as problem:
                self.on_replay_failed(command, problem)
                return
            log.add(records.encoded, records.size, now_ms)
            if timers:
                self._timers.set(timers)
        log.tell_when_committed(command)
        log.write_soon()

    def on_replay_failed(self, command: EncodedCommand, problem: Exception) -> None:
        """What was decided about its subject could not be replayed. Nothing of it is written."""
        self.take_offline(command.subject, problem)
        command.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _on_command_failed(self, subject: str | None, problem: Exception, *, only_reads: bool) -> None:
        is_harmless = only_reads or not self.machine.has_soft_state
        if is_harmless and subject is not None and not isinstance(problem, AssertionError):
            self._faults.error(f"a command about {subject} of {self.partition.name} failed", problem)
        else:
            self.take_offline(subject, problem)

    def query(
        self,
        read: Callable[[MachineT, int], ReplyT],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
        subject: str | None = None,
    ) -> None:
        """Reads state, and tells of it once all that it came from is committed."""
        error = self._refusal_of(subject)
        if error:
            failed(error)
            return
        try:
            found = read(self.machine, self._clock.now_ms())
        except Exception as problem:
            self._faults.error(f"cannot read {subject or 'something'} of {self.partition.name}", problem)
            failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._log.tell_when_committed(PendingOutcome(found, (), then, failed, subject, current()))

    def _refusal_of(self, subject: str | None) -> ErrorCode:
        if self.state is not CoordinatorState.ACTIVE:
            return self.refusal
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if subject in self.offline else ErrorCode.NONE

    @property
    def refusal(self) -> ErrorCode:
        is_loading = self.state is CoordinatorState.LOADING
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR

    def _carry_out(
        self,
        decision: CoordinatorDecision[ReplyT],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
        subject: str | None,
        now_ms: int,
    ) -> None:
        reply, records, answers, timers, _, _, followed_by, all_broken = decision
        for broken, problem in all_broken:
            self.take_offline(broken, problem)
        error = self._accept(decision, subject, now_ms) if records else ErrorCode.NONE
        following: CoordinatorDecision[None] | None = None
        try:
            if error:
                if self.state is CoordinatorState.ACTIVE:
                    following = self.machine.on_refused(decision, error, now_ms)
            elif followed_by is not None:
                following = followed_by(self.machine, now_ms)
        except Exception as problem:
            self.take_offline(subject, problem)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        if error:
            failed(error)
        else:
            if timers:
                self._timers.set(timers)
            self._log.tell_when_committed(as_waiting((reply, answers, then, failed, subject, WORK.request)))
        if following is not None:
            self._carry_out(following, _nothing, _nothing, subject, now_ms)

    def _on_timer(self, name: TimerName, expire: Expire) -> None:
        subject = name[1]

        def failed(_error: ErrorCode) -> None:
            if self.state is CoordinatorState.ACTIVE and subject not in self.offline:
                self._timers.set([Timer(name, _RETRY_MS, expire)])

        self.submit(expire, _nothing, failed, subject)

    @property
    def timer_count(self) -> int:
        return len(self._timers)

    def expire_now(self, kind: str, subject: str, member_id: str | None = None) -> list[TimerName]:
        """Fires the timers of that kind that a subject has, of one member or of all; returns which. For tests."""
        found = [name for name in self._timers.names() if name[:2] == (kind, subject)]
        found = [name for name in found if member_id in (None, name[2])]
        for name in found:
            self._timers.expire(name)
        return found

    # Records

    def _accept(self, decision: CoordinatorDecision[Any], subject: str | None, now_ms: int) -> ErrorCode:
        """Replays the decision's records, and has them written with the others of this turn."""
        error = self._log.refusal
        if decision.atomic:
            return error or self._accept_together(decision.records, decision.transaction, subject, now_ms)
        for records in in_parts(decision.records, self.machine.encode, self._log.max_batch_bytes):
            error = error or self._accept_together(records, decision.transaction, subject, now_ms)
        return error

    def _accept_together(
        self,
        records: Sequence[CoordinatorRecord],
        transaction: TransactionStamp | None,
        subject: str | None,
        now_ms: int,
    ) -> ErrorCode:
        try:
            written = list(map(self.machine.encode, records))
        except Exception as problem:
            what = f"cannot encode what was decided about {subject or self.partition.name}"
            self._faults.error(what, problem)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        size = size_of(written)
        error = self._log.make_room(written, size, transaction, now_ms)
        if error:
            return error
        broken = self._replay(records, transaction)
        if self.is_closed:
            return ErrorCode.NOT_COORDINATOR
        if broken:
            subject_of = self.machine.subject_of
            written = [one for one, (key, _, _) in zip(written, records, strict=True) if subject_of(key) not in broken]
        self._log.add(written, size, now_ms)
        return ErrorCode.UNKNOWN_SERVER_ERROR if subject is not None and subject in broken else ErrorCode.NONE

    def _replay(self, records: Sequence[CoordinatorRecord], transaction: TransactionStamp | None) -> set[str | None]:
        """Replays what is decided. Returns the subjects that raised: none of their records is to be written."""
        machine, broken = self.machine, set[str | None]()
        for key, value, _ in records:
            try:
                if transaction is None:
                    machine.replay(key, value)
                else:
                    machine.replay_in_transaction(transaction, key, value)
            except Exception as problem:
                subject = machine.subject_of(key)
                if subject not in broken:
                    broken.add(subject)
                    self.take_offline(subject, problem)
        return broken

    def write(self) -> None:
        """Appends what has been gathered."""
        self._log.write()

    def end_transaction(
        self,
        stamp: TransactionStamp,
        marker: EndTransactionMarker,
        then: Callable[[None], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Writes a producer's marker into this partition: its transaction here is decided (WriteTxnMarkers)."""
        error = self._refusal_of(None) or self._log.append_open()
        if not error:
            error = self._log.append(build_end_transaction_marker(marker, *stamp, self._clock.now_ms()))
        if error:
            failed(error)
        else:
            self.machine.replay_end_of_transaction(stamp, committed=marker.committed)
            self._log.on_appended(PendingOutcome(None, (), then, failed, None, current()))
        self._log.write()


def _nothing(_: Any) -> None:
    """Nobody waits for the outcome."""


gather = find_gather(CoordinatedPartition, CoordinatorState.ACTIVE)
