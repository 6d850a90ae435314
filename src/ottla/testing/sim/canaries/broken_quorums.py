"""Controllers that are broken in one way each: votes, epochs, what counts as committed, and who may lead."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ottla.machines.metadata.controller.partition_change import PartitionChange
from ottla.machines.metadata.decisions import alter_partition, assign_directories, heartbeats, reassign_partitions
from ottla.machines.raft.events import NOBODY, Effect, QuorumState, VoteRequested
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.progress import Progress
from ottla.machines.raft.voters import VoterSet
from ottla.runtime.metadata.metadata_decisions import MetadataDecisions
from ottla.runtime.metadata.quorum.quorum_answers import QuorumAnswers
from ottla.runtime.metadata.quorum.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum.voter_changes import VoterChanges
from ottla.runtime.metadata.storage.metadata_flushes import MetadataFlushes
from ottla.testing.sim.canaries.switched import switched
from ottla.wire.errors import ErrorCode


@contextmanager
def vote_for_shorter_logs() -> Iterator[None]:
    """Votes for candidates that lack what it has."""

    def can_vote(self: Raft, request: VoteRequested) -> bool:
        return request.epoch == self.epoch and self.leader_id == NOBODY and self.voted_for in (None, request.candidate)

    def would_vote(self: Raft, request: VoteRequested) -> bool:
        return request.epoch == self.epoch

    with switched(Raft, "_can_vote", can_vote), switched(Raft, "_would_vote", would_vote):
        yield


@contextmanager
def commit_alone() -> Iterator[None]:
    """Takes one voter for a majority."""
    with switched(VoterSet, "majority", property(lambda self: 1)):
        yield


@contextmanager
def vote_twice() -> Iterator[None]:
    """Votes for every candidate of an epoch."""
    can_vote = Raft._can_vote

    def votes_again(self: Raft, request: VoteRequested) -> bool:
        voted_for, self.voted_for = self.voted_for, None
        can = can_vote(self, request)
        self.voted_for = None if can else voted_for
        return can

    with switched(Raft, "_can_vote", votes_again):
        yield


@contextmanager
def forget_the_vote() -> Iterator[None]:
    """A voter that starts again does not know whom it has voted for."""
    recall = Raft._recall

    def recall_the_leader(self: Raft, saved: QuorumState) -> None:
        recall(self, saved._replace(voted_id=NOBODY))

    with switched(Raft, "_recall", recall_the_leader):
        yield


@contextmanager
def follow_older_leaders() -> Iterator[None]:
    """Accepts a stale epoch: follows any node that says that it leads."""
    on_leader, wrong_leader = Raft._on_leader, QuorumAnswers._wrong_leader

    def follow(self: Raft, leader_id: int, epoch: int) -> list[Effect]:
        if epoch < self.epoch and leader_id != NOBODY:
            return self._become_follower(leader_id, epoch)
        return on_leader(self, leader_id, epoch)

    def not_fenced(self: QuorumAnswers, asked: Any) -> ErrorCode:
        error = wrong_leader(self, asked)
        return ErrorCode.NONE if error is ErrorCode.FENCED_LEADER_EPOCH else error

    with switched(Raft, "_on_leader", follow), switched(QuorumAnswers, "_wrong_leader", not_fenced):
        yield


@contextmanager
def commit_before_flush() -> Iterator[None]:
    """Counts metadata that no disk has yet."""

    def start(self: MetadataFlushes) -> None:
        end_offset = self._store.log.log_end_offset
        if self.durable_offset < end_offset:
            self.durable_offset = end_offset
            self._owner.on_flushed(end_offset)

    def when_durable(self: MetadataFlushes, then: Callable[[], None]) -> None:
        self.start()
        then()

    with switched(MetadataFlushes, "start", start), switched(MetadataFlushes, "when_durable", when_durable):
        yield


@contextmanager
def elect_anyone() -> Iterator[None]:
    """Makes a replica the leader of a partition that is not in sync."""
    with switched(PartitionChange, "_is_eligible", lambda self, broker_id: self.can_lead(broker_id)):
        yield


@contextmanager
def commit_older_epochs() -> Iterator[None]:
    """Takes a record of an older epoch for committed as soon as a majority has it (Raft paper, section 5.4.2)."""

    def advance(self: Progress) -> bool:
        ends = sorted((replica.end_offset for replica in self.replicas.values()), reverse=True)
        committed = ends[self._voters.majority - 1]
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    with switched(Progress, "_advance", advance):
        yield


@contextmanager
def vote_before_saving() -> Iterator[None]:
    """Answers for its vote while that is still being saved."""
    save = QuorumDriver._save

    def save_meanwhile(self: QuorumDriver, wanted: Any) -> None:
        save(self, wanted)
        self.is_saving = False

    with switched(QuorumDriver, "_save", save_meanwhile):
        yield


@contextmanager
def change_voters_at_once() -> Iterator[None]:
    """Begins to change the voters while the change before is not committed."""
    change = VoterChanges._change

    def change_anyway(self: VoterChanges, *arguments: Any, **more: Any) -> None:
        log = self._log

        class Committed:
            """The log, as if all of it were committed."""

            committed_offset = 1 << 62

            def __getattr__(self, name: str) -> Any:
                return getattr(log, name)

        self._log = Committed()
        try:
            change(self, *arguments, **more)
        finally:
            self._log = log

    with switched(VoterChanges, "_change", change_anyway):
        yield


@contextmanager
def reply_before_commit() -> Iterator[None]:
    """Confirms a change of the metadata before a majority has it."""

    def carry_out(self: Any, decision: Any, give: Callable[[], None], failed: Callable[[ErrorCode], None]) -> None:
        if decision.records and not self._append_records(decision.records, decision.atomic):
            failed(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._log.flush()
        give()

    with switched(MetadataDecisions, "_carry_out", carry_out):
        yield


@contextmanager
def admit_old_brokers() -> Iterator[None]:
    """Listens to brokers of an earlier life, and takes them into an ISR."""
    modules = [one for one in (alter_partition, assign_directories, heartbeats) if hasattr(one, "check_broker_epoch")]
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(switched(module, "check_broker_epoch", lambda *arguments: None))
        stack.enter_context(switched(alter_partition, "ANY_EPOCH", _Anything()))
        yield


class _Anything(int):
    """Equal to every epoch."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@contextmanager
def drop_ready() -> Iterator[None]:
    """A controller that loses its epoch before its first batch is committed never decides what is due by time."""
    activate = MetadataDecisions.activate

    def activate_once(self: Any, ready: Callable[[], None]) -> None:
        is_ready, self._log.on_ready = self._log.on_ready, None
        activate(self, is_ready or (lambda: None))

    with switched(MetadataDecisions, "activate", activate_once):
        yield


@contextmanager
def reassign_for_ever() -> Iterator[None]:
    """A reassignment that is taken back, by naming the replicas from before, never ends."""

    def start(context: Any, change: Any, partition: Any, replicas: Any, *arguments: Any) -> None:
        removing = tuple(sorted(set(partition.replicas) - set(replicas)))
        adding = tuple(sorted(set(replicas) - set(partition.replicas)))
        change.replicas = (*replicas, *removing)
        change.removing = removing or partition.removing_replicas
        change.adding = adding or partition.adding_replicas

    with switched(reassign_partitions, "_start", start):
        yield
