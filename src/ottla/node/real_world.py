"""The real world: one adapter for each port, for a node on a loop."""

from asyncio import AbstractEventLoop

from ottla.log.disk import OsDisk
from ottla.node.clock import SystemClock
from ottla.node.system_entropy import SystemEntropy
from ottla.runtime.cleaner_process import CleanerProcess
from ottla.runtime.host_names import SystemHostNames
from ottla.runtime.network import LoopNetwork
from ottla.runtime.timers import LoopTimers
from ottla.runtime.workers import ThreadWorkers
from ottla.runtime.world import World


def real_world(loop: AbstractEventLoop) -> World:
    return World(
        disk=OsDisk(),
        clock=SystemClock(),
        timers=LoopTimers(loop),
        workers=ThreadWorkers(loop),
        network=LoopNetwork(loop),
        entropy=SystemEntropy(),
        host_names=SystemHostNames(),
        make_cleaner=lambda: CleanerProcess(loop),
    )
