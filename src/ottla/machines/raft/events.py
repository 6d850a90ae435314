"""What happens to the Raft machine (events) and what it wants done (effects).

Effects are performed in the order given. One order matters above all: what `SaveQuorumState` says is durable before
anything after it is done, so that nothing a vote or an epoch promised is forgotten in a crash.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.raft.voters import ReplicaKey, Voter, VoterSet

NOBODY = -1


class LogEnd(NamedTuple):
    """The end of a log, comparable as Raft compares logs: the later epoch wins, then the longer log."""

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class QuorumState:
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


# Events


@dataclass(frozen=True, slots=True)
class Started:
    """The node is up, and its log is open."""


@dataclass(frozen=True, slots=True)
class TimerExpired:
    """One set by `SetTimer`. Timers are never cancelled: those of an epoch or a role that is over change nothing."""

    timer: Timer
    number: int


@dataclass(frozen=True, slots=True)
class VoteRequested:
    candidate: ReplicaKey
    epoch: int
    log_end: LogEnd


@dataclass(frozen=True, slots=True)
class VoteReplied:
    voter_id: int
    epoch: int
    granted: bool
    leader_id: int = NOBODY


@dataclass(frozen=True, slots=True)
class EpochBegan:
    """A leader says that it leads: BeginQuorumEpoch, or what any reply tells of the leader."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class EpochEnded:
    """A leader says that it steps down: EndQuorumEpoch, with the voters it would like to follow it, best first."""

    epoch: int
    preferred_successors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Flushed:
    """All of the local log up to this offset would survive a power cut."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """A replica asked for records from this offset on, so it has all before it, durably."""

    replica: ReplicaKey
    offset: int


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
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
    | ShutdownRequested
)


# Effects


@dataclass(frozen=True, slots=True)
class SaveQuorumState:
    """Write it down. Durable before any later effect is performed."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class AskForVote:
    voter: Voter
    epoch: int
    log_end: LogEnd


@dataclass(frozen=True, slots=True)
class AnswerVote:
    candidate: ReplicaKey
    epoch: int
    granted: bool
    leader_id: int


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """Append, as one control batch: who leads in this epoch, and, if `write_voters`, kraft.version and the voters."""

    epoch: int
    voters: VoterSet
    granting_voter_ids: tuple[int, ...]
    write_voters: bool


@dataclass(frozen=True, slots=True)
class TellOfEpoch:
    """BeginQuorumEpoch to a voter."""

    voter: Voter
    epoch: int


@dataclass(frozen=True, slots=True)
class TellOfEnd:
    """EndQuorumEpoch to a voter."""

    voter: Voter
    epoch: int
    preferred_successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Everything before the offset is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class Follow:
    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StopLeading:
    epoch: int


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Wait for `delay_ms` and up to `jitter_ms` more, by chance; then tell of `number`."""

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
    | StopLeading
    | SetTimer
)
