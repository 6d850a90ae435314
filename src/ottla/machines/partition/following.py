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
from typing import Final

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
