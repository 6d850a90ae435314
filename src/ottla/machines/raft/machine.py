"""The Raft machine: one replica of the metadata log, its role, and every transition between roles.

Theory of operation. Time is cut into epochs, each with at most one leader. A replica is in one epoch and in one role:

    role         entered when                                           left for
    UNATTACHED   a newer epoch is heard of, its leader not yet          CANDIDATE on the election timer, FOLLOWER
    CANDIDATE    a voter's timer expired: next epoch, a vote for itself LEADER with a majority, CANDIDATE on the timer
    LEADER       a majority has voted for it                            RESIGNED at shutdown
    FOLLOWER     the epoch's leader is known                            CANDIDATE on the fetch timer, or as asked
    RESIGNED     it led this epoch, and does so no more                 CANDIDATE on the election timer, FOLLOWER

and from any of them to UNATTACHED, when a newer epoch is heard of. A node that starts as the leader it was is RESIGNED:
what it had not flushed is gone, so nothing may be written in that epoch again.

A replica gives one vote an epoch, to a candidate whose log is at least as long as its own, and remembers it on disk
before it answers. So no two candidates get a majority, and the one who does has all that is committed.

A sole voter needs nobody's answer: at `Started` it passes through CANDIDATE to LEADER in one step. There is no other
path for it. Its high watermark is what it has flushed.

Left for clusters: pre-votes (KIP-996), the leader's check that a majority still fetches, diverging logs, and the
adding and removing of voters.
"""

from dataclasses import dataclass
from enum import Enum

from ottla.machines.raft.events import (
    NOBODY,
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
from ottla.machines.raft.progress import Progress
from ottla.machines.raft.voters import DYNAMIC_VOTERS, STATIC_VOTERS, ReplicaKey, Voter, VoterSet


class Role(Enum):
    UNATTACHED = "unattached"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """`controller.quorum.election.timeout.ms`, `.election.backoff.max.ms` and `.fetch.timeout.ms`."""

    election_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_ms: int = 2000


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
        voters_in_log: bool = True,
        timeouts: Timeouts | None = None,
    ) -> None:
        """`me` is this replica as it describes itself today; the voters may hold an older description.

        `voters_in_log` is False where they come from the formatting of the directory, and no leader has written them.
        """
        self.me = me
        self.voters = voters
        self.kraft_version = kraft_version
        self.log_end = log_end
        self.epoch = max(saved.epoch, log_end.epoch)
        self.leader_id = NOBODY
        self.voted_for: ReplicaKey | None = None
        self.role = Role.UNATTACHED
        self.progress: Progress | None = None
        self._high_watermark = 0
        self._voters_in_log = voters_in_log
        self._timeouts = timeouts or Timeouts()
        self._granted: set[int] = set()
        self._refused: set[int] = set()
        self._timer = 0
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
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def is_voter(self) -> bool:
        return self.voters.has(self.me.key)

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
            case Fetched(replica, offset):
                return self._on_progress(replica, offset)
            case ShutdownRequested():
                return self._on_shutdown()

    # What happens

    def _on_started(self) -> list[Effect]:
        if not self.is_voter:
            return []
        if len(self.voters) == 1:
            return self._become_candidate()
        if self.role is Role.FOLLOWER:
            return [Follow(self.leader_id, self.epoch), self._set_timer(Timer.FETCH)]
        return [self._set_timer(Timer.ELECTION)]

    def _on_timer(self, timer: Timer, number: int) -> list[Effect]:
        waits_for_election = self.role in (Role.UNATTACHED, Role.CANDIDATE, Role.RESIGNED)
        wanted = Timer.ELECTION if waits_for_election else Timer.FETCH
        if number != self._timer or timer is not wanted or self.is_leader or not self.is_voter:
            return []
        return self._become_candidate()

    def _on_vote_requested(self, request: VoteRequested) -> list[Effect]:
        effects = self._heard_of_epoch(request.epoch)
        granted = (
            request.epoch == self.epoch
            and self.leader_id == NOBODY
            and self.voted_for in (None, request.candidate)
            and self.role is Role.UNATTACHED
            and request.log_end >= self.log_end
        )
        if granted and self.voted_for is None:
            self.voted_for = request.candidate
            effects += [self._save(), self._set_timer(Timer.ELECTION)]
        effects.append(AnswerVote(request.candidate, self.epoch, granted, self.leader_id))
        return effects

    def _on_vote_replied(self, reply: VoteReplied) -> list[Effect]:
        if reply.epoch > self.epoch or (reply.epoch == self.epoch and reply.leader_id != NOBODY):
            return self._on_leader(reply.leader_id, reply.epoch)
        if reply.epoch < self.epoch or self.role is not Role.CANDIDATE or self.voters.get(reply.voter_id) is None:
            return []
        (self._granted if reply.granted else self._refused).add(reply.voter_id)
        if len(self._granted) >= self.voters.majority:
            return self._become_leader()
        if len(self.voters) - len(self._refused) < self.voters.majority:
            # This election is lost. A pause by chance keeps the candidates of the next one apart.
            return [self._set_timer(Timer.ELECTION, 0, self._timeouts.election_backoff_max_ms)]
        return []

    def _on_leader(self, leader_id: int, epoch: int) -> list[Effect]:
        """Somebody leads, or an epoch has come whose leader is not known."""
        if epoch < self.epoch or (epoch == self.epoch and (leader_id == NOBODY or leader_id == self.leader_id)):
            return []
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
        if place == 0:
            return self._become_candidate()
        delay_ms = min(place * self._timeouts.election_backoff_max_ms // 2, self._timeouts.election_backoff_max_ms)
        self.role = Role.UNATTACHED
        return [self._set_timer(Timer.ELECTION, delay_ms, delay_ms)]

    def _on_progress(self, replica: ReplicaKey, end_offset: int) -> list[Effect]:
        if self.progress is None or not self.progress.note(replica, end_offset):
            return []
        return [AdvanceHighWatermark(self.high_watermark)]

    def _on_shutdown(self) -> list[Effect]:
        """A leader tells the others, so that they need not wait for its silence. Nothing is written: it did lead."""
        if self.progress is None:
            return []
        successors = self.progress.most_advanced(besides=self.me.key.id)
        told: list[Effect] = [TellOfEnd(voter, self.epoch, successors) for voter in self.voters.others(self.me.key)]
        return [*self._stop_leading(Role.RESIGNED), *told]

    # Transitions

    def _become_candidate(self) -> list[Effect]:
        self.epoch += 1
        self.role = Role.CANDIDATE
        self.leader_id = NOBODY
        self.voted_for = self.me.key
        self._granted, self._refused = {self.me.key.id}, set()
        if len(self._granted) >= self.voters.majority:
            return self._become_leader()  # What it saves says all that a vote for itself would.
        asked = [AskForVote(voter, self.epoch, self.log_end) for voter in self.voters.others(self.me.key)]
        return [self._save(), *asked, self._set_timer(Timer.ELECTION)]

    def _become_leader(self) -> list[Effect]:
        self.role = Role.LEADER
        self.leader_id = self.me.key.id
        self.voted_for = None
        self.progress = Progress(self.voters, self.log_end.offset, self._high_watermark)
        voters, write_voters = self._voters_to_write()
        begin = BeginEpoch(self.epoch, voters, tuple(sorted(self._granted)), write_voters)
        return [self._save(), begin, *(TellOfEpoch(voter, self.epoch) for voter in self.voters.others(self.me.key))]

    def _voters_to_write(self) -> tuple[VoterSet, bool]:
        """The voters with this one as it is today, and whether the log has yet to be told of them."""
        if self.kraft_version < DYNAMIC_VOTERS:
            return self.voters, False
        current = self.voters.updated(self.me)
        changed = not self._voters_in_log or current != self.voters
        self.voters, self._voters_in_log = current, True
        return current, changed

    def _become_follower(self, leader_id: int, epoch: int) -> list[Effect]:
        stopped = self._stop_leading(Role.FOLLOWER)
        self.role, self.epoch, self.leader_id, self.voted_for = Role.FOLLOWER, epoch, leader_id, None
        return [*stopped, self._save(), Follow(leader_id, epoch), self._set_timer(Timer.FETCH)]

    def _heard_of_epoch(self, epoch: int) -> list[Effect]:
        """A newer epoch ends whatever this replica was doing in its own."""
        if epoch <= self.epoch:
            return []
        stopped = self._stop_leading(Role.UNATTACHED)
        self.role, self.epoch, self.leader_id, self.voted_for = Role.UNATTACHED, epoch, NOBODY, None
        return [*stopped, self._save(), self._set_timer(Timer.ELECTION)]

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
        """Only the last one set counts: a role waits for one thing."""
        self._timer += 1
        if delay_ms is None and timer is Timer.FETCH:
            return SetTimer(timer, self._timer, self._timeouts.fetch_ms)
        if delay_ms is None:
            return SetTimer(timer, self._timer, self._timeouts.election_ms, self._timeouts.election_ms)
        return SetTimer(timer, self._timer, delay_ms, jitter_ms)
