"""Elections among three voters: one vote an epoch, to a log that is long enough, and newer epochs win."""

import pytest

from ottla.machines.raft.events import (
    AdvanceHighWatermark,
    AnswerVote,
    AskForVote,
    BeginEpoch,
    Effect,
    EpochBegan,
    EpochEnded,
    Event,
    Fetched,
    Flushed,
    Follow,
    LogEnd,
    QuorumState,
    SaveQuorumState,
    SetTimer,
    ShutdownRequested,
    Started,
    StopLeading,
    TellOfEnd,
    TellOfEpoch,
    Timer,
    TimerExpired,
    VoteReplied,
    VoteRequested,
)
from ottla.machines.raft.machine import Raft, Role
from ottla.machines.raft.voters import ReplicaKey, Voter, VoterSet

ONE, TWO, THREE = (Voter(ReplicaKey(number)) for number in (1, 2, 3))
VOTERS = VoterSet([ONE, TWO, THREE])


def replica(saved: QuorumState | None = None, log_end: LogEnd | None = None, me: Voter = ONE) -> Raft:
    return Raft(me, VOTERS, saved or QuorumState(), log_end or LogEnd(0, 0))


def expire(raft: Raft, effects: list[Effect]) -> list[Effect]:
    (timer,) = [effect for effect in effects if isinstance(effect, SetTimer)]
    return raft.step(TimerExpired(timer.timer, timer.number))


def leader(log_end: LogEnd | None = None) -> Raft:
    raft = replica(log_end=log_end)
    expire(raft, raft.step(Started()))
    raft.step(VoteReplied(2, raft.epoch, granted=True))
    assert raft.is_leader
    return raft


def saved_before(effects: list[Effect], kind: type) -> bool:
    kinds = [type(effect) for effect in effects]
    return SaveQuorumState in kinds and kinds.index(SaveQuorumState) < kinds.index(kind)


def test_a_voter_that_hears_of_nobody_stands_for_election() -> None:
    raft = replica(log_end=LogEnd(3, 40))
    effects = expire(raft, raft.step(Started()))
    assert effects == [
        SaveQuorumState(QuorumState(epoch=4, voted_id=1)),
        AskForVote(TWO, 4, LogEnd(3, 40)),
        AskForVote(THREE, 4, LogEnd(3, 40)),
        SetTimer(Timer.ELECTION, 2, 1000, 1000),
    ]


def test_a_majority_makes_a_leader() -> None:
    raft = replica()
    expire(raft, raft.step(Started()))
    assert raft.step(VoteReplied(3, 1, granted=True)) == [
        SaveQuorumState(QuorumState(epoch=1, leader_id=1)),
        BeginEpoch(1, VOTERS, (1, 3), write_voters=False),
        TellOfEpoch(TWO, 1),
        TellOfEpoch(THREE, 1),
    ]


@pytest.mark.parametrize(
    "reply",
    [VoteReplied(2, 0, granted=True), VoteReplied(9, 1, granted=True), VoteReplied(2, 1, granted=False)],
    ids=["of an older epoch", "of somebody without a vote", "a refusal"],
)
def test_replies_that_do_not_make_a_leader(reply: VoteReplied) -> None:
    raft = replica()
    expire(raft, raft.step(Started()))
    assert raft.step(reply) == []
    assert raft.role is Role.CANDIDATE


def test_a_lost_election_is_followed_by_a_pause_and_another_epoch() -> None:
    raft = replica()
    expire(raft, raft.step(Started()))
    raft.step(VoteReplied(2, 1, granted=False))
    lost = raft.step(VoteReplied(3, 1, granted=False))
    assert lost == [SetTimer(Timer.ELECTION, 3, 0, 1000)]
    expire(raft, lost)
    assert (raft.role, raft.epoch) == (Role.CANDIDATE, 2)


def test_a_timer_that_was_set_before_the_last_one_is_stale() -> None:
    raft = replica()
    (old,) = raft.step(Started())
    assert isinstance(old, SetTimer)
    raft.step(EpochBegan(2, 5))
    assert raft.step(TimerExpired(old.timer, old.number)) == []
    assert raft.role is Role.FOLLOWER


def test_a_vote_is_on_disk_before_it_is_given() -> None:
    raft = replica()
    raft.step(Started())
    effects = raft.step(VoteRequested(TWO.key, 1, LogEnd(0, 0)))
    assert effects[-1] == AnswerVote(TWO.key, 1, granted=True, leader_id=-1)
    assert saved_before(effects, AnswerVote)


def test_only_one_vote_is_given_in_an_epoch_and_the_same_one_again_on_request() -> None:
    raft = replica()
    raft.step(Started())
    raft.step(VoteRequested(TWO.key, 1, LogEnd(0, 0)))
    assert raft.step(VoteRequested(THREE.key, 1, LogEnd(0, 0))) == [AnswerVote(THREE.key, 1, False, -1)]
    assert raft.step(VoteRequested(TWO.key, 1, LogEnd(0, 0))) == [AnswerVote(TWO.key, 1, True, -1)]


def test_a_vote_is_remembered_over_a_restart() -> None:
    raft = replica(saved=QuorumState(epoch=5, voted_id=2))
    raft.step(Started())
    assert raft.step(VoteRequested(THREE.key, 5, LogEnd(0, 0))) == [AnswerVote(THREE.key, 5, False, -1)]


@pytest.mark.parametrize(
    ("theirs", "granted"),
    [
        (LogEnd(2, 10), True),
        (LogEnd(2, 11), True),
        (LogEnd(3, 1), True),
        (LogEnd(2, 9), False),
        (LogEnd(1, 99), False),
    ],
)
def test_a_candidate_must_have_what_may_be_committed(theirs: LogEnd, granted: bool) -> None:
    """Raft paper, section 5.4.1."""
    raft = replica(log_end=LogEnd(2, 10))
    raft.step(Started())
    assert raft.step(VoteRequested(TWO.key, 3, theirs))[-1] == AnswerVote(TWO.key, 3, granted, -1)


def test_a_follower_refuses_its_vote_and_tells_who_leads() -> None:
    raft = replica()
    raft.step(EpochBegan(2, 1))
    assert raft.step(VoteRequested(THREE.key, 1, LogEnd(0, 0))) == [AnswerVote(THREE.key, 1, False, 2)]


@pytest.mark.parametrize(
    "event", [VoteRequested(TWO.key, 9, LogEnd(0, 0)), VoteReplied(2, 9, False), EpochBegan(2, 9), EpochEnded(9)]
)
def test_a_newer_epoch_ends_a_leadership(event: Event) -> None:
    raft = leader(LogEnd(5, 40))
    effects = raft.step(event)
    assert effects[0] == StopLeading(6)
    assert raft.epoch == 9
    assert not raft.is_leader
    assert any(isinstance(effect, SaveQuorumState) for effect in effects)


def test_a_follower_whose_leader_is_silent_stands_for_election() -> None:
    raft = replica()
    effects = raft.step(EpochBegan(2, 1))
    assert effects == [
        SaveQuorumState(QuorumState(epoch=1, leader_id=2)),
        Follow(2, 1),
        SetTimer(Timer.FETCH, 1, 2000),
    ]
    expire(raft, effects)
    assert (raft.role, raft.epoch) == (Role.CANDIDATE, 2)


def test_who_led_starts_resigned_and_refuses_to_vote_in_that_epoch() -> None:
    raft = replica(saved=QuorumState(epoch=4, leader_id=1), log_end=LogEnd(4, 10))
    assert raft.role is Role.RESIGNED
    assert raft.step(VoteRequested(TWO.key, 4, LogEnd(4, 99))) == [AnswerVote(TWO.key, 4, False, 1)]


def test_a_majority_commits_and_the_slowest_is_not_waited_for() -> None:
    raft = leader(LogEnd(0, 0))
    raft.step(Flushed(8))
    assert raft.step(Fetched(TWO.key, 5)) == [AdvanceHighWatermark(5)]
    assert raft.step(Fetched(THREE.key, 3)) == []
    assert raft.step(Fetched(THREE.key, 9)) == [AdvanceHighWatermark(8)]


def test_an_observer_does_not_count_for_the_majority() -> None:
    raft = leader(LogEnd(0, 0))
    raft.step(Flushed(8))
    assert raft.step(Fetched(ReplicaKey(44), 8)) == []


def test_what_a_majority_holds_of_older_epochs_waits_for_this_one() -> None:
    raft = leader(LogEnd(1, 10))
    raft.step(Flushed(11))
    assert raft.step(Fetched(TWO.key, 10)) == []
    assert raft.step(Fetched(TWO.key, 11)) == [AdvanceHighWatermark(11)]


def test_a_leader_that_stops_names_the_most_advanced_as_successor() -> None:
    raft = leader(LogEnd(0, 0))
    raft.step(Flushed(8))
    raft.step(Fetched(THREE.key, 7))
    raft.step(Fetched(TWO.key, 2))
    assert raft.step(ShutdownRequested()) == [
        StopLeading(1),
        TellOfEnd(TWO, 1, (3, 2)),
        TellOfEnd(THREE, 1, (3, 2)),
    ]


def test_the_preferred_successor_stands_at_once_and_the_next_waits() -> None:
    first, second = replica(me=TWO), replica(me=THREE)
    for raft in (first, second):
        raft.step(EpochBegan(1, 1))
        ended = raft.step(EpochEnded(1, preferred_successors=(2, 3)))
        if raft is second:
            assert ended == [SetTimer(Timer.ELECTION, 2, 500, 500)]
    assert (first.role, second.role) == (Role.CANDIDATE, Role.UNATTACHED)
