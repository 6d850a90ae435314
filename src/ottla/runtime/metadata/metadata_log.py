"""Drives the metadata of a node: the controller decides, the log keeps, and what is committed becomes the image.

Theory of operation. There are two images. The controller's is ahead: it holds what is decided, so that the next one
builds on it. The committed one is what the node acts on; it changes only when the high watermark passes a record, and
its listeners hear of the change then, and only then are replies given out. So nobody ever sees what a crash could still
take back.

    submit -> decide -> append -> [controller's image] -> gather -> flush on a worker -> Raft: high watermark
           -> [committed image] -> listeners hear the delta -> replies, in order

The controller and the replies that wait are in `metadata_decisions`, the flushes in `metadata_flushes`, and how long
decisions are gathered for one in `gathering`. The committed image is made from the log (at start, and where somebody
else leads) or from what was just appended, which are the same records; or from a snapshot of the leader's
(`snapshot_receiver`).

Where another replica leads, this one follows it (`metadata_follower`); replicas that fetch from this one are answered
by `metadata_leader`, and what they ask of the quorum by `quorum_answers`.

A disk that fails here is the end of the node: an append or a sync that did not work leaves it unknown what is in the
log, and only a restart finds out. So is a committed record that cannot be replayed, which is reported by its offset:
the node would decide on other metadata than the cluster has. `failed` is called once; nothing is accepted after that.

A listener that raises over what is committed is a fault of its own (`runtime.apart`), which is logged with the records
in question: the same ones would end every node of the cluster. The other listeners hear of them, and the replies go
out.

One file because appending, gathering, flushing, committing and answering are one order, which a change to any of them
must have in view.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple

from ottla.base.errors import StorageError
from ottla.base.ports import Clock, Entropy, Timers, Workers
from ottla.machines.decision import Decision
from ottla.machines.metadata.image.delta import MetadataDelta, delta_between
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.events import BeginEpoch, Flushed, LogEnd, SaveQuorumState, ShutdownRequested, Started
from ottla.machines.raft.machine import Timeouts
from ottla.machines.raft.voters import DYNAMIC_VOTERS, Voter, VoterSet
from ottla.records.batch import peek_header
from ottla.records.control import KraftMessage
from ottla.runtime.apart import apart
from ottla.runtime.attribution import WORK
from ottla.runtime.metadata.metadata_decisions import ControllerT, Gathering, MetadataDecisions, ReplyT
from ottla.runtime.metadata.quorum.quorum_answers import QuorumAnswers
from ottla.runtime.metadata.quorum.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.runtime.metadata.quorum.quorum_of_directory import active_controller, epoch_records, raft_of
from ottla.runtime.metadata.quorum.voter_changes import VoterChanges
from ottla.runtime.metadata.replication.metadata_follower import MetadataFollower
from ottla.runtime.metadata.replication.metadata_leader import MetadataLeader
from ottla.runtime.metadata.replication.snapshot_receiver import SnapshotReceiver
from ottla.runtime.metadata.snapshotter import SnapshotConfig, Snapshotter
from ottla.runtime.metadata.storage.metadata_batches import MetadataBatch, control_batch
from ottla.runtime.metadata.storage.metadata_flushes import MetadataFlushes
from ottla.runtime.metadata.storage.snapshots import Snapshot, SnapshotId
from ottla.runtime.metadata.storage.store import MetadataStore, voter_changes
from ottla.runtime.peers.remote_controller import ActiveController
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message


class MetadataLogFailed(StorageError):
    """The metadata log cannot be written, or its content not be applied, so the node must stop."""


class Applied(NamedTuple):
    """The records that listeners get: from `first_offset` to before `end_offset`, and of which kinds."""

    first_offset: int
    end_offset: int
    kinds: dict[str, None]

    def __str__(self) -> str:
        first, last = self.first_offset, self.end_offset - 1
        offsets = f"offset {last}" if last <= first else f"offsets {first} to {last}"
        return f"{offsets} of the metadata log: {', '.join(self.kinds)}"


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
        linger_ms: int = 0,
    ) -> None:
        """`static_voters` are those of `controller.quorum.voters`, None where there is no such setting.

        `bootstrap` are the records of `bootstrap.checkpoint`, which a log that is empty begins with. Without a
        `network`, and the timers and chance that elections need, this is a quorum of one or none.
        """
        self.image = MetadataImage()
        self._store = store
        self._decisions: MetadataDecisions[ControllerT] = MetadataDecisions(self, clock, make_controller, bootstrap)
        self._flushes = MetadataFlushes(self, store, workers, timers)
        self._gathering = Gathering(linger_ms, timers, self._on_gathered)
        self._receiver = SnapshotReceiver(self, store, workers)
        self._workers = workers
        self._clock = clock
        self._timers = timers
        self._failed = failed
        self._snapshotter = Snapshotter(self, store, snapshots or SnapshotConfig(), workers, clock)
        self._listeners: list[Callable[[MetadataDelta], None]] = []
        self.on_ready: Callable[[], None] | None = None
        self._stopped: Callable[[], None] | None = None
        self._problem: MetadataLogFailed | None = None
        self._epoch_start = -1
        self._has_resigned = False
        self.committed_offset = store.snapshot_offset
        self._static_voters = static_voters or VoterSet([])
        self.raft = raft_of(store, me, static_voters, timeouts, network)
        self.quorum = QuorumDriver(self.raft, self, workers, timers=timers, entropy=entropy, network=network)
        self._network = network
        self.same_id = network.same_id if network is not None else None
        self.leader: MetadataLeader | None = None
        self.answers: QuorumAnswers | None = None
        self.voter_changes: VoterChanges | None = None
        self._follower: MetadataFollower | None = None
        if network is not None:
            assert timers is not None
            self._follower = MetadataFollower(self, network, timers)
            self.answers = QuorumAnswers(self, network)
            self.voter_changes = VoterChanges(self, network, clock)
            self.leader = MetadataLeader(self, store, network, timers=timers, clock=clock, workers=workers)
        if store.newest_snapshot:
            self._snapshotter.last_timestamp_ms = store.newest_snapshot.last_contained_log_timestamp
            self.image.replay_all(store.newest_snapshot.records)
            store.newest_snapshot = None  # the image has it now

    @property
    def controller(self) -> ControllerT | None:
        """This node's, while it decides."""
        return self._decisions.controller

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
        return active_controller(self.raft, self._network)

    def listen(self, listener: Callable[[MetadataDelta], None]) -> None:
        """Tells `listener` of every committed change from here on, after the image has it and before any reply."""
        self._listeners.append(listener)

    # Starting and stopping

    def start(self, ready: Callable[[], None]) -> None:
        """Loads the metadata and takes its place in the quorum.

        `ready` is called once, when the image is that of the cluster: the controller of this node has decided its
        first, or this replica has caught up with the one that leads.
        """
        self.on_ready = ready
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
        self._gathering.end()
        self.on_idle()

    def on_idle(self) -> None:
        """A worker has come back: a log that is to stop is closed after the last one."""
        if self._stopped is None or self._flushes.is_under_way or self.is_receiving or self.quorum.is_saving:
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
        self._decisions.submit(decide, then, failed)

    def append(self, batch: bytearray, records: list[Message], control: list[KraftMessage]) -> None:
        epoch = self.raft.epoch
        base_offset = self._store.append(batch, epoch)
        header = peek_header(batch)
        self.raft.log_end = LogEnd(epoch, header.next_offset)
        self._decisions.note(
            MetadataBatch(base_offset, header.next_offset, epoch, header.max_timestamp, header.size, records, control)
        )
        self._note_voters(base_offset, control)
        if control:
            self._gathering.end()
        else:
            self._gathering.add(base_offset, header.size)
        if self.leader is not None:
            self.leader.on_appended()

    def _on_gathered(self) -> None:
        if self.leader is not None:
            self.leader.on_appended()
        self.flush()

    @property
    def readable_offset(self) -> int:
        """Replicas that fetch are given what is before it: all of the log but what is still being gathered."""
        gathered_from = self._gathering.from_offset
        return self.log_end_offset if gathered_from is None else gathered_from

    def _note_voters(self, base_offset: int, control: Sequence[KraftMessage]) -> None:
        for offset, kraft_version, voters in voter_changes(base_offset, control):
            self.quorum.add(self.raft.on_voters(offset, kraft_version=kraft_version, voters=voters))
        if self.controller is not None:
            self.controller.kraft_version = self.raft.kraft_version

    # Committing

    def flush(self) -> None:
        if self._gathering.from_offset is None:
            self._flushes.start()

    def on_flushed(self, durable_offset: int) -> None:
        self.quorum.step(Flushed(durable_offset))

    # What the quorum orders

    def save_quorum_state(self, save: SaveQuorumState) -> Callable[[], None]:
        kraft_version, voter_ids = self.raft.kraft_version, self.raft.voters.ids
        return lambda: self._store.save_quorum_state(save.state, kraft_version, voter_ids)

    def begin_epoch(self, begin: BeginEpoch) -> None:
        if self.guarded(lambda: self._begin_epoch(begin)):
            self.flush()

    def _begin_epoch(self, begin: BeginEpoch) -> None:
        control = epoch_records(self.raft, begin)
        self._epoch_start = self.log_end_offset
        self.append(control_batch(control, self._clock.now_ms()), [], control)

    def follow(self, leader_id: int, epoch: int) -> None:
        assert self._follower is not None, f"a quorum of one does not follow {leader_id}"
        self._follower.follow(leader_id, epoch)

    def find_leader(self) -> None:
        assert self._follower is not None, "a quorum of one looks for nobody"
        self._follower.find_leader()

    def write_control(
        self, control: list[KraftMessage], then: Callable[[], None], failed: Callable[[ErrorCode], None]
    ) -> None:
        """`then` is called when they are committed; voters by their own majority."""
        if not self.guarded(lambda: self.append(control_batch(control, self._clock.now_ms()), [], control)):
            failed(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._decisions.park(then, failed)
        self.flush()
        self.quorum.perform()

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
        self._flushes.on_truncated()
        self.raft.on_truncated(self._store.log_end)

    def when_durable(self, then: Callable[[], None]) -> None:
        if self.raft.is_voter or self._store.log.has_unsynced_cut:
            self._flushes.when_durable(then)
        else:
            then()

    @property
    def is_receiving(self) -> bool:
        return self._receiver.is_receiving

    def receive_snapshot(
        self,
        snapshot: SnapshotId,
        position: int,
        data: bytes,
        size: int,
        then: Callable[[bool], None],
        refused: Callable[[], None],
    ) -> None:
        self._receiver.receive(snapshot, position, data, size, then, refused)

    def begin_after(self, snapshot: SnapshotId, read: Snapshot) -> bool:
        return self.guarded(lambda: self._begin_after(snapshot, read))

    def _begin_after(self, snapshot: SnapshotId, read: Snapshot) -> None:
        """The leader's snapshot replaces the log and the image; listeners hear what lies between the two images."""
        self._store.begin_after(snapshot)
        self._flushes.durable_offset = snapshot.end_offset
        # Where the voters are a setting a snapshot names none. The log that it replaces may, in what was not committed.
        voters = self._static_voters if read.kraft_version < DYNAMIC_VOTERS else read.voters or self.raft.voters
        self.raft.on_snapshot(LogEnd(snapshot.epoch, snapshot.end_offset), read.kraft_version, voters)
        image = MetadataImage()
        image.replay_all(read.records)
        delta = delta_between(self.image, image)
        self.image.become(image)
        first_offset, self.committed_offset = self.committed_offset, snapshot.end_offset
        self._snapshotter.begin_after(read.last_contained_log_timestamp)
        self._tell_listeners(delta, Applied(first_offset, snapshot.end_offset, {"a snapshot of the leader's": None}))

    def commit(self, offset: int) -> None:
        """Makes everything before `offset` known: first to the image, then to the listeners, then by the replies."""
        self._store.log.advance_high_watermark(offset)
        delta, kinds, first_offset = MetadataDelta(), dict[str, None](), self.committed_offset
        if not self.guarded(lambda: self._replay_to(offset, delta, kinds)):
            return
        if delta:
            self._tell_listeners(delta, Applied(first_offset, self.committed_offset, kinds))
        self.apart(self._decisions.give_replies)
        if self.controller is None and self.raft.is_leader and self.committed_offset > self._epoch_start >= 0:
            self.guarded(lambda: self._decisions.activate(self._become_ready))
        if self.leader is not None:
            self.apart(self.leader.on_committed)
        if self.voter_changes is not None:
            self.apart(self.voter_changes.resign_if_removed)
        self.apart(self._snapshotter.take_if_due)

    def caught_up_to(self, high_watermark: int) -> None:
        """The leader has sent its high watermark. The first time that this replica is as far, it is ready."""
        if 0 < high_watermark <= self.committed_offset:
            self._become_ready()

    def _become_ready(self) -> None:
        """Says so, the first time. Until then `on_ready` stays: a controller may lose its epoch before its first batch

        is committed, and then another epoch of its own, or the leader that it follows, makes this replica ready.
        """
        ready, self.on_ready = self.on_ready, None
        if ready is not None:
            ready()

    def _tell_listeners(self, delta: MetadataDelta, applied: "Applied") -> None:
        WORK.about = applied
        try:
            for listener in self._listeners:
                self.apart(listener, delta)
        finally:
            WORK.about = None

    def _replay_to(self, offset: int, delta: MetadataDelta, kinds: dict[str, None]) -> None:
        for batch in self._batches_to(offset):
            for number, record in enumerate(batch.records):
                kind = type(record).__name__
                kinds[kind] = None
                try:
                    self.image.replay(record, delta)
                except Exception as problem:
                    where = f"offset {batch.base_offset + number} ({kind})"
                    raise StorageError(f"the record at {where} cannot be applied: {problem}") from problem
            self.committed_offset = batch.next_offset
            self._snapshotter.note(batch)

    def _batches_to(self, offset: int) -> Iterator[MetadataBatch]:
        """What is to be committed: from the log what this controller did not write, then what it did."""
        from_memory = self._decisions.first_uncommitted()
        yield from self._store.read(self.committed_offset, offset if from_memory is None else min(from_memory, offset))
        yield from self._decisions.committed_to(offset)

    def stop_leading(self) -> None:
        self._epoch_start = -1
        self._gathering.end()
        self._decisions.drop()
        if self.leader is not None:
            self.leader.on_stopped()

    # Snapshots

    def maintain(self) -> None:
        """To be called now and then: a snapshot when it is time for one, and what retention no longer wants removed."""
        if self._problem is None and self._stopped is None:
            self._snapshotter.take_if_due()
            self._snapshotter.clean()

    # Failing

    def apart(self, callback: Callable[..., object], *arguments: Any) -> bool:
        return apart(self._timers, callback, *arguments)

    def guarded(self, work: Callable[[], Any]) -> bool:
        """Does something that the node cannot continue without; False, and the end of this log, if that fails."""
        try:
            work()
        except Exception as problem:
            self._fail(problem)
            return False
        return True

    def fail(self, problem: Exception) -> None:
        self._fail(problem)
        self.on_idle()

    def _fail(self, problem: Exception) -> None:
        if self._problem is not None:
            return
        self.quorum.stop()
        if self._follower is not None:
            self._follower.stop()
        self._problem = MetadataLogFailed(f"the metadata log in {self._store.directory} failed: {problem}")
        self._problem.__cause__ = problem
        self._flushes.stop()
        self._gathering.end()
        self._decisions.controller = None
        self._failed(self._problem)
        self._decisions.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
