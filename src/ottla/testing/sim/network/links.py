"""One direction between two machines of a simulation. What it does to bytes on their way is drawn from the seed.

A link that is cut keeps what is sent: TCP sends it again and again. It arrives some time after the link is mended, if
its connection has not been given up by then.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from ottla.testing.sim.network.passing_frames import Repeating
from ottla.testing.step_timers import Agenda

_RESENT_AFTER_US = 200_000
_LONGEST_RESENDING_US = 1_500_000


class Weather(NamedTuple):
    """What links are like when nothing is the matter."""

    shortest_us: int = 100
    spread_us: int = 400
    """How much longer it may take; short is likelier."""
    loss: float = 0.0
    """How likely a packet is to be lost, and to come later for it."""
    bytes_per_us: float = 100.0


class Link:
    """`slow_us` comes on top of the weather, for as long as it is set. `breaks` is how likely a connection is to break
    under a piece that it sends: the piece is lost with it. `repeating` is how likely a frame is to come twice."""

    def __init__(self, agenda: Agenda, random: Random, weather: Weather) -> None:
        self.is_cut = False
        self.breaks = 0.0
        self.repeating: Repeating | None = None
        self.slow_us = 0
        self._cuts = 0
        self._agenda = agenda
        self._random = random
        self._weather = weather
        self._kept: list[Callable[[], None]] = []

    def delay_us(self, size: int) -> int:
        """How long so many bytes take."""
        weather, chance = self._weather, self._random.random
        delay_us = weather.shortest_us + int(chance() ** 3 * weather.spread_us) + int(size / weather.bytes_per_us)
        if self.slow_us:
            delay_us += int(chance() * self.slow_us)
        if weather.loss and chance() < weather.loss:
            delay_us += _RESENT_AFTER_US
        return delay_us

    def keep(self, send_again: Callable[[], None]) -> None:
        """It is cut: `send_again` is called when it is mended."""
        self._kept.append(send_again)

    def breaks_now(self) -> bool:
        return bool(self.breaks) and self._random.random() < self.breaks

    def cut(self) -> None:
        self._cuts += 1
        self.is_cut = True

    def mend(self) -> None:
        """Ends one cut. It is whole when that was the last."""
        self._cuts = max(self._cuts - 1, 0)
        if self._cuts:
            return
        self.is_cut = False
        kept, self._kept = self._kept, []
        if kept:
            resent_us = self._agenda.clock.elapsed_us() + int(self._random.random() * _LONGEST_RESENDING_US)
            for send_again in kept:
                self._agenda.call_at(resent_us, send_again)
