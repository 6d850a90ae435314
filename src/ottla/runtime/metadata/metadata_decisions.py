"""What the controller of a replica that leads decides, until it is committed and the replies are given out.

A controller's image is ahead of the committed one: it holds what is decided, so that the next decision builds on it. A
decision without records is a reading; it may rest on records that are not committed yet, and is given out when they
are.

A controller is made when this replica leads and all before its epoch is committed, from a copy of the committed image,
and is dropped with what it had decided when it no longer leads. A decision that it cannot replay itself is a bug of
that decision: it does not get into the log, its request fails, and a controller that has not seen it takes over.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from ottla.base.ports import Clock, Timer, Timers
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.machine import Raft
from ottla.records.batch import peek_header
from ottla.records.control import KraftMessage
from ottla.runtime.attribution import Attributed, current, work_for
from ottla.runtime.metadata.storage.metadata_batches import MAX_BATCH_BYTES, MetadataBatch, metadata_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import BeginTransactionRecord, EndTransactionRecord

# How long the leader gathers what is decided before it writes it in one flush (`controller.quorum.append.linger.ms`).
#
# Decisions are in the log at once, so that the next ones build on them. Until the time is over they are neither flushed
# nor given to replicas that fetch: one flush of each replica is then for all of them. The time begins with the first
# decision after the last write; a batch's worth of bytes ends it early, and so do the quorum's own records, which wait
# for nobody.
#
# With no time to gather, which is how a node runs with its default settings, everything is written at once. What comes
# while a flush is under way is written together by the next, so gathering only makes requests wait ([decision
# 14](docs/decisions/0014-metadata-is-written-at-once.md)).


class Gathering:
    """`from_offset` is where what is gathered begins, None if nothing is. `over` is called when the time is."""

    def __init__(self, linger_ms: int, timers: Timers | None, over: Callable[[], None]) -> None:
        self.from_offset: int | None = None
        assert timers is not None or not linger_ms, "gathering takes time"
        self._linger_ms = linger_ms
        self._timers = timers
        self._over = over
        self._timer: Timer | None = None
        self._bytes = 0

    def add(self, base_offset: int, size: int) -> None:
        """A batch was appended that may wait."""
        if not self._linger_ms:
            return
        self._bytes += size
        if self._bytes >= MAX_BATCH_BYTES:
            self.end()
        elif self.from_offset is None:
            assert self._timers is not None
            self.from_offset = base_offset
            self._timer = self._timers.after(self._linger_ms / 1000, self._on_time_over)

    def end(self) -> None:
        """All that is appended may be written now."""
        if self._timer is not None:
            self._timer.cancel()
        self.from_offset, self._timer, self._bytes = None, None, 0

    def _on_time_over(self) -> None:
        self.end()
        self._over()


# What the driver of the metadata log needs of the machine that decides.


class ControllerMachine(Protocol):
    """What the driver needs of a controller; see `ottla.machines.metadata.controller.controller`."""

    next_offset: int
    """The offset that the next record gets, which the driver says before every decision."""
    kraft_version: int

    def activate(self, bootstrap: Sequence[Message]) -> Decision[None]:
        """What it writes first."""
        ...

    def take_over_from(self, other: Self) -> None:
        """Goes on in the place of a controller that led until now: what no log says is known all the same."""
        ...

    def replay(self, record: Message) -> None:
        """Takes in, at once, what it has just decided."""
        ...


ControllerT = TypeVar("ControllerT", bound=ControllerMachine)
ReplyT = TypeVar("ReplyT")


class _Parked(NamedTuple):
    """A reply that waits for the log to be committed up to `offset`."""

    offset: int
    give: Callable[[], None]
    failed: Callable[[ErrorCode], None]
    request: Attributed | None


class DecidedLog(Protocol):
    """The log as decisions make it longer."""

    image: MetadataImage
    raft: Raft
    committed_offset: int

    @property
    def log_end_offset(self) -> int: ...
    def append(self, batch: bytearray, records: list[Message], control: list[KraftMessage]) -> None: ...
    def flush(self) -> None: ...

    def apart(self, callback: Callable[..., object], *arguments: Any) -> bool:
        """Calls back; what that raises is not the log's, nor of the others who are called (`runtime.apart`)."""

    def guarded(self, work: Callable[[], Any]) -> bool:
        """Does something that the node cannot continue without; False, and the end of this log, if that fails."""


class MetadataDecisions(Generic[ControllerT]):
    """`controller` is None while another replica leads, or nobody does."""

    def __init__(
        self,
        log: DecidedLog,
        clock: Clock,
        make_controller: Callable[[MetadataImage], ControllerT],
        bootstrap: Sequence[Message],
    ) -> None:
        self.controller: ControllerT | None = None
        self._log = log
        self._clock = clock
        self._make_controller = make_controller
        self._bootstrap = bootstrap
        self._parked: deque[_Parked] = deque()
        self._uncommitted: deque[MetadataBatch] = deque()

    # Deciding

    def submit(
        self,
        decide: Callable[[ControllerT, int], Decision[ReplyT]],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """See `MetadataLog.submit`."""
        if self.controller is None:
            failed(ErrorCode.NOT_CONTROLLER)
            return
        self.controller.next_offset = self._log.log_end_offset
        decision = decide(self.controller, int(self._clock.elapsed_s() * 1000))
        self._carry_out(decision, lambda: then(decision.reply), failed)

    def _carry_out(
        self, decision: Decision[Any], give: Callable[[], None], failed: Callable[[ErrorCode], None]
    ) -> None:
        error = self._append_records(decision.records, decision.atomic) if decision.records else ErrorCode.NONE
        if error:
            failed(error)
            return
        if not self._parked and self._log.committed_offset >= self._log.log_end_offset:
            give()
            return
        self.park(give, failed)
        self._log.flush()

    def park(self, give: Callable[[], None], failed: Callable[[ErrorCode], None]) -> None:
        """A reply that is given out when all that is in the log now is committed."""
        self._parked.append(_Parked(self._log.log_end_offset, give, failed, current()))

    def _append_records(self, records: list[VersionedRecord], atomic: bool) -> ErrorCode:
        """One batch, if it is not too large for one. Several that belong together are put into a transaction.

        A record that is too large for a batch is refused, as Apache Kafka refuses it: replicas may have segments of no
        more than that. The controller takes the records in first: one that does not follow is a bug, and must not get
        into the log. What it raises is the request's to fail with.
        """
        now_ms = self._clock.now_ms()
        batches = list(metadata_batches(records, now_ms))
        is_bracketed = any(isinstance(record.message, BeginTransactionRecord) for record in records)
        if atomic and len(batches) > 1 and not is_bracketed:
            begin, end = BeginTransactionRecord(name="Large decision"), EndTransactionRecord()
            records = [VersionedRecord(begin, 0), *records, VersionedRecord(end, 0)]
            batches = list(metadata_batches(records, now_ms))
        if any(len(batch) > MAX_BATCH_BYTES for batch in batches):
            return ErrorCode.RECORD_LIST_TOO_LARGE
        assert self.controller is not None
        try:
            for record in records:
                self.controller.replay(record.message)
        except Exception:
            self._replace_controller()
            raise
        is_appended = self._log.guarded(lambda: self._append_all(batches, [record.message for record in records]))
        return ErrorCode.NONE if is_appended else ErrorCode.KAFKA_STORAGE_ERROR

    def _append_all(self, batches: list[bytearray], messages: list[Message]) -> None:
        for batch in batches:
            count = peek_header(batch).record_count
            self._log.append(batch, messages[:count], [])
            messages = messages[count:]

    # Committing

    def note(self, batch: MetadataBatch) -> None:
        """It is in the log, and not committed yet."""
        self._uncommitted.append(batch)

    def first_uncommitted(self) -> int | None:
        """From here on, what is to be committed need not be read from the log."""
        return self._uncommitted[0].base_offset if self._uncommitted else None

    def committed_to(self, offset: int) -> Iterator[MetadataBatch]:
        """Those of the noted batches that are committed now; they are forgotten."""
        while self._uncommitted and self._uncommitted[0].next_offset <= offset:
            yield self._uncommitted.popleft()

    def give_replies(self) -> None:
        """The log is committed further, and everybody who listens has heard of it."""
        while self._parked and self._parked[0].offset <= self._log.committed_offset:
            parked = self._parked.popleft()
            self._log.apart(work_for, parked.request, parked.give)

    def refuse(self, error: ErrorCode) -> None:
        """To all that wait."""
        while self._parked:
            parked = self._parked.popleft()
            self._log.apart(work_for, parked.request, parked.failed, error)

    # Controllers

    def activate(self, ready: Callable[[], None]) -> None:
        """All before this epoch is committed, so the controller knows all that it must to decide.

        `ready` is called when its first batch is committed, and never if the epoch or the log ends before. A
        controller that cannot decide on its first batch, or not replay it, is none: what it raises ends the log.
        """
        controller = self._new_controller()
        self._carry_out(controller.activate(self._bootstrap), ready, lambda _: None)

    def drop(self) -> None:
        """Another replica may lead now: what was decided here and is not committed may never be."""
        self.controller = None
        self._uncommitted.clear()
        self.refuse(ErrorCode.NOT_CONTROLLER)

    def _replace_controller(self) -> None:
        """The controller has taken in a part of what it could not take in: another continues from the log."""
        before = self.controller
        controller = self._new_controller()
        if before is not None:
            controller.take_over_from(before)
        for batch in self._uncommitted:
            for record in batch.records:
                controller.replay(record)

    def _new_controller(self) -> ControllerT:
        self.controller = self._make_controller(self._log.image.copy())
        self.controller.kraft_version = self._log.raft.kraft_version
        self.controller.next_offset = self._log.log_end_offset
        return self.controller
