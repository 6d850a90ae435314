"""What happens to the Raft machine (events) and what it wants done (effects).

Effects are performed in the order given. One order matters above all: what `SaveQuorumState` says is durable before
anything after it is done, so that nothing a vote or an epoch promised is forgotten in a crash.

They are named tuples because every node makes them at its start: a dataclass costs 0.6 ms there, and these are twenty.
"""

from enum import Enum
from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.raft.voters import ReplicaKey, Voter, VoterSet

NOBODY = -1
UNCHECKED = -1


class LogEnd(NamedTuple):
    """The end of a log, comparable as Raft compares logs: the later epoch wins, then the longer log."""

    epoch: int
    offset: int


class QuorumState(NamedTuple):
    """What a replica remembers of elections: its epoch, and who leads in it or whom it voted for."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: Uuid = ZERO_UUID


class Timer(Enum):
    ELECTION = "election"
    """A vote has not come to an end, or nobody is heard of."""
    FETCH = "fetch"
    """The leader has not answered."""
    CHECK_QUORUM = "check quorum"
    """A leader has not heard of a majority."""
    BEGIN_EPOCH = "begin epoch"
    """Time for a leader to tell voters that do not fetch that it leads."""


class _WithoutContent:
    """Says all that it says by its type."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


# Events


class Started(_WithoutContent):
    """The node is up, and its log is open."""


class TimerExpired(NamedTuple):
    """One set by `SetTimer`. Timers are never cancelled: those of an epoch or a role that is over change nothing."""

    timer: Timer
    number: int


class VoteRequested(NamedTuple):
    """`pre_vote`: whether a vote would be given. It promises nothing (KIP-996)."""

    candidate: ReplicaKey
    epoch: int
    log_end: LogEnd
    pre_vote: bool = False


class VoteReplied(NamedTuple):
    voter_id: int
    epoch: int
    granted: bool
    leader_id: int = NOBODY
    pre_vote: bool = False


class EpochBegan(NamedTuple):
    """A leader says that it leads: BeginQuorumEpoch, or what any reply tells of the leader."""

    leader_id: int
    epoch: int


class EpochEnded(NamedTuple):
    """A leader says that it steps down: EndQuorumEpoch, with the voters it would like to follow it, best first."""

    epoch: int
    preferred_successors: tuple[int, ...] = ()


class Flushed(NamedTuple):
    """All of the local log up to this offset would survive a power cut."""

    end_offset: int


class Fetched(NamedTuple):
    """A replica asked the leader for records from this offset on.

    It has all before it, durably, if that has been checked against the leader's log; else `offset` is `UNCHECKED`, and
    the replica is only known to be alive.
    """

    replica: ReplicaKey
    offset: int
    now_ms: int = -1


class LeaderAnswered(NamedTuple):
    """The leader of this epoch has answered a fetch: everything before `high_watermark` is committed."""

    epoch: int
    high_watermark: int


class LeaderLost(NamedTuple):
    """The leader of this epoch cannot be reached: its process seems to be gone."""

    epoch: int


class ShutdownRequested(_WithoutContent):
    """The node is about to stop in good order."""


Event = (
    Started
    | TimerExpired
    | VoteRequested
    | VoteReplied
    | EpochBegan
    | EpochEnded
    | Flushed
    | Fetched
    | LeaderAnswered
    | LeaderLost
    | ShutdownRequested
)


# Effects


class SaveQuorumState(NamedTuple):
    """Write it down. Durable before any later effect is performed."""

    state: QuorumState


class AskForVote(NamedTuple):
    voter: Voter
    epoch: int
    log_end: LogEnd
    pre_vote: bool = False


class AnswerVote(NamedTuple):
    """One for every `VoteRequested`, in their order."""

    candidate: ReplicaKey
    epoch: int
    granted: bool
    leader_id: int


class BeginEpoch(NamedTuple):
    """Append, as one control batch: who leads in this epoch, and, if `write_voters`, kraft.version and the voters."""

    epoch: int
    voters: VoterSet
    granting_voter_ids: tuple[int, ...]
    write_voters: bool


class TellOfEpoch(NamedTuple):
    """BeginQuorumEpoch to a voter."""

    voter: Voter
    epoch: int


class TellOfEnd(NamedTuple):
    """EndQuorumEpoch to a voter."""

    voter: Voter
    epoch: int
    preferred_successors: tuple[int, ...]


class AdvanceHighWatermark(NamedTuple):
    """Everything before the offset is committed."""

    offset: int


class Follow(NamedTuple):
    """Fetch from this leader, for as long as this replica follows it in this epoch."""

    leader_id: int
    epoch: int


class FindLeader(_WithoutContent):
    """Ask the controllers that are known who leads: nobody tells a replica without a vote, or one that is forgotten."""


class StopLeading(NamedTuple):
    epoch: int


class SetTimer(NamedTuple):
    """Wait for `delay_ms` and up to `jitter_ms` more, by chance; then tell of `number`. Replaces one of its kind."""

    timer: Timer
    number: int
    delay_ms: int
    jitter_ms: int = 0


Effect = (
    SaveQuorumState
    | AskForVote
    | AnswerVote
    | BeginEpoch
    | TellOfEpoch
    | TellOfEnd
    | AdvanceHighWatermark
    | Follow
    | FindLeader
    | StopLeading
    | SetTimer
)
