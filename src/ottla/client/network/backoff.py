"""Pauses that grow with each failure, and differ from client to client (KIP-580)."""

from typing import NamedTuple

from ottla.base.ports import Entropy

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
