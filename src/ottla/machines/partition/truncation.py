"""Where two logs part: what a follower cuts away so that its log is a beginning of its leader's (KIP-101, KIP-279).

The follower says with each fetch which leader epoch its last record is of. A leader that knows no such epoch, or has it
end earlier, answers with the largest epoch up to it that it knows, and the offset where that ended (KIP-595). The
follower cuts back to where that epoch ends in both logs. If it does not know the epoch itself, it cuts back to the end
of the one before, and asks again with that: each round takes at least one of its epochs away, so the rounds end.
"""

from typing import NamedTuple


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
    """Where a follower goes on whose position is not in its leader's log."""

    offset: int
    is_empty: bool
    """Whether nothing of its log is of use: it begins anew at `offset`. Otherwise it is cut to end there."""


def start_within(leader_start_offset: int, leader_end_offset: int, log_end_offset: int) -> NewStart:
    """A leader that ends earlier was elected uncleanly; one that begins later has deleted what the follower missed."""
    if leader_end_offset < log_end_offset:
        return NewStart(leader_end_offset, False)
    return NewStart(max(leader_start_offset, log_end_offset), leader_start_offset > log_end_offset)
