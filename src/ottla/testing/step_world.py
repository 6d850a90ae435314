"""A world in which nothing happens behind a test's back.

    world = step_world(disk, clock, timers=timers, workers=workers)

Disk jobs are done when they are given, or held; timers fire when time is moved; chance comes from a seed.
"""

from collections.abc import Callable
from random import Random

from ottla.base.ports import Disk, HostNames, Network, Timers, Workers
from ottla.log.cleaning.runner import Runner
from ottla.runtime.world import World
from ottla.testing.clock import FixedClock
from ottla.testing.host_names import FixedHostNames
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_cleaner import StepRunner
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_workers import StepWorkers


def step_world(
    disk: Disk | None = None,
    clock: FixedClock | None = None,
    *,
    timers: Timers | None = None,
    workers: Workers | None = None,
    network: Network | None = None,
    seed: int = 0,
    host_names: HostNames | None = None,
    make_cleaner: Callable[[], Runner] | None = None,
) -> World:
    """What is not given is made: a disk in memory, a clock that stands still, and so on."""
    disk = MemoryDisk() if disk is None else disk
    clock = clock or FixedClock()
    return World(
        disk=disk,
        clock=clock,
        timers=StepTimers(clock) if timers is None else timers,
        workers=StepWorkers() if workers is None else workers,
        network=MemoryNetwork() if network is None else network,
        entropy=Random(seed),
        host_names=host_names or FixedHostNames(),
        make_cleaner=make_cleaner or (lambda: StepRunner(disk)),
    )
