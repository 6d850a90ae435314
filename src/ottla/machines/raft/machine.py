"""The Raft machine: one replica of the metadata log, its role, and every transition between roles.

Theory of operation. Time is cut into epochs, each with at most one leader. A replica is in one epoch and in one role:

    role         entered when                                           left for
    UNATTACHED   a newer epoch is heard of, its leader not yet          PROSPECTIVE on the election timer, FOLLOWER
    PROSPECTIVE  a voter's timer expired: asks whether it would win     CANDIDATE with a majority; else where it was
    CANDIDATE    it would win: next epoch, a vote for itself            LEADER with a majority, PROSPECTIVE on the timer
    LEADER       a majority has voted for it                            RESIGNED at shutdown, or alone for too long
    FOLLOWER     the epoch's leader is known                            PROSPECTIVE on the fetch timer, or as asked
    RESIGNED     it led this epoch, and does so no more                 PROSPECTIVE on the election timer, FOLLOWER

and from any of them to UNATTACHED, when a newer epoch is heard of. A node that starts as the leader it was is RESIGNED:
what it had not flushed is gone, so nothing may be written in that epoch again.

A replica gives one vote an epoch, to a candidate whose log is at least as long as its own, and remembers it on disk
before it answers. So no two candidates get a majority, and the one who does has all that is committed.

Before it stands, a voter asks the others whether they would vote for it (KIP-996). A follower that hears from its
leader would not: so a voter that was cut off comes back without a new epoch that ends a leadership. A leader that does
not hear from a majority for one and a half fetch timeouts resigns: it is the one that is cut off.

Followers fetch from the leader; each answer renews their fetch timer and tells them the high watermark. Replicas
without a vote (brokers, and controllers that are not voters yet) are UNATTACHED or FOLLOWER and never stand; they ask
for the leader, as nobody tells them. So does a voter whom too few answer: it may have been away while all others left.

A leader that removes itself stands on until that is committed, also when it loses the lead before: see `_can_stand`.

A sole voter needs nobody's answer: at `Started` it passes through CANDIDATE to LEADER in one step. There is no other
path for it. Its high watermark is what it has flushed.

One file because every transition must have the others in view.
"""

from enum import Enum
from typing import NamedTuple

from ottla.machines.raft.events import (
    NOBODY,
    UNCHECKED,
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
from ottla.machines.raft.progress import Progress
from ottla.machines.raft.voter_history import VoterHistory
from ottla.machines.raft.voters import DYNAMIC_VOTERS, STATIC_VOTERS, ReplicaKey, Voter, VoterSet


class Role(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


class Timeouts(NamedTuple):
    """`controller.quorum.election.timeout.ms`, `.election.backoff.max.ms` and `.fetch.timeout.ms`."""

    election_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_ms: int = 2000

    @property
    def check_quorum_ms(self) -> int:
        """How long a leader continues without a majority: longer than followers continue without a leader."""
        return self.fetch_ms * 3 // 2

    @property
    def begin_epoch_ms(self) -> int:
        return max(self.fetch_ms // 2, 1)


_LOST_SHARE = 5
"""A voter that has lost its leader asks around within this part of the largest backoff: not all at one moment."""

_WAITS_FOR = {
    Role.UNATTACHED: (Timer.ELECTION,),
    Role.PROSPECTIVE: (Timer.ELECTION,),
    Role.CANDIDATE: (Timer.ELECTION,),
    Role.RESIGNED: (Timer.ELECTION,),
    Role.FOLLOWER: (Timer.FETCH,),
    Role.LEADER: (Timer.CHECK_QUORUM, Timer.BEGIN_EPOCH),
}


class Raft:
    """See the module. `log_end` is the driver's to keep: it is the end of the log, flushed or not."""

    def __init__(
        self,
        me: Voter,
        voters: VoterSet,
        saved: QuorumState,
        log_end: LogEnd,
        *,
        kraft_version: int = STATIC_VOTERS,
        timeouts: Timeouts | None = None,
        history: VoterHistory | None = None,
    ) -> None:
        """`me` is this replica as it describes itself today; the voters may hold an older description."""
        self.me = me
        self.history = history or VoterHistory(kraft_version, voters)
        self.log_end = log_end
        self.epoch = max(saved.epoch, log_end.epoch)
        self.leader_id = NOBODY
        self.voted_for: ReplicaKey | None = None
        self.role = Role.UNATTACHED
        self.progress: Progress | None = None
        self._high_watermark = 0
        self._timeouts = timeouts or Timeouts()
        self._granted: set[int] = set()
        self._refused: set[int] = set()
        self._heard: set[int] = set()
        """Voters that a leader has heard of since its last check."""
        self._fetching: set[int] = set()
        """Those that it has heard of since it last announced that it leads."""
        self._has_heard_leader = False
        self._has_lost_leader = False
        """Of a replica without a vote: it has not heard from its leader for as long as its fetch timer."""
        self._timer = 0
        self._set: dict[Timer, int] = {}
        if saved.epoch == self.epoch:
            self._recall(saved)

    def _recall(self, saved: QuorumState) -> None:
        """Takes up the role that was written down. A candidacy is not resumed: its votes are not known any more."""
        self.leader_id = saved.leader_id
        if saved.voted_id != NOBODY:
            self.voted_for = ReplicaKey(saved.voted_id, saved.voted_directory_id)
        if self.leader_id == self.me.key.id:
            self.role = Role.RESIGNED
        elif self.leader_id != NOBODY:
            self.role = Role.FOLLOWER

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def kraft_version(self) -> int:
        return self.history.kraft_version

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def is_voter(self) -> bool:
        return self.voters.has(self.me.key)

    @property
    def _can_stand(self) -> bool:
        """A voter; and one that the last record takes the vote from, until it knows that this is committed.

        It may be the only one that has the record. Then nobody else gets its vote, whose log is shorter, and the voters
        cannot do without it (Raft thesis, section 4.2.2). Its own vote does not count. Apache Kafka's do not stand.
        """
        before = self.history.voters_before
        is_open = before is not None and self.history.offset >= self.high_watermark
        return self.is_voter or (is_open and before is not None and before.has(self.me.key))

    @property
    def _has_others(self) -> bool:
        return bool(self.voters.others(self.me.key))

    @property
    def high_watermark(self) -> int:
        return self.progress.high_watermark if self.progress else self._high_watermark

    def step(self, event: Event) -> list[Effect]:
        """What an event leads to."""
        match event:
            case Started():
                return self._on_started()
            case TimerExpired(timer, number):
                return self._on_timer(timer, number)
            case VoteRequested():
                return self._on_vote_requested(event)
            case VoteReplied():
                return self._on_vote_replied(event)
            case EpochBegan(leader_id, epoch):
                return self._on_leader(leader_id, epoch)
            case EpochEnded():
                return self._on_epoch_ended(event)
            case Flushed(end_offset):
                return self._on_progress(self.me.key, end_offset)
            case Fetched():
                return self._on_fetched(event)
            case LeaderAnswered():
                return self._on_leader_answered(event)
            case LeaderLost(epoch):
                return self._on_leader_lost(epoch)
            case ShutdownRequested():
                return self._resign()

    # What happens

    def _on_started(self) -> list[Effect]:
        if self.is_voter and len(self.voters) == 1:
            return self._become_candidate()
        if self.role is Role.FOLLOWER:
            return [Follow(self.leader_id, self.epoch), self._set_timer(Timer.FETCH)]
        return self._wait_for_election()

    def _wait_for_election(self) -> list[Effect]:
        """A voter starts an election if none is running; other replicas look for the leader."""
        return [self._set_timer(Timer.ELECTION)] if self.is_voter else [FindLeader(), self._set_timer(Timer.ELECTION)]

    def _on_timer(self, timer: Timer, number: int) -> list[Effect]:
        if timer not in _WAITS_FOR[self.role] or self._set.get(timer) != number:
            return []
        match timer:
            case Timer.CHECK_QUORUM:
                return self._resign() if self._has_others else []
            case Timer.BEGIN_EPOCH:
                return self._tell_of_epoch()
        if not self._can_stand:
            self._has_lost_leader = True
            return [FindLeader(), self._set_timer(timer)]
        if self.role is Role.PROSPECTIVE:
            # Those whom this log names do not answer. Others may be the voters by now, and somebody knows them.
            return [*self._end_prospect(), FindLeader()]
        return self._become_prospective()

    def _on_vote_requested(self, request: VoteRequested) -> list[Effect]:
        effects = self._heard_of_epoch(request.epoch)
        if request.pre_vote:
            granted = self._would_vote(request)
        else:
            granted = self._can_vote(request)
            if granted and self.voted_for is None:
                self.voted_for = request.candidate
                self.role = Role.UNATTACHED
                effects += [self._save(), self._set_timer(Timer.ELECTION)]
        effects.append(AnswerVote(request.candidate, self.epoch, granted, self.leader_id))
        return effects

    def _can_vote(self, request: VoteRequested) -> bool:
        return (
            request.epoch == self.epoch
            and self.leader_id == NOBODY
            and (self.voted_for is None or self.voted_for.stands_for(request.candidate))
            and self.role in (Role.UNATTACHED, Role.PROSPECTIVE)
            and request.log_end >= self.log_end
        )

    def _would_vote(self, request: VoteRequested) -> bool:
        """Not while there is a leader that this replica hears from."""
        has_leader = self.role is Role.LEADER or (self.role is Role.FOLLOWER and self._has_heard_leader)
        return request.epoch == self.epoch and not has_leader and request.log_end >= self.log_end

    def _on_vote_replied(self, reply: VoteReplied) -> list[Effect]:
        if reply.epoch > self.epoch or (
            reply.epoch == self.epoch and reply.leader_id not in (NOBODY, self.leader_id, self.me.key.id)
        ):
            return self._on_leader(reply.leader_id, reply.epoch)
        wanted = Role.PROSPECTIVE if reply.pre_vote else Role.CANDIDATE
        if reply.epoch < self.epoch or self.role is not wanted or self.voters.get(reply.voter_id) is None:
            return []
        if not self._can_stand:
            return []  # A snapshot that came while it asked around says so, and its own vote is among those counted.
        (self._granted if reply.granted else self._refused).add(reply.voter_id)
        if len(self._granted) >= self.voters.majority:
            return self._become_candidate() if reply.pre_vote else self._become_leader()
        if len(self.voters) - len(self._refused) < self.voters.majority:
            if reply.pre_vote:
                return self._end_prospect()
            # This election is lost. A pause by chance keeps the candidates of the next one apart.
            return [self._set_timer(Timer.ELECTION, 0, self._timeouts.election_backoff_max_ms)]
        return []

    def _on_leader(self, leader_id: int, epoch: int) -> list[Effect]:
        """Somebody leads, or an epoch has come whose leader is not known."""
        if epoch < self.epoch or (epoch == self.epoch and leader_id == NOBODY):
            return []
        if epoch == self.epoch and leader_id == self.leader_id:
            # One who asked around, whether to stand or who leads, follows again; others know already.
            is_looking = self.role is Role.PROSPECTIVE or (self.role is Role.FOLLOWER and self._has_lost_leader)
            return self._become_follower(leader_id, epoch) if is_looking else []
        if leader_id == NOBODY:
            return self._heard_of_epoch(epoch)
        assert epoch > self.epoch or self.leader_id == NOBODY, (
            f"epoch {epoch} has leaders {self.leader_id}, {leader_id}"
        )
        return self._become_follower(leader_id, epoch)

    def _on_epoch_ended(self, ended: EpochEnded) -> list[Effect]:
        if ended.epoch > self.epoch:
            return self._heard_of_epoch(ended.epoch)
        if ended.epoch < self.epoch or self.role is not Role.FOLLOWER or not self.is_voter:
            return []
        # The first in line stands at once, the others one after the other, should it not.
        line = ended.preferred_successors
        place = line.index(self.me.key.id) if self.me.key.id in line else len(line)
        self._has_heard_leader = False
        if place == 0:
            return self._become_prospective()
        delay_ms = min(place * self._timeouts.election_backoff_max_ms // 2, self._timeouts.election_backoff_max_ms)
        self.role = Role.UNATTACHED
        return [self._set_timer(Timer.ELECTION, delay_ms, delay_ms)]

    def _on_fetched(self, fetched: Fetched) -> list[Effect]:
        if self.progress is None or fetched.replica.id == self.me.key.id:
            return []  # One with the leader's own id says nothing of what is on the leader's disk.
        effects: list[Effect] = []
        if self.voters.has(fetched.replica):
            self._heard.add(fetched.replica.id)
            self._fetching.add(fetched.replica.id)
            if len(self._heard) + self.is_voter >= self.voters.majority:
                self._heard.clear()
                effects.append(self._set_timer(Timer.CHECK_QUORUM))
        if fetched.offset != UNCHECKED:
            effects += self._on_progress(fetched.replica, fetched.offset, fetched.now_ms)
        return effects

    def _on_progress(self, replica: ReplicaKey, end_offset: int, now_ms: int = -1) -> list[Effect]:
        if self.progress is None or not self.progress.note(replica, end_offset, self.log_end.offset, now_ms):
            return []
        return [AdvanceHighWatermark(self.high_watermark)]

    def _on_leader_answered(self, answered: LeaderAnswered) -> list[Effect]:
        if self.role is not Role.FOLLOWER or answered.epoch != self.epoch:
            return []
        self._has_heard_leader, self._has_lost_leader = True, False
        effects: list[Effect] = [self._set_timer(Timer.FETCH)]
        high_watermark = min(answered.high_watermark, self.log_end.offset)
        if high_watermark > self._high_watermark:
            self._high_watermark = high_watermark
            effects.append(AdvanceHighWatermark(high_watermark))
        return effects

    def _on_leader_lost(self, epoch: int) -> list[Effect]:
        """A voter need not wait for its fetch timer: if the others still hear the leader, they will say so."""
        if self.role is not Role.FOLLOWER or epoch != self.epoch or not self.is_voter:
            return []
        self._has_heard_leader = False
        return [self._set_timer(Timer.FETCH, 0, self._timeouts.election_backoff_max_ms // _LOST_SHARE)]

    def _resign(self) -> list[Effect]:
        """A leader tells the others, so that they need not wait for its silence. Nothing is written: it did lead."""
        if self.progress is None:
            return []
        successors = self.progress.most_advanced(besides=self.me.key.id)
        resignations: list[Effect] = [
            TellOfEnd(voter, self.epoch, successors) for voter in self.voters.others(self.me.key)
        ]
        again = [self._set_timer(Timer.ELECTION)] if resignations else []
        return [*self._stop_leading(Role.RESIGNED), *resignations, *again]

    # What the log says of the voters

    def on_voters(
        self, offset: int, *, kraft_version: int | None = None, voters: VoterSet | None = None
    ) -> list[Effect]:
        """A control record that was appended, committed or not. The leader counts by the new voters at once."""
        self.history.note(offset, kraft_version=kraft_version, voters=voters)
        if self.progress is None or voters is None:
            return []
        advanced = self.progress.set_voters(voters)
        effects: list[Effect] = [AdvanceHighWatermark(self.high_watermark)] if advanced else []
        return [*effects, *self._tell_of_epoch(), self._set_timer(Timer.CHECK_QUORUM)] if self._has_others else effects

    def on_truncated(self, log_end: LogEnd) -> None:
        """A follower's log ends earlier now, because the leader has other records from there on."""
        assert log_end.offset >= self._high_watermark, "what is committed cannot be cut away"
        self.log_end = log_end
        self.history.truncate(log_end.offset)

    def on_snapshot(self, log_end: LogEnd, kraft_version: int, voters: VoterSet) -> None:
        """The log has been replaced by a snapshot of the leader's, all of which is committed."""
        self.log_end = log_end
        self._high_watermark = max(self._high_watermark, log_end.offset)
        self.history.reset(log_end.offset, kraft_version, voters)

    # Transitions

    def _become_prospective(self) -> list[Effect]:
        """Asks the others whether they would vote for this replica. Nothing is promised, and nothing is saved."""
        if not self._has_others:
            return self._become_candidate()
        self.role = Role.PROSPECTIVE
        self._granted, self._refused = self._own_vote(), set()
        return [*self._ask_for_votes(pre_vote=True), self._set_timer(Timer.ELECTION)]

    def _end_prospect(self) -> list[Effect]:
        """Not enough would vote for this replica: it continues as before, and may ask again later."""
        if self.leader_id not in (NOBODY, self.me.key.id):
            return self._become_follower(self.leader_id, self.epoch)
        self.role = Role.UNATTACHED if self.leader_id == NOBODY else Role.RESIGNED
        return [self._set_timer(Timer.ELECTION)]

    def _become_candidate(self) -> list[Effect]:
        self.epoch += 1
        self.role = Role.CANDIDATE
        self.leader_id = NOBODY
        self.voted_for = self.me.key
        self._granted, self._refused = self._own_vote(), set()
        if len(self._granted) >= self.voters.majority:
            return self._become_leader()  # What it saves says all that a vote for itself would.
        return [self._save(), *self._ask_for_votes(pre_vote=False), self._set_timer(Timer.ELECTION)]

    def _own_vote(self) -> set[int]:
        return {self.me.key.id} if self.is_voter else set()

    def _ask_for_votes(self, *, pre_vote: bool) -> list[Effect]:
        return [
            AskForVote(voter, self.epoch, self.log_end, pre_vote=pre_vote) for voter in self.voters.others(self.me.key)
        ]

    def _become_leader(self) -> list[Effect]:
        self.role = Role.LEADER
        self.leader_id = self.me.key.id
        self.voted_for = None
        self._heard.clear()
        self._fetching.clear()
        self.progress = Progress(self.voters, self.log_end.offset, self._high_watermark)
        voters, write_voters = self._voters_to_write()
        begin = BeginEpoch(self.epoch, voters, tuple(sorted(self._granted)), write_voters)
        checks = [self._set_timer(Timer.CHECK_QUORUM)] if self._has_others else []
        return [self._save(), begin, *self._tell_of_epoch(), *checks]

    def _tell_of_epoch(self) -> list[Effect]:
        """Again and again, to the voters that have not been heard of: a follower need not hear it."""
        others = [voter for voter in self.voters.others(self.me.key) if voter.key.id not in self._fetching]
        self._fetching.clear()
        resignations: list[Effect] = [TellOfEpoch(voter, self.epoch) for voter in others]
        return [*resignations, self._set_timer(Timer.BEGIN_EPOCH)] if self._has_others else []

    def _voters_to_write(self) -> tuple[VoterSet, bool]:
        """The voters with this one as it is today, and whether they have yet to be written to the log.

        It has if a leader wrote them that lost what it wrote: then nothing of the log says who votes any more.
        """
        if self.kraft_version < DYNAMIC_VOTERS:
            return self.voters, False
        current = self.voters.updated(self.me) if self.is_voter else self.voters
        return current, not self.history.is_in_log or current != self.voters

    def _become_follower(self, leader_id: int, epoch: int) -> list[Effect]:
        stopped = self._stop_leading(Role.FOLLOWER)
        was = self.epoch, self.leader_id
        self.role, self.epoch, self.leader_id, self.voted_for = Role.FOLLOWER, epoch, leader_id, None
        self._has_heard_leader = self._has_lost_leader = False
        saved = [self._save()] if was != (epoch, leader_id) else []
        return [*stopped, *saved, Follow(leader_id, epoch), self._set_timer(Timer.FETCH)]

    def _heard_of_epoch(self, epoch: int) -> list[Effect]:
        """A newer epoch ends whatever this replica was doing in its own."""
        if epoch <= self.epoch:
            return []
        stopped = self._stop_leading(Role.UNATTACHED)
        self.role, self.epoch, self.leader_id, self.voted_for = Role.UNATTACHED, epoch, NOBODY, None
        return [*stopped, self._save(), *self._wait_for_election()]

    def _stop_leading(self, role: Role) -> list[Effect]:
        if self.progress is None:
            return []
        self._high_watermark = self.progress.high_watermark
        self.progress = None
        self.role = role
        return [StopLeading(self.epoch)]

    # Orders

    def _save(self) -> SaveQuorumState:
        voted = self.voted_for or ReplicaKey(NOBODY)
        return SaveQuorumState(QuorumState(self.epoch, self.leader_id, voted.id, voted.directory_id))

    def _set_timer(self, timer: Timer, delay_ms: int | None = None, jitter_ms: int = 0) -> SetTimer:
        """Only the last one of its kind counts."""
        self._timer += 1
        self._set[timer] = self._timer
        if delay_ms is not None:
            return SetTimer(timer, self._timer, delay_ms, jitter_ms)
        match timer:
            case Timer.ELECTION:
                return SetTimer(timer, self._timer, self._timeouts.election_ms, self._timeouts.election_ms)
            case Timer.FETCH:
                return SetTimer(timer, self._timer, self._timeouts.fetch_ms)
            case Timer.CHECK_QUORUM:
                return SetTimer(timer, self._timer, self._timeouts.check_quorum_ms)
            case Timer.BEGIN_EPOCH:
                return SetTimer(timer, self._timer, self._timeouts.begin_epoch_ms)
