"""What a node says of the quorum that it waits for, and that it can be told to stop meanwhile."""

import pytest

from ottla.machines.raft.events import EpochBegan, LogEnd, QuorumState
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.node.membership.waiting_for_quorum import tell_of_waiting
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers


def replica(node_id: int, *voters: int) -> Raft:
    known = VoterSet(Voter(ReplicaKey(voter)) for voter in voters)
    return Raft(Voter(ReplicaKey(node_id)), known, QuorumState(), LogEnd(0, 0))


def told(raft: Raft, caplog: pytest.LogCaptureFixture) -> str:
    timers = StepTimers(FixedClock())
    waiting = tell_of_waiting(timers, raft)
    timers.advance(9_000)
    assert not caplog.records
    timers.advance(2_000)
    waiting.cancel()
    timers.advance(200_000)
    (record,) = caplog.records
    return record.getMessage()


def test_a_voter_that_knows_no_leader_names_the_voters_and_the_settings(caplog: pytest.LogCaptureFixture) -> None:
    message = told(replica(1, 1, 2, 3), caplog)
    assert "nobody leads the metadata quorum of voters 1, 2, 3: a majority must be up" in message
    assert "controller.quorum.voters or controller.quorum.bootstrap.servers" in message


def test_a_controller_that_is_no_voter_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert "voters 5 (node 1, with this directory, is none of them)" in told(replica(1, 5), caplog)


def test_a_leader_that_is_known_is_named(caplog: pytest.LogCaptureFixture) -> None:
    raft = replica(1, 1, 2, 3)
    raft.step(EpochBegan(2, 4))
    assert "has not caught up with controller 2, the last that it knows to lead" in told(raft, caplog)
