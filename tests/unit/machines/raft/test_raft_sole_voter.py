"""A quorum of one: the same machine as for many, in one step."""

from ottla.base.ids import Uuid
from ottla.machines.raft.events import (
    AdvanceHighWatermark,
    BeginEpoch,
    FindLeader,
    Flushed,
    LogEnd,
    QuorumState,
    SaveQuorumState,
    ShutdownRequested,
    Started,
    StopLeading,
)
from ottla.machines.raft.machine import Raft, Role
from ottla.machines.raft.voter_history import VoterHistory
from ottla.machines.raft.voters import DYNAMIC_VOTERS, Endpoint, ReplicaKey, Voter, VoterSet

ME = Voter(ReplicaKey(1, Uuid(b"directory-of-one")), (Endpoint("CONTROLLER", "127.0.0.1", 9093),))
STATIC = VoterSet([Voter(ReplicaKey(1))])


def test_a_sole_voter_leads_at_once_and_saves_that_once() -> None:
    raft = Raft(ME, STATIC, QuorumState(), LogEnd(0, 0))
    assert raft.step(Started()) == [
        SaveQuorumState(QuorumState(epoch=1, leader_id=1)),
        BeginEpoch(1, STATIC, (1,), write_voters=False),
    ]
    assert raft.is_leader


def test_every_start_is_a_new_epoch_and_the_epoch_it_led_is_over() -> None:
    raft = Raft(ME, STATIC, QuorumState(epoch=7, leader_id=1), LogEnd(7, 100))
    assert raft.role is Role.RESIGNED
    raft.step(Started())
    assert (raft.role, raft.epoch) == (Role.LEADER, 8)


def test_a_lost_quorum_state_does_not_repeat_an_epoch_of_the_log() -> None:
    raft = Raft(ME, STATIC, QuorumState(), LogEnd(7, 100))
    raft.step(Started())
    assert raft.epoch == 8


def test_a_candidacy_that_a_crash_cut_short_is_not_resumed() -> None:
    raft = Raft(ME, STATIC, QuorumState(epoch=3, voted_id=1, voted_directory_id=ME.key.directory_id), LogEnd(2, 50))
    raft.step(Started())
    assert raft.epoch == 4


def test_the_high_watermark_is_what_is_flushed() -> None:
    raft = Raft(ME, STATIC, QuorumState(), LogEnd(0, 0))
    raft.step(Started())
    assert raft.step(Flushed(1)) == [AdvanceHighWatermark(1)]
    assert raft.step(Flushed(1)) == []
    assert raft.step(Flushed(5)) == [AdvanceHighWatermark(5)]


def test_older_epochs_are_committed_only_with_a_record_of_this_one() -> None:
    raft = Raft(ME, STATIC, QuorumState(epoch=1, leader_id=1), LogEnd(1, 100))
    raft.step(Started())
    assert raft.step(Flushed(100)) == []  # all of it the last leader's
    assert raft.step(Flushed(101)) == [AdvanceHighWatermark(101)]


def test_voters_from_formatting_are_written_to_the_log_by_the_first_leader() -> None:
    """KIP-853: the bootstrap snapshot is not replicated, so the log must hold what it says."""
    dynamic = VoterSet([ME])
    raft = Raft(ME, dynamic, QuorumState(), LogEnd(0, 0), kraft_version=DYNAMIC_VOTERS)
    assert raft.step(Started())[-1] == BeginEpoch(1, dynamic, (1,), write_voters=True)


def test_voters_that_are_in_the_log_are_not_written_again() -> None:
    voters = VoterSet([ME])
    raft = Raft(ME, voters, QuorumState(), LogEnd(1, 3), history=VoterHistory(DYNAMIC_VOTERS, voters, 2))
    assert raft.step(Started())[-1] == BeginEpoch(2, voters, (1,), write_voters=False)


def test_voters_that_were_cut_away_again_are_written_by_the_next_leader() -> None:
    """The first leader wrote them and lost its epoch before anybody else had them."""
    voters = VoterSet([ME])
    raft = Raft(ME, voters, QuorumState(epoch=2), LogEnd(1, 3), kraft_version=DYNAMIC_VOTERS)
    raft.on_voters(2, voters=voters)
    raft.on_truncated(LogEnd(0, 0))
    assert raft.step(Started())[-1] == BeginEpoch(3, voters, (1,), write_voters=True)


def test_a_leader_whose_address_has_changed_writes_the_voters_again() -> None:
    moved = Voter(ME.key, (Endpoint("CONTROLLER", "127.0.0.1", 19093),))
    raft = Raft(moved, VoterSet([ME]), QuorumState(), LogEnd(1, 3), kraft_version=DYNAMIC_VOTERS)
    assert raft.step(Started())[-1] == BeginEpoch(2, VoterSet([moved]), (1,), write_voters=True)
    raft.on_voters(4, voters=VoterSet([moved]))
    assert raft.voters == VoterSet([moved])


def test_a_shutdown_resigns_and_writes_nothing() -> None:
    raft = Raft(ME, STATIC, QuorumState(), LogEnd(0, 0))
    raft.step(Started())
    raft.step(Flushed(1))
    assert raft.step(ShutdownRequested()) == [StopLeading(1)]
    assert (raft.role, raft.high_watermark) == (Role.RESIGNED, 1)
    assert raft.step(Flushed(2)) == []


def test_a_replica_in_another_directory_is_not_the_voter() -> None:
    """KIP-853: a disk that was swapped for an empty one has lost its vote, or it could vote twice."""
    stranger = Voter(ReplicaKey(1, Uuid(b"another-director")))
    raft = Raft(stranger, VoterSet([ME]), QuorumState(), LogEnd(0, 0), kraft_version=DYNAMIC_VOTERS)
    assert raft.step(Started())[0] == FindLeader()
    assert raft.role is Role.UNATTACHED
