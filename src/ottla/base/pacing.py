"""How often something that persists is reported: at once, and then after pauses that grow to a minute.

What is tried again and again fails again and again, and must not fill a log. So a line is about something: a broker, a
topic, a directory. About one thing there is a line at once; the next ones come after growing pauses, with how many were
left out. What comes and goes is paced as what stays is. The number of things is bounded: those that nothing was heard
of for longest are forgotten.
"""

from collections.abc import Hashable
from typing import Final, NamedTuple

from ottla.base.ports import Entropy

_FIRST_PAUSE_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 60.0
_MOST_SUBJECTS: Final = 200


class _Trouble:
    __slots__ = ("is_over", "is_reported", "left_out", "next_s", "pause_s", "seen_s", "since_s")

    def __init__(self, now_s: float) -> None:
        self.next_s = now_s
        """There is no line about it before."""
        self.pause_s = _FIRST_PAUSE_S
        self.left_out = 0
        self.begin(now_s)

    def begin(self, now_s: float) -> None:
        self.since_s = self.seen_s = now_s
        self.is_reported = self.is_over = False
        if now_s - self.next_s > _LONGEST_PAUSE_S:
            self.pause_s, self.left_out = _FIRST_PAUSE_S, 0


class Pacing:
    """Of one log. Time comes in."""

    def __init__(self) -> None:
        self._troubles: dict[Hashable, _Trouble] = {}

    def due(self, about: Hashable, now_s: float, after_s: float = 0.0) -> int | None:
        """Something failed: how many lines about it were left out if one is due now, or None if none is.

        With `after_s`, one is due only if it still fails that much later. What was not heard of for a minute is over.
        """
        trouble = self._troubles.pop(about, None) or _Trouble(now_s)
        self._troubles[about] = trouble
        if len(self._troubles) > _MOST_SUBJECTS:
            del self._troubles[next(iter(self._troubles))]
        if trouble.is_over or now_s - trouble.seen_s > _LONGEST_PAUSE_S:
            trouble.begin(now_s)
        trouble.seen_s = now_s
        if now_s < trouble.next_s:
            trouble.left_out += 1
            return None
        if now_s < trouble.since_s + after_s:
            return None
        left_out, trouble.left_out, trouble.is_reported = trouble.left_out, 0, True
        trouble.next_s = now_s + trouble.pause_s
        trouble.pause_s = min(trouble.pause_s * 2, _LONGEST_PAUSE_S)
        return left_out

    def over(self, about: Hashable, now_s: float) -> float | None:
        """It has ended: after how many seconds, if that it had begun was reported; else None."""
        trouble = self._troubles.get(about)
        if trouble is None or trouble.is_over:
            return None
        trouble.is_over = True
        return now_s - trouble.since_s if trouble.is_reported else None

    def is_on(self, about: Hashable) -> bool:
        trouble = self._troubles.get(about)
        return trouble is not None and not trouble.is_over


def and_more(left_out: int) -> str:
    """The end of a line."""
    return f" ({left_out} more like it since the last line)" if left_out else ""


# Pauses that grow with each failure, and differ from client to client (KIP-580).

_JITTER = 0.2
_STEPS = 1000
_MOST_DOUBLINGS = 62


class Backoff(NamedTuple):
    first_ms: float
    most_ms: float

    def after(self, failures: int, entropy: Entropy) -> float:
        """Milliseconds to wait after so many failures before this one: a fifth more or less, so that clients spread."""
        if self.first_ms <= 0:
            return 0.0
        grown_ms: float = min(self.first_ms * (1 << min(failures, _MOST_DOUBLINGS)), max(self.first_ms, self.most_ms))
        jitter = 1 + _JITTER * (2 * entropy.randrange(_STEPS + 1) / _STEPS - 1)
        return grown_ms * jitter
