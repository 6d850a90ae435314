"""Three voters, messages in any order, lost, repeated, replicas killed: what must never happen does not.

A small world around the machines: it carries messages and timers, picks what happens next by chance, and keeps what
each replica has written down. Logs are only lengths here; whoever leads appends, and the others copy.
"""

from collections import defaultdict
from random import Random

import pytest

from ottla.machines.raft.events import (
    AnswerVote,
    AskForVote,
    BeginEpoch,
    Effect,
    EpochBegan,
    Event,
    LogEnd,
    QuorumState,
    SaveQuorumState,
    SetTimer,
    Started,
    TellOfEpoch,
    TimerExpired,
    VoteReplied,
    VoteRequested,
)
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import ReplicaKey, Voter, VoterSet

VOTERS = VoterSet(Voter(ReplicaKey(number)) for number in (1, 2, 3))


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.saved = dict.fromkeys(VOTERS.ids, QuorumState())
        self.log_ends = dict.fromkeys(VOTERS.ids, LogEnd(0, 0))
        self.leaders: defaultdict[int, set[int]] = defaultdict(set)
        self.votes: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        self.pending: list[tuple[int, Event]] = []
        self.replicas = {number: self._start(number) for number in VOTERS.ids}

    def _start(self, number: int) -> Raft:
        voter = VOTERS.get(number)
        assert voter is not None
        raft = Raft(voter, VOTERS, self.saved[number], self.log_ends[number])
        self.pending = [(target, event) for target, event in self.pending if target != number]
        self._perform(number, raft, raft.step(Started()))
        return raft

    def step(self) -> None:
        """One thing of all that could happen now."""
        if self.random.random() < 0.02:
            victim = self.random.choice(VOTERS.ids)
            self.replicas[victim] = self._start(victim)
        if not self.pending:
            return
        index = self.random.randrange(len(self.pending))
        target, event = self.pending[index]
        if self.random.random() > 0.1:  # otherwise it stays, and comes again
            self.pending.pop(index)
        if self.random.random() > 0.05:  # otherwise it is lost
            raft = self.replicas[target]
            is_question = isinstance(event, VoteRequested) and event.pre_vote
            self._perform(target, raft, raft.step(event), pre_vote=is_question)

    def _perform(self, number: int, raft: Raft, effects: list[Effect], *, pre_vote: bool = False) -> None:
        for effect in effects:
            match effect:
                case SaveQuorumState(state):
                    assert state.epoch >= self.saved[number].epoch, "an epoch that goes back"
                    self.saved[number] = state
                case AskForVote(voter, epoch, log_end, is_question):
                    self.pending.append((voter.key.id, VoteRequested(raft.me.key, epoch, log_end, is_question)))
                case AnswerVote(candidate, epoch, granted, leader_id):
                    if granted and not pre_vote:
                        assert self.saved[number].voted_id == candidate.id, "a vote that is not written down"
                        self.votes[number, epoch].add(candidate.id)
                    self.pending.append((candidate.id, VoteReplied(number, epoch, granted, leader_id, pre_vote)))
                case BeginEpoch(epoch):
                    self.leaders[epoch].add(number)
                    self.log_ends[number] = raft.log_end = LogEnd(epoch, raft.log_end.offset + 1)
                case TellOfEpoch(voter, epoch):
                    self.pending.append((voter.key.id, EpochBegan(number, epoch)))
                case SetTimer(timer, timer_number):
                    self.pending.append((number, TimerExpired(timer, timer_number)))


@pytest.mark.parametrize("seed", range(40))
def test_an_epoch_has_one_leader_and_a_voter_one_vote(seed: int) -> None:
    world = World(seed)
    for _ in range(1500):
        world.step()
    assert world.leaders, "nobody was ever elected, so nothing was tested"
    assert all(len(leaders) == 1 for leaders in world.leaders.values()), seed
    assert all(len(candidates) == 1 for candidates in world.votes.values()), seed
