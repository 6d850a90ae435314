"""Steps of handshakes, a few at a time.

A step in which a private key is used takes a millisecond, ten times as long as a request. If a thousand clients connect
at once, the clients that are there already must not wait for a second: so steps are done at the end of a turn, for no
longer than a moment, and the rest of them after the next turn.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from ottla.base.ports import Network

_MOMENT_S: Final = 0.002


class HandshakeLane:
    """For all TLS listeners of a node."""

    def __init__(self, network: Network, now_s: Callable[[], float]) -> None:
        self._network = network
        self._now_s = now_s
        self._steps: deque[Callable[[], None]] = deque()
        self._is_due = False

    def add(self, step: Callable[[], None]) -> None:
        self._steps.append(step)
        self._work_later()

    def _work_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._network.at_end_of_turn(self._work)

    def _work(self) -> None:
        self._is_due = False
        until_s = self._now_s() + _MOMENT_S
        try:
            while self._steps:
                self._steps.popleft()()
                if self._now_s() >= until_s:
                    break
        finally:
            if self._steps:
                self._work_later()
