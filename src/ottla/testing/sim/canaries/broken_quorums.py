"""Controllers that are broken in one way each: votes, and what counts as committed."""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.machines.raft.events import NOBODY, VoteRequested
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import VoterSet
from ottla.testing.sim.canaries.switched import switched


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
