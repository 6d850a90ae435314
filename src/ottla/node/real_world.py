"""The real world: one adapter for each port, for a node on a loop."""

import os
from typing import TYPE_CHECKING, TypeVar

from ottla.log.disk import OsDisk
from ottla.node.clock import SystemClock
from ottla.runtime.loop import Loop
from ottla.runtime.network import LoopNetwork, SystemHostNames
from ottla.runtime.timers import LoopTimers
from ottla.runtime.workers import ThreadWorkers
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.log.cleaning.runner import Runner

# Chance that cannot be foretold, from the system.
#
# `random.SystemRandom` is the same, in a module that takes a quarter of a megabyte of each node's memory.

ItemT = TypeVar("ItemT")


class SystemEntropy:
    """The port `Entropy`."""

    def randbytes(self, count: int, /) -> bytes:
        return os.urandom(count)

    def randrange(self, stop: int, /) -> int:
        """Every number is as likely as any other: what is drawn beyond `stop` is drawn again."""
        assert stop > 0, "there is nothing to draw from"
        bits = (stop - 1).bit_length()
        size = (bits + 7) // 8
        while True:
            drawn = int.from_bytes(os.urandom(size), "big") >> (size * 8 - bits)
            if drawn < stop:
                return drawn

    def shuffle(self, items: list[ItemT], /) -> None:
        for place in range(len(items) - 1, 0, -1):
            other = self.randrange(place + 1)
            items[place], items[other] = items[other], items[place]


def real_world(loop: Loop) -> World:
    return World(
        disk=OsDisk(),
        clock=SystemClock(),
        timers=LoopTimers(loop),
        workers=ThreadWorkers(loop),
        network=LoopNetwork(loop),
        entropy=SystemEntropy(),
        host_names=SystemHostNames(),
        make_cleaner=lambda: _cleaner_process(loop),
    )


def _cleaner_process(loop: Loop) -> "Runner":
    from ottla.runtime.cleaner_process import CleanerProcess  # Nothing is cleaned while a node starts.

    return CleanerProcess(loop)
