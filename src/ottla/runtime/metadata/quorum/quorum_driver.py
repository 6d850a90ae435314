"""Performs what the Raft machine orders: in order, with nothing done before what it rests on is durable.

Theory of operation. An event is given to the machine at once, and its effects are put into a row. They are performed
one after the other; while the quorum state is being saved, on a worker, the row waits. So a vote is on the disk before
it is given, and the loop does not wait for the disk. The machine may be ahead of the row by some effects: an order to
begin an epoch that is over by then is passed over.

What concerns the log itself is the owner's (`LogOwner`): appending, committing, giving up the lead.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.base.ports import Entropy, Timer, Timers, Workers
from ottla.machines.raft.events import (
    AdvanceHighWatermark,
    AnswerVote,
    AskForVote,
    BeginEpoch,
    Effect,
    EpochBegan,
    Event,
    FindLeader,
    Follow,
    SaveQuorumState,
    SetTimer,
    StopLeading,
    TellOfEnd,
    TellOfEpoch,
    TimerExpired,
    VoteReplied,
)
from ottla.machines.raft.events import Timer as TimerKind
from ottla.machines.raft.machine import Raft, Role
from ottla.runtime.apart import apart, ask_surely
from ottla.runtime.attribution import work_for
from ottla.runtime.channels import Failed, Then
from ottla.runtime.metadata.quorum.quorum_log import QuorumLog
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.wire.errors import ErrorCode

_OF_THE_LOG: Final = (SaveQuorumState, BeginEpoch, AdvanceHighWatermark, StopLeading)


class LogOwner(Protocol):
    """The driver of the log, as far as the quorum has to do with it."""

    def save_quorum_state(self, save: SaveQuorumState) -> Callable[[], None]:
        """What a worker does to save it."""

    def begin_epoch(self, begin: BeginEpoch) -> None: ...
    def commit(self, offset: int) -> None: ...
    def stop_leading(self) -> None: ...
    def follow(self, leader_id: int, epoch: int) -> None: ...
    def find_leader(self) -> None: ...
    def fail(self, problem: Exception) -> None: ...


class QuorumDriver:
    """Of one replica. Without `network` it can be a quorum of one, and nothing else."""

    def __init__(
        self,
        raft: Raft,
        owner: LogOwner,
        workers: Workers,
        *,
        timers: Timers | None = None,
        entropy: Entropy | None = None,
        network: QuorumNetwork | None = None,
    ) -> None:
        self.raft = raft
        self.is_saving = False
        self.votes: deque[Callable[[AnswerVote], None]] = deque()
        """Who waits for an answer to a vote, in the order of the requests."""
        self._owner = owner
        self._workers = workers
        self._timers = timers
        self._entropy = entropy
        self._network = network
        self._effects: deque[Effect] = deque()
        self._is_performing = False
        self._is_stopped = False
        self._set: dict[TimerKind, Timer] = {}
        self._quorum_log = QuorumLog(raft, (lambda: 0.0) if timers is None else timers.now_s)

    def step(self, event: Event) -> None:
        """Gives an event to the machine, and performs what can be performed now."""
        if self._is_stopped:
            return
        try:
            self._effects.extend(self.raft.step(event))
        except Exception as problem:
            self._owner.fail(problem)
            return
        self._quorum_log.look()
        self.perform()

    def add(self, effects: list[Effect]) -> None:
        """Effects of what the log said, rather than of an event."""
        self._effects.extend(effects)

    def perform(self) -> None:
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while self._effects and not self.is_saving and not self._is_stopped:
                self._perform_apart(self._effects.popleft())
        finally:
            self._is_performing = False

    def _perform_apart(self, effect: Effect) -> None:
        """It is the quorum's work, and not that of the request that is being handled.

        What raises leaves the others to be done: a timer that is not set would end elections here for good. But what
        concerns the log is what the others rest on.
        """
        if not isinstance(effect, _OF_THE_LOG):
            apart(self._timers, self._perform, effect)
            return
        try:
            work_for(None, self._perform, effect)
        except Exception as problem:
            self._owner.fail(problem)

    def stop(self) -> None:
        """Nothing more is done, but for what is being saved."""
        self._is_stopped = True
        for timer in self._set.values():
            timer.cancel()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SaveQuorumState():
                self._save(effect)
            case BeginEpoch():
                if self.raft.is_leader and self.raft.epoch == effect.epoch:
                    self._owner.begin_epoch(effect)
            case AdvanceHighWatermark(offset):
                self._owner.commit(offset)
            case StopLeading():
                self._owner.stop_leading()
            case SetTimer():
                self._set_timer(effect)
            case AnswerVote():
                self.votes.popleft()(effect)
            case AskForVote():
                self._ask_for_vote(effect)
            case TellOfEpoch():
                self._tell(effect)
            case TellOfEnd():
                self._tell(effect)
            case Follow(leader_id, epoch):
                self._owner.follow(leader_id, epoch)
            case FindLeader():
                self._owner.find_leader()

    def _save(self, save: SaveQuorumState) -> None:
        self.is_saving = True

        def saved(_: None) -> None:
            self.is_saving = False
            self.perform()

        def failed(problem: Exception) -> None:
            self.is_saving = False
            self._owner.fail(problem)

        self._workers.run(self._owner.save_quorum_state(save), saved, failed)

    def _set_timer(self, wanted: SetTimer) -> None:
        assert self._timers is not None and self._entropy is not None, "a quorum of one waits for nobody"
        if wanted.timer in self._set:
            self._set.pop(wanted.timer).cancel()
        delay_ms = wanted.delay_ms + (self._entropy.randrange(wanted.jitter_ms) if wanted.jitter_ms else 0)
        expired = TimerExpired(wanted.timer, wanted.number)
        self._set[wanted.timer] = self._timers.after(delay_ms / 1000, lambda: self.step(expired))

    # What goes to others

    def _is_electing(self, ask: AskForVote) -> bool:
        role = Role.PROSPECTIVE if ask.pre_vote else Role.CANDIDATE
        return self.raft.role is role and self.raft.epoch == ask.epoch and not self._is_stopped

    def _ask_for_vote(self, ask: AskForVote) -> None:
        network = self._network
        if network is None or not self._is_electing(ask):
            return
        voter_id = ask.voter.key.id

        def then(response: Any) -> None:
            partition = _only_partition(response)
            if partition is None:
                return
            network.learn(response.node_endpoints)
            granted = partition.vote_granted and not partition.error_code
            reply = VoteReplied(voter_id, partition.leader_epoch, granted, partition.leader_id, ask.pre_vote)
            self.step(reply)

        def failed(error: ErrorCode) -> None:
            if error is ErrorCode.UNSUPPORTED_VERSION and ask.pre_vote:
                # Too old to be asked beforehand: the vote itself will tell.
                self.step(VoteReplied(voter_id, ask.epoch, granted=True, pre_vote=True))
            elif self._is_electing(ask):
                self._later(lambda: self._ask_for_vote(ask))

        assert self._timers is not None
        ask_surely(self._timers, lambda *heard: network.ask_for_vote(ask, *heard), then, failed)

    def _tell(self, tell: TellOfEpoch | TellOfEnd) -> None:
        network = self._network
        if network is None or self.raft.epoch != tell.epoch:
            return

        def then(response: Any) -> None:
            partition = _only_partition(response)
            if partition is not None and partition.leader_epoch > self.raft.epoch:
                network.learn(response.node_endpoints)
                self.step(EpochBegan(partition.leader_id, partition.leader_epoch))

        def failed(_error: ErrorCode) -> None:
            """A leader tells again after a while, and an end is found out."""

        def send(then: Then, failed: Failed) -> None:
            if isinstance(tell, TellOfEpoch):
                network.tell_of_epoch(tell, then, failed)
            else:
                network.tell_of_end(tell, self.raft.voters, then, failed)

        assert self._timers is not None
        ask_surely(self._timers, send, then, failed)

    def _later(self, callback: Callable[[], None]) -> None:
        assert self._timers is not None and self._network is not None
        self._timers.after(self._network.config.retry_ms / 1000, callback)


def _only_partition(response: Any) -> Any:
    """What a response says of the metadata log; None if the other node refused the whole request."""
    if response.error_code or not response.topics or not response.topics[0].partitions:
        return None
    return response.topics[0].partitions[0]
