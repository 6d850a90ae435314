"""Drives the metadata of a node: the controller decides, the log keeps, and what is committed becomes the image.

Theory of operation. There are two images. The controller's is ahead: it holds what is decided, so that the next one
builds on it. The committed one is what the node acts on; it changes only when the high watermark passes a record, and
its listeners hear of the change then, and only then are replies given out. So nobody ever sees what a crash could still
take back.

    submit -> decide -> append -> [controller's image] -> flush on a worker -> Raft: high watermark
           -> [committed image] -> listeners hear the delta -> replies, in order

One flush is under way at a time. Decisions that come meanwhile are appended and wait for the next one, together: the
more there are, the fewer syncs each costs. A decision without records is a reading; it may rest on records that are not
committed yet, and is given out when they are.

The committed image is made from the log (at start, and where somebody else leads) or from what was just appended, which
are the same records. A controller is made when this replica leads and all before its epoch is committed, from a copy of
the committed image, and is dropped with what it had decided when it no longer leads.

Where another replica leads, this one follows it (`metadata_follower`); replicas that fetch from this one are answered
by `metadata_leader`, and what they ask of the quorum by `quorum_answers`.

One file because all of it keeps the same things in step: the log and what of it is durable, the two images, and the
replies that wait.

A disk that fails here is the end of the node: an append or a sync that did not work leaves it unknown what is in the
log, and only a restart finds out. So is a committed record that cannot be replayed, or that a listener cannot take up:
the node would act on other metadata than the cluster has. `failed` is told once; nothing is accepted after that. A
decision that the controller itself cannot replay is a bug of that decision: it does not get into the log, its request
fails, and a controller that has not seen it takes over.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.base.errors import StorageError
from ottla.base.ports import Clock, Entropy, Timers, Workers
from ottla.log.flush import Flush
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.image.delta import MetadataDelta, delta_between
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.events import BeginEpoch, Flushed, LogEnd, SaveQuorumState, ShutdownRequested, Started
from ottla.machines.raft.machine import Role, Timeouts
from ottla.machines.raft.voters import Voter, VoterSet
from ottla.records.batch import peek_header
from ottla.records.kraft_control import KraftMessage
from ottla.runtime.attribution import Attributed, current, work_for
from ottla.runtime.metadata.controller_machine import ControllerMachine
from ottla.runtime.metadata.metadata_batches import MetadataBatch, control_batch, metadata_batches
from ottla.runtime.metadata.metadata_follower import MetadataFollower
from ottla.runtime.metadata.metadata_leader import MetadataLeader
from ottla.runtime.metadata.quorum import epoch_records, raft_of
from ottla.runtime.metadata.quorum_answers import QuorumAnswers
from ottla.runtime.metadata.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum_network import QuorumNetwork
from ottla.runtime.metadata.snapshots import Snapshot, SnapshotId
from ottla.runtime.metadata.snapshotter import SnapshotConfig, Snapshotter, is_passing
from ottla.runtime.metadata.store import MetadataStore, voter_changes
from ottla.runtime.metadata.voter_changes import VoterChanges
from ottla.runtime.peers.node_connection import NodeAddress
from ottla.runtime.peers.remote_controller import ActiveController
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import BeginTransactionRecord, EndTransactionRecord


class MetadataLogFailed(StorageError):
    """The metadata log cannot be written, or what is in it not be taken up, so the node must stop."""


ControllerT = TypeVar("ControllerT", bound=ControllerMachine)
ReplyT = TypeVar("ReplyT")


class _Parked(NamedTuple):
    """A reply that waits for the log to be committed up to `offset`."""

    offset: int
    give: Callable[[], None]
    failed: Callable[[ErrorCode], None]
    request: Attributed | None


class MetadataLog(Generic[ControllerT]):
    """See the module. Everything is called on the loop's thread; `start` first, `stop` last."""

    def __init__(
        self,
        store: MetadataStore,
        me: Voter,
        static_voters: VoterSet | None,
        *,
        bootstrap: Sequence[Message],
        make_controller: Callable[[MetadataImage], ControllerT],
        workers: Workers,
        clock: Clock,
        failed: Callable[[MetadataLogFailed], None],
        snapshots: SnapshotConfig | None = None,
        timers: Timers | None = None,
        entropy: Entropy | None = None,
        network: QuorumNetwork | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """`static_voters` are those of `controller.quorum.voters`, None where there is no such setting.

        `bootstrap` are the records of `bootstrap.checkpoint`, which a log that is empty begins with. Without a
        `network`, and the timers and chance that elections need, this is a quorum of one or none.
        """
        self.image = MetadataImage()
        self.controller: ControllerT | None = None
        self._store = store
        self._bootstrap = bootstrap
        self._make_controller = make_controller
        self._workers = workers
        self._clock = clock
        self._failed = failed
        self._snapshotter = Snapshotter(store, snapshots or SnapshotConfig(), workers, clock, self._on_snapshot)
        self._listeners: list[Callable[[MetadataDelta], None]] = []
        self._ready: Callable[[], None] | None = None
        self._stopped: Callable[[], None] | None = None
        self._problem: MetadataLogFailed | None = None
        self._parked: deque[_Parked] = deque()
        self._uncommitted: deque[MetadataBatch] = deque()
        self._is_flushing = False
        self.is_receiving = False
        """A part of a snapshot is being written."""
        self._durable_offset = -1
        self._when_durable: list[tuple[int, Callable[[], None]]] = []
        self._epoch_start = -1
        self._has_resigned = False
        self.committed_offset = store.snapshot_offset
        self.raft = raft_of(store, me, static_voters, timeouts, network)
        self.quorum = QuorumDriver(self.raft, self, workers, timers=timers, entropy=entropy, network=network)
        self._network = network
        self.leader: MetadataLeader | None = None
        self.answers: QuorumAnswers | None = None
        self.voter_changes: VoterChanges | None = None
        self._follower: MetadataFollower | None = None
        if network is not None:
            assert timers is not None
            self._follower = MetadataFollower(self, network, timers)
            self.answers = QuorumAnswers(self, network)
            self.voter_changes = VoterChanges(self, network, clock)
            self.leader = MetadataLeader(
                self, store, cluster_id=network.cluster_id, timers=timers, clock=clock, workers=workers
            )
        if store.newest_snapshot:
            self._snapshotter.last_timestamp_ms = store.newest_snapshot.last_contained_log_timestamp
            for record in store.newest_snapshot.records:
                self.image.replay(record)
            store.newest_snapshot = None  # the image has it now

    @property
    def is_active(self) -> bool:
        """This node's controller decides."""
        return self.controller is not None

    @property
    def high_watermark(self) -> int:
        return self._store.log.high_watermark

    @property
    def log_end_offset(self) -> int:
        return self._store.log.log_end_offset

    @property
    def last_timestamp_ms(self) -> int:
        """When the last committed batch was written."""
        return self._snapshotter.last_timestamp_ms

    def active_controller(self) -> ActiveController | None:
        """The node whose controller decides, and where it is asked; None while nobody is known to lead."""
        raft = self.raft
        if raft.is_leader:
            return ActiveController(raft.me.key.id, NodeAddress("", 0))
        if raft.role is not Role.FOLLOWER or self._network is None:
            return None
        address = self._network.address_of(raft.leader_id, raft.voters)
        return ActiveController(raft.leader_id, address) if address is not None else None

    def listen(self, listener: Callable[[MetadataDelta], None]) -> None:
        """Tells `listener` of every committed change from here on, after the image has it and before any reply."""
        self._listeners.append(listener)

    # Starting and stopping

    def start(self, ready: Callable[[], None]) -> None:
        """Loads the metadata and takes its place in the quorum.

        `ready` is called once, when the image is that of the cluster: the controller of this node has decided its
        first, or this replica has caught up with the one that leads.
        """
        self._ready = ready
        self.quorum.step(Started())

    def resign(self) -> None:
        """Gives up the lead, and tells the other voters, so that one of them takes it at once."""
        if self._problem is None and not self._has_resigned:
            self._has_resigned = True
            self.quorum.step(ShutdownRequested())

    def stop(self, then: Callable[[], None]) -> None:
        """Resigns, waits for the disk, and closes the log. What is not committed by then is not answered."""
        assert self._stopped is None, "stopped twice"
        self._stopped = then
        self.resign()
        if self._follower is not None:
            self._follower.stop()
        self.quorum.stop()
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        if self._stopped is None or self._is_flushing or self.is_receiving or self.quorum.is_saving:
            return
        if self._snapshotter.is_writing:
            return
        then, self._stopped = self._stopped, None
        if self._problem is None:
            self._workers.run(self._store.close, lambda _: then(), lambda problem: self._close_failed(problem, then))
        else:
            self._store.release()
            then()

    def _close_failed(self, problem: Exception, then: Callable[[], None]) -> None:
        self._fail(problem)
        then()

    # Deciding

    def submit(
        self,
        decide: Callable[[ControllerT, int], Decision[ReplyT]],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Lets the controller decide now; gives the reply out when the decision, and all it rests on, is committed.

        `failed` hears NOT_CONTROLLER where nothing is decided here, and KAFKA_STORAGE_ERROR when the log fails with the
        decision under way, which may or may not be found in it at the next start.
        """
        if self.controller is None:
            failed(ErrorCode.NOT_CONTROLLER)
            return
        self.controller.next_offset = self.log_end_offset
        decision = decide(self.controller, int(self._clock.elapsed_s() * 1000))
        self._carry_out(decision, lambda: then(decision.reply), failed)

    def _carry_out(
        self, decision: Decision[Any], give: Callable[[], None], failed: Callable[[ErrorCode], None]
    ) -> None:
        if decision.records and not self._append_records(decision.records, decision.atomic):
            failed(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        if not self._parked and self.committed_offset >= self.log_end_offset:
            give()
            return
        self._parked.append(_Parked(self.log_end_offset, give, failed, current()))
        self._flush()

    def _append_records(self, records: list[VersionedRecord], atomic: bool) -> bool:
        """One batch, if it is not too large for one. Several that belong together are put into a transaction.

        The controller takes the records in first: one that does not follow is a bug, and must not get into the log.
        What it raises is the request's to fail with.
        """
        now_ms = self._clock.now_ms()
        batches = list(metadata_batches(records, now_ms))
        is_bracketed = any(isinstance(record.message, BeginTransactionRecord) for record in records)
        if atomic and len(batches) > 1 and not is_bracketed:
            begin, end = BeginTransactionRecord(name="Large decision"), EndTransactionRecord()
            records = [VersionedRecord(begin, 0), *records, VersionedRecord(end, 0)]
            batches = list(metadata_batches(records, now_ms))
        assert self.controller is not None
        try:
            for record in records:
                self.controller.replay(record.message)
        except Exception:
            self._replace_controller()
            raise
        return self._guarded(lambda: self._append_all(batches, [record.message for record in records]))

    def _append_all(self, batches: list[bytearray], messages: list[Message]) -> None:
        for batch in batches:
            count = peek_header(batch).record_count
            self._append(batch, messages[:count], [])
            messages = messages[count:]

    def _append(self, batch: bytearray, records: list[Message], control: list[KraftMessage]) -> None:
        epoch = self.raft.epoch
        base_offset = self._store.append(batch, epoch)
        header = peek_header(batch)
        self.raft.log_end = LogEnd(epoch, header.next_offset)
        self._uncommitted.append(
            MetadataBatch(base_offset, header.next_offset, epoch, header.max_timestamp, header.size, records, control)
        )
        self._note_voters(base_offset, control)
        if self.leader is not None:
            self.leader.on_appended()

    def _note_voters(self, base_offset: int, control: Sequence[KraftMessage]) -> None:
        for change in voter_changes(base_offset, control):
            self.quorum.add(
                self.raft.on_voters(change.offset, kraft_version=change.kraft_version, voters=change.voters)
            )

    # Committing

    def _flush(self) -> None:
        """Starts a flush of all that is appended, unless one is under way, which is then followed by another."""
        if self._is_flushing or self._durable_offset >= self.log_end_offset or self._problem:
            return
        self._is_flushing = True
        flush = self._store.start_flush()
        self._workers.run(flush.run, lambda _: self._on_flushed(flush), self._on_flush_failed)

    def _on_flushed(self, flush: Flush) -> None:
        self._is_flushing = False
        # A log that was cut meanwhile may hold other records than those that were synced.
        self._durable_offset = min(self._store.finish_flush(flush), self.log_end_offset)
        self.quorum.step(Flushed(self._durable_offset))
        self._flush()
        durable, self._when_durable = self._when_durable, []
        for offset, then in durable:
            if offset <= self._durable_offset:
                then()
            else:
                self._when_durable.append((offset, then))
        self._close_when_idle()

    def _on_flush_failed(self, problem: Exception) -> None:
        self._is_flushing = False
        self._fail(problem)
        self._close_when_idle()

    # What the quorum orders

    def save_quorum_state(self, save: SaveQuorumState) -> Callable[[], None]:
        kraft_version, voter_ids = self.raft.kraft_version, self.raft.voters.ids
        return lambda: self._store.save_quorum_state(save.state, kraft_version, voter_ids)

    def begin_epoch(self, begin: BeginEpoch) -> None:
        if self._guarded(lambda: self._begin_epoch(begin)):
            self._flush()

    def _begin_epoch(self, begin: BeginEpoch) -> None:
        control = epoch_records(self.raft, begin)
        self._epoch_start = self.log_end_offset
        self._append(control_batch(control, self._clock.now_ms()), [], control)

    def follow(self, leader_id: int, epoch: int) -> None:
        assert self._follower is not None, f"a quorum of one does not follow {leader_id}"
        self._follower.follow(leader_id, epoch)

    def find_leader(self) -> None:
        assert self._follower is not None, "a quorum of one looks for nobody"
        self._follower.find_leader()

    # Changing the voters

    def change_voters(self, voters: VoterSet, then: Callable[[], None], failed: Callable[[ErrorCode], None]) -> None:
        """Writes other voters, one more or one less; `then` is called when that is committed, by their majority.

        One change at a time: the one before must be committed, and a record of this epoch too (KIP-853).
        """
        if self.controller is None:
            failed(ErrorCode.NOT_CONTROLLER)
            return
        if self.raft.history.offset >= self.committed_offset:
            failed(ErrorCode.REQUEST_TIMED_OUT)
            return
        control: list[KraftMessage] = [voters.to_record()]
        if not self._guarded(lambda: self._append(control_batch(control, self._clock.now_ms()), [], control)):
            failed(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._parked.append(_Parked(self.log_end_offset, then, failed, current()))
        self._flush()
        self.quorum.perform()

    def _resign_if_removed(self) -> None:
        """A leader that has removed itself leads until that is committed."""
        raft = self.raft
        if raft.is_leader and not raft.is_voter and self.committed_offset > raft.history.offset:
            self.quorum.step(ShutdownRequested())

    # Following

    def append_as_follower(self, data: bytes) -> None:
        for batch in self._store.append_as_follower(data):
            self._note_voters(batch.base_offset, batch.control)
        self.raft.log_end = self._store.log_end
        self.quorum.perform()

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Cuts the log where it and the leader's part: at the end of the epoch in question, whichever is earlier."""
        own = self._store.end_of_epoch(epoch)
        target = min(own.offset, end_offset) if own.epoch == epoch else own.offset
        assert target >= self.committed_offset, f"offset {target} is committed, and the leader has something else there"
        self._store.truncate(target)
        self._durable_offset = min(self._durable_offset, self.log_end_offset)
        self.raft.on_truncated(self._store.log_end)

    def when_durable(self, then: Callable[[], None]) -> None:
        if not self.raft.is_voter or self._durable_offset >= self.log_end_offset:
            then()
        else:
            self._when_durable.append((self.log_end_offset, then))
            self._flush()

    def receive_snapshot(
        self, snapshot: SnapshotId, position: int, data: bytes, size: int, then: Callable[[bool], None]
    ) -> None:
        assert not self.is_receiving, "two parts of a snapshot at once"
        self.is_receiving = True
        epoch = self.raft.epoch

        def kept(read: Snapshot | None) -> None:
            self.is_receiving = False
            if self.raft.epoch != epoch:  # The next leader may have older records, and this log them since.
                read = None
            if read is not None and not self._guarded(lambda: self._begin_after(snapshot, read)):
                return
            then(read is not None)
            self._close_when_idle()

        def failed(problem: Exception) -> None:
            self.is_receiving = False
            self._fail(problem)
            self._close_when_idle()

        self._workers.run(lambda: self._store.keep_snapshot_part(snapshot, position, data, size), kept, failed)

    def _begin_after(self, snapshot: SnapshotId, read: Snapshot) -> None:
        """The leader's snapshot replaces the log and the image; listeners hear what lies between the two images."""
        self._store.begin_after(snapshot)
        self._durable_offset = snapshot.end_offset
        self.raft.on_snapshot(
            LogEnd(snapshot.epoch, snapshot.end_offset), read.kraft_version, read.voters or self.raft.voters
        )
        image = MetadataImage()
        for record in read.records:
            image.replay(record)
        delta = delta_between(self.image, image)
        self.image.become(image)
        self.committed_offset = snapshot.end_offset
        self._snapshotter.begin_after(read.last_contained_log_timestamp)
        for listener in self._listeners:
            listener(delta)

    def commit(self, offset: int) -> None:
        """Makes everything before `offset` known: first to the image, then to the listeners, then by the replies."""
        self._store.log.advance_high_watermark(offset)
        delta = MetadataDelta()
        if not self._guarded(lambda: self._replay_to(offset, delta)):
            return
        if delta and not all(self._guarded(partial(listener, delta)) for listener in self._listeners):
            return
        while self._parked and self._parked[0].offset <= self.committed_offset:
            parked = self._parked.popleft()
            work_for(parked.request, parked.give)
        if self.controller is None and self.raft.is_leader and self.committed_offset > self._epoch_start >= 0:
            self._activate()
        if self.leader is not None:
            self.leader.on_committed()
        self._resign_if_removed()
        self._take_snapshot_if_due()

    def caught_up_to(self, high_watermark: int) -> None:
        """The leader has told its high watermark. The first time that this replica is as far, it is ready."""
        if self._ready is not None and 0 < high_watermark <= self.committed_offset:
            ready, self._ready = self._ready, None
            ready()

    def _replay_to(self, offset: int, delta: MetadataDelta) -> None:
        for batch in self._batches_to(offset):
            for record in batch.records:
                self.image.replay(record, delta)
            self.committed_offset = batch.next_offset
            self._snapshotter.note(batch)

    def _batches_to(self, offset: int) -> Iterator[MetadataBatch]:
        """What is to be committed: from the log what this controller did not write, then what it did."""
        from_memory = self._uncommitted[0].base_offset if self._uncommitted else offset
        yield from self._store.read(self.committed_offset, min(from_memory, offset))
        while self._uncommitted and self._uncommitted[0].next_offset <= offset:
            yield self._uncommitted.popleft()

    # Leading

    def _activate(self) -> None:
        """All before this epoch is committed, so the controller knows all that it must to decide."""
        controller = self._new_controller()
        ready, self._ready = self._ready, None
        self._carry_out(controller.activate(self._bootstrap), ready or (lambda: None), lambda _: None)

    def _replace_controller(self) -> None:
        """The controller has taken in a part of what it could not take in: another goes on from what is in the log."""
        controller = self._new_controller()
        for batch in self._uncommitted:
            for record in batch.records:
                controller.replay(record)

    def _new_controller(self) -> ControllerT:
        self.controller = self._make_controller(self.image.copy())
        self.controller.kraft_version = self.raft.kraft_version
        self.controller.next_offset = self.log_end_offset
        return self.controller

    def stop_leading(self) -> None:
        self.controller = None
        self._epoch_start = -1
        self._uncommitted.clear()
        self._refuse_parked(ErrorCode.NOT_CONTROLLER)
        if self.leader is not None:
            self.leader.on_stopped()

    def _refuse_parked(self, error: ErrorCode) -> None:
        while self._parked:
            parked = self._parked.popleft()
            work_for(parked.request, parked.failed, error)

    # Snapshots

    def maintain(self) -> None:
        """To be called now and then: a snapshot when it is time for one, and what retention no longer wants removed."""
        if self._problem is None and self._stopped is None:
            self._take_snapshot_if_due()
            self._clean()

    def _take_snapshot_if_due(self) -> None:
        if self._snapshotter.is_due:
            self._snapshotter.take(self.image, self.raft, self.committed_offset)

    def _on_snapshot(self, problem: Exception | None) -> None:
        if problem is None:
            self._clean()
        elif not is_passing(problem):
            self._fail(problem)
        self._close_when_idle()

    def _clean(self) -> None:
        """Housekeeping: what a lack of descriptors or memory keeps from being removed now is removed later."""
        try:
            self._store.clean()
        except Exception as problem:
            if not is_passing(problem):
                self._fail(problem)

    # Failing

    def _guarded(self, work: Callable[[], Any]) -> bool:
        """Does something that the node cannot go on without; False, and the end of this log, if that fails."""
        try:
            work()
        except Exception as problem:
            self._fail(problem)
            return False
        return True

    def fail(self, problem: Exception) -> None:
        self._fail(problem)
        self._close_when_idle()

    def _fail(self, problem: Exception) -> None:
        if self._problem is not None:
            return
        self.quorum.stop()
        if self._follower is not None:
            self._follower.stop()
        self._problem = MetadataLogFailed(f"the metadata log in {self._store.directory} failed: {problem}")
        self._problem.__cause__ = problem
        self.controller = None
        self._failed(self._problem)
        self._refuse_parked(ErrorCode.KAFKA_STORAGE_ERROR)
