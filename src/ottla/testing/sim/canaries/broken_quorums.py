"""Controllers that are broken in one way each: votes, epochs, what counts as committed, and who may lead."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.machines.metadata.controller.partition_change import PartitionChange
from ottla.machines.raft.events import NOBODY, Effect, QuorumState, VoteRequested
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import VoterSet
from ottla.runtime.metadata.quorum.quorum_answers import QuorumAnswers
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
    """Accepts a stale epoch: follows whoever says that it leads."""
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
