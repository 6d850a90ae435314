"""A follower's view of one partition's leader, in one leader epoch: what it asks for, and what an answer means.

    fetching ──(records)──> fetching
       │ ├─────(the logs part)───> cut back, and fetching
       │ ├─────(out of range)────> the leader is asked where its log is, then cut or emptied, and fetching
       │ └─────(any other error)─> waiting, for longer each time, and fetching
       v
    over, when the metadata name another leader or epoch

Errors pass by themselves: a leader that has not heard of its epoch will, and a follower that has not will hear of the
next one. What is asked for is always the end of the follower's own log, so nothing needs to be remembered across them.
"""

from enum import Enum
from typing import Final, NamedTuple

from ottla.wire.errors import ErrorCode

_FIRST_PAUSE_MS: Final = 20
_MOST_DOUBLINGS: Final = 16


class Step(Enum):
    """What follows from a leader's answer."""

    TAKE = "append what came"
    TRUNCATE = "cut back to where the logs part"
    FIND_START = "ask where the leader's log begins and ends"
    WAIT = "ask again after a pause"


def step_after(error: ErrorCode, *, is_diverging: bool) -> Step:
    if error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return Step.FIND_START
    if error:
        return Step.WAIT
    return Step.TRUNCATE if is_diverging else Step.TAKE


class Pauses:
    """How long to wait after failures in a row: short at first, as a new leader needs a moment, at most `most_ms`."""

    __slots__ = ("_failures", "_most_ms")

    def __init__(self, most_ms: int) -> None:
        self._most_ms = most_ms
        self._failures = 0

    def on_success(self) -> None:
        self._failures = 0

    def next_ms(self) -> int:
        """It has failed once more."""
        pause_ms = _FIRST_PAUSE_MS << min(self._failures, _MOST_DOUBLINGS)
        self._failures += 1
        return min(pause_ms, self._most_ms)


# Where two logs part: what a follower cuts away so that its log is a beginning of its leader's (KIP-101, KIP-279).
#
# The follower says with each fetch which leader epoch its last record is of. A leader that knows no such epoch, or has
# it end earlier, answers with the largest epoch up to it that it knows, and the offset where that ended (KIP-595). The
# follower cuts back to where that epoch ends in both logs. If it does not know the epoch itself, it cuts back to the
# end of the one before, and asks again with that: each round takes at least one of its epochs away, so the rounds end.


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset after its last record; -1 where a log knows nothing of that time."""

    epoch: int
    end_offset: int


def truncation_offset(leader: EpochEnd, own: EpochEnd, log_end_offset: int) -> int:
    """The end that a follower's log is to have. `own` is its answer to the epoch in `leader`, as a leader gives it."""
    assert leader.end_offset >= 0, "a leader that says where logs part knows an offset"
    if own.epoch < 0:
        return min(leader.end_offset, log_end_offset)  # It knows no epochs from that time; the leader does.
    if own.epoch != leader.epoch:
        return min(own.end_offset, log_end_offset)
    return min(own.end_offset, leader.end_offset, log_end_offset)


class NewStart(NamedTuple):
    """Where a follower continues whose position is not in its leader's log."""

    offset: int
    is_empty: bool
    """Whether nothing of its log is of use: it begins anew at `offset`. Otherwise it is cut to end there."""


def start_within(leader_start_offset: int, leader_end_offset: int, log_end_offset: int) -> NewStart:
    """A leader that ends earlier was elected uncleanly; one that begins later has deleted what the follower missed."""
    if leader_end_offset < log_end_offset:
        return NewStart(leader_end_offset, False)
    return NewStart(max(leader_start_offset, log_end_offset), leader_start_offset > log_end_offset)
