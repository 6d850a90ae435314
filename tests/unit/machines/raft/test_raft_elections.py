"""Elections among three voters: one vote an epoch, to a log that is long enough, and newer epochs win."""

import pytest

from ottla.base.ids import Uuid
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
    FindLeader,
    Flushed,
    Follow,
    LeaderAnswered,
    LeaderLost,
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


def expire(raft: Raft, effects: list[Effect], kind: Timer | None = None) -> list[Effect]:
    (timer,) = [effect for effect in effects if isinstance(effect, SetTimer) and kind in (None, effect.timer)]
    return raft.step(TimerExpired(timer.timer, timer.number))


def prospective(raft: Raft) -> list[Effect]:
    """Its timer has expired, and it asks around."""
    return expire(raft, raft.step(Started()))


def candidate(raft: Raft) -> list[Effect]:
    """Another voter would vote for it."""
    prospective(raft)
    return raft.step(VoteReplied(2, raft.epoch, granted=True, pre_vote=True))


def led(log_end: LogEnd | None = None) -> tuple[Raft, list[Effect]]:
    raft = replica(log_end=log_end)
    candidate(raft)
    effects = raft.step(VoteReplied(2, raft.epoch, granted=True))
    assert raft.is_leader
    return raft, effects


def leader(log_end: LogEnd | None = None) -> Raft:
    return led(log_end)[0]


def without_timers(effects: list[Effect]) -> list[Effect]:
    return [effect for effect in effects if not isinstance(effect, SetTimer)]


def saved_before(effects: list[Effect], kind: type) -> bool:
    kinds = [type(effect) for effect in effects]
    return SaveQuorumState in kinds and kinds.index(SaveQuorumState) < kinds.index(kind)


def test_a_voter_that_hears_of_nobody_asks_whether_it_would_win() -> None:
    """KIP-996: in the epoch as it is, and with nothing written down."""
    raft = replica(log_end=LogEnd(3, 40))
    assert prospective(raft) == [
        AskForVote(TWO, 3, LogEnd(3, 40), pre_vote=True),
        AskForVote(THREE, 3, LogEnd(3, 40), pre_vote=True),
        SetTimer(Timer.ELECTION, 2, 1000, 1000),
    ]


def test_a_voter_that_would_win_stands_for_election() -> None:
    raft = replica(log_end=LogEnd(3, 40))
    assert candidate(raft) == [
        SaveQuorumState(QuorumState(epoch=4, voted_id=1)),
        AskForVote(TWO, 4, LogEnd(3, 40)),
        AskForVote(THREE, 4, LogEnd(3, 40)),
        SetTimer(Timer.ELECTION, 3, 1000, 1000),
    ]


def test_a_majority_makes_a_leader() -> None:
    raft = replica()
    candidate(raft)
    assert raft.step(VoteReplied(3, 1, granted=True)) == [
        SaveQuorumState(QuorumState(epoch=1, leader_id=1)),
        BeginEpoch(1, VOTERS, (1, 3), write_voters=False),
        TellOfEpoch(TWO, 1),
        TellOfEpoch(THREE, 1),
        SetTimer(Timer.BEGIN_EPOCH, 5, 1000),
        SetTimer(Timer.CHECK_QUORUM, 4, 3000),
    ]


@pytest.mark.parametrize(
    "reply",
    [
        VoteReplied(2, 0, granted=True),
        VoteReplied(9, 1, granted=True),
        VoteReplied(2, 1, granted=False),
        VoteReplied(2, 1, granted=True, pre_vote=True),
    ],
    ids=["of an older epoch", "of somebody without a vote", "a refusal", "a late answer to the question before"],
)
def test_replies_that_do_not_make_a_leader(reply: VoteReplied) -> None:
    raft = replica()
    candidate(raft)
    assert raft.step(reply) == []
    assert raft.role is Role.CANDIDATE


def test_a_lost_election_is_followed_by_a_pause_and_another_question() -> None:
    raft = replica()
    candidate(raft)
    raft.step(VoteReplied(2, 1, granted=False))
    lost = raft.step(VoteReplied(3, 1, granted=False))
    assert lost == [SetTimer(Timer.ELECTION, 4, 0, 1000)]
    expire(raft, lost)
    assert (raft.role, raft.epoch) == (Role.PROSPECTIVE, 1)


def test_a_voter_that_would_not_win_makes_no_epoch() -> None:
    raft = replica(log_end=LogEnd(3, 40))
    prospective(raft)
    raft.step(VoteReplied(2, 3, granted=False, pre_vote=True))
    raft.step(VoteReplied(3, 3, granted=False, pre_vote=True))
    assert (raft.role, raft.epoch) == (Role.UNATTACHED, 3)


def test_a_voter_that_is_told_who_leads_follows() -> None:
    raft = replica(log_end=LogEnd(3, 40))
    prospective(raft)
    raft.step(VoteReplied(2, 3, granted=False, leader_id=3, pre_vote=True))
    assert (raft.role, raft.leader_id) == (Role.FOLLOWER, 3)


def test_a_voter_whose_leader_is_silent_goes_back_to_it_if_the_others_hear_it() -> None:
    raft = replica()
    expire(raft, raft.step(EpochBegan(2, 1)))
    raft.step(VoteReplied(2, 1, granted=False, leader_id=2, pre_vote=True))
    effects = raft.step(VoteReplied(3, 1, granted=False, leader_id=2, pre_vote=True))
    assert without_timers(effects) == [Follow(2, 1)]
    assert (raft.role, raft.epoch) == (Role.FOLLOWER, 1)


def test_a_leader_that_tells_of_itself_again_is_followed_again() -> None:
    raft = replica()
    expire(raft, raft.step(EpochBegan(2, 1)))
    assert without_timers(raft.step(EpochBegan(2, 1))) == [Follow(2, 1)]


def test_a_follower_that_hears_its_leader_would_not_vote_for_another() -> None:
    raft = replica()
    raft.step(EpochBegan(2, 1))
    question = VoteRequested(THREE.key, 1, LogEnd(0, 0), pre_vote=True)
    assert raft.step(question) == [AnswerVote(THREE.key, 1, True, 2)]
    raft.step(LeaderAnswered(1, 0))
    assert raft.step(question) == [AnswerVote(THREE.key, 1, False, 2)]
    raft.step(LeaderLost(1))
    assert raft.step(question) == [AnswerVote(THREE.key, 1, True, 2)]


def test_who_would_vote_promises_nothing() -> None:
    raft = replica()
    raft.step(Started())
    for other in (TWO, THREE):
        question = VoteRequested(other.key, 0, LogEnd(0, 0), pre_vote=True)
        assert raft.step(question) == [AnswerVote(other.key, 0, True, -1)]
    assert raft.voted_for is None


def test_a_leader_would_vote_for_nobody_else() -> None:
    raft = leader()
    question = VoteRequested(THREE.key, 1, LogEnd(9, 9), pre_vote=True)
    assert raft.step(question) == [AnswerVote(THREE.key, 1, False, 1)]


def test_every_answer_of_the_leader_renews_the_fetch_timer_and_moves_the_high_watermark() -> None:
    raft = replica()
    first = raft.step(EpochBegan(2, 1))
    raft.log_end = LogEnd(1, 5)
    effects = raft.step(LeaderAnswered(1, 9))
    assert effects == [SetTimer(Timer.FETCH, 2, 2000), AdvanceHighWatermark(5)]
    assert expire(raft, first) == [], "the first timer went off, and the leader had answered since"
    assert raft.step(LeaderAnswered(1, 3)) == [SetTimer(Timer.FETCH, 3, 2000)]
    assert raft.high_watermark == 5


def test_a_follower_whose_leader_is_gone_asks_around_soon() -> None:
    raft = replica()
    raft.step(EpochBegan(2, 1))
    raft.step(LeaderAnswered(1, 0))
    expire(raft, raft.step(LeaderLost(1)))
    assert raft.role is Role.PROSPECTIVE


def test_a_leader_that_hears_of_no_majority_resigns() -> None:
    raft, effects = led()
    told = expire(raft, effects, Timer.CHECK_QUORUM)
    assert raft.role is Role.RESIGNED
    assert told[0] == StopLeading(1)
    assert without_timers(told)[1:] == [TellOfEnd(TWO, 1, (2, 3)), TellOfEnd(THREE, 1, (2, 3))]


def test_a_leader_that_hears_of_a_majority_goes_on() -> None:
    raft, effects = led()
    later = raft.step(Fetched(THREE.key, -1))
    assert expire(raft, effects, Timer.CHECK_QUORUM) == []
    assert raft.is_leader
    expire(raft, later, Timer.CHECK_QUORUM)
    assert raft.role is Role.RESIGNED


def test_a_leader_tells_of_itself_again_until_a_voter_fetches() -> None:
    raft, effects = led()
    again = expire(raft, effects, Timer.BEGIN_EPOCH)
    assert without_timers(again) == [TellOfEpoch(TWO, 1), TellOfEpoch(THREE, 1)]


def test_voters_that_fetch_need_not_be_told_who_leads() -> None:
    raft, effects = led()
    for voter in (TWO, THREE):
        raft.step(Fetched(voter.key, 0))
    again = expire(raft, effects, Timer.BEGIN_EPOCH)
    assert without_timers(again) == []
    raft.step(Fetched(TWO.key, 0))
    assert without_timers(expire(raft, again, Timer.BEGIN_EPOCH)) == [TellOfEpoch(THREE, 1)]


def test_a_voter_that_lost_a_part_of_its_log_counts_with_what_it_has() -> None:
    raft = leader(LogEnd(0, 0))
    raft.step(Fetched(TWO.key, 9))
    raft.step(Fetched(TWO.key, 4))
    assert raft.step(Flushed(9)) == [AdvanceHighWatermark(4)]


def test_a_fetch_with_the_leaders_own_id_says_nothing_of_its_disk() -> None:
    """Two controllers of one id: what the other one has is not what this one has flushed."""
    raft = leader(LogEnd(0, 0))
    raft.log_end = LogEnd(1, 9)
    raft.step(Fetched(TWO.key, 9))
    assert raft.step(Fetched(ONE.key, 9)) == []
    assert raft.high_watermark == 0
    assert raft.step(Flushed(5)) == [AdvanceHighWatermark(5)]


def test_an_observer_looks_for_the_leader_and_never_stands() -> None:
    raft = replica(me=Voter(ReplicaKey(9)))
    started = raft.step(Started())
    assert without_timers(started) == [FindLeader()]
    assert without_timers(expire(raft, started)) == [FindLeader()]
    followed = raft.step(EpochBegan(2, 4))
    assert without_timers(expire(raft, followed)) == [FindLeader()]
    assert (raft.role, raft.leader_id) == (Role.FOLLOWER, 2)


def test_an_observer_that_finds_its_leader_again_follows_it_once() -> None:
    """In the same epoch: nothing else would have it fetch again."""
    raft = replica(QuorumState(5, 2), LogEnd(5, 10), me=Voter(ReplicaKey(9)))
    effects = raft.step(Started())
    assert raft.step(EpochBegan(2, 5)) == [], "it follows already"
    assert FindLeader() in expire(raft, effects, Timer.FETCH)
    assert without_timers(raft.step(EpochBegan(2, 5))) == [Follow(2, 5)]
    assert raft.step(EpochBegan(2, 5)) == []


def test_voters_that_are_cut_away_again_were_never_voters() -> None:
    """KIP-853: the last voters in the log count, committed or not."""
    raft = replica()
    raft.log_end = LogEnd(1, 8)
    raft.on_voters(5, voters=VoterSet([ONE]))
    assert raft.voters.ids == [1]
    assert raft.history.before(5)[1].ids == [1, 2, 3]
    raft.on_truncated(LogEnd(1, 5))
    assert raft.voters.ids == [1, 2, 3]


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


def test_a_vote_that_was_written_down_without_its_directory_is_given_again_on_request() -> None:
    """The quorum state of static voters has none. The candidate asks again if the voter was killed before it heard."""
    raft = replica(QuorumState(epoch=7, voted_id=2), LogEnd(6, 10))
    asked = VoteRequested(ReplicaKey(2, Uuid(b"2" * 16)), 7, LogEnd(6, 10))
    assert raft.step(asked) == [AnswerVote(asked.candidate, 7, granted=True, leader_id=-1)]
    other = VoteRequested(ReplicaKey(3, Uuid(b"3" * 16)), 7, LogEnd(6, 10))
    assert raft.step(other) == [AnswerVote(other.candidate, 7, granted=False, leader_id=-1)]


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
    assert (raft.role, raft.epoch) == (Role.PROSPECTIVE, 1)


def test_who_led_starts_resigned_and_refuses_to_vote_in_that_epoch() -> None:
    raft = replica(saved=QuorumState(epoch=4, leader_id=1), log_end=LogEnd(4, 10))
    assert raft.role is Role.RESIGNED
    assert raft.step(VoteRequested(TWO.key, 4, LogEnd(4, 99))) == [AnswerVote(TWO.key, 4, False, 1)]


def test_a_majority_commits_and_the_slowest_is_not_waited_for() -> None:
    raft = leader(LogEnd(0, 0))
    raft.step(Flushed(8))
    assert without_timers(raft.step(Fetched(TWO.key, 5))) == [AdvanceHighWatermark(5)]
    assert without_timers(raft.step(Fetched(THREE.key, 3))) == []
    assert without_timers(raft.step(Fetched(THREE.key, 9))) == [AdvanceHighWatermark(8)]


def test_an_observer_does_not_count_for_the_majority() -> None:
    raft = leader(LogEnd(0, 0))
    raft.step(Flushed(8))
    assert raft.step(Fetched(ReplicaKey(44), 8)) == []


def test_what_a_majority_holds_of_older_epochs_waits_for_this_one() -> None:
    raft = leader(LogEnd(1, 10))
    raft.step(Flushed(11))
    assert without_timers(raft.step(Fetched(TWO.key, 10))) == []
    assert without_timers(raft.step(Fetched(TWO.key, 11))) == [AdvanceHighWatermark(11)]


def test_a_leader_that_stops_names_the_most_advanced_as_successor() -> None:
    raft = leader(LogEnd(0, 0))
    raft.step(Flushed(8))
    raft.step(Fetched(THREE.key, 7))
    raft.step(Fetched(TWO.key, 2))
    assert without_timers(raft.step(ShutdownRequested())) == [
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
    assert (first.role, second.role) == (Role.PROSPECTIVE, Role.UNATTACHED)


def test_a_voter_whom_too_few_answer_asks_who_leads() -> None:
    """All others may have been replaced while it was away."""
    raft = replica(saved=QuorumState(epoch=3, leader_id=2))
    asked = expire(raft, raft.step(Started()), Timer.FETCH)
    assert without_timers(expire(raft, asked)) == [Follow(2, 3), FindLeader()]
    assert raft.role is Role.FOLLOWER


def test_a_replica_that_loses_its_vote_by_a_snapshot_while_it_asks_around_does_not_stand() -> None:
    """The leader's snapshot was still being written when the fetch timer expired. A vote of its own would count."""
    raft = replica(saved=QuorumState(epoch=3, leader_id=2), me=THREE)
    expire(raft, raft.step(Started()), Timer.FETCH)
    raft.on_snapshot(LogEnd(3, 500), 1, VoterSet([ONE, TWO]))
    assert raft.step(VoteReplied(1, 3, granted=True, pre_vote=True)) == []
    assert (raft.role, raft.epoch) == (Role.PROSPECTIVE, 3)
    assert raft.step(EpochBegan(2, 3))
    assert raft.role is Role.FOLLOWER
