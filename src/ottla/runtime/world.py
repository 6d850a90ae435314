"""Everything that a node has to do with outside itself, in one object that it is given.

`ottla.node.real_world` makes the real one: sockets, threads, the system's clock and chance. `ottla.testing` has others,
in one thread, in which time passes when a test says so and everything else follows from a seed.

A world is one node's. When the node is killed, its timers, its jobs and its connections go with it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ports import Clock, Disk, Entropy, HostNames, Network, Timers, Workers

if TYPE_CHECKING:
    from ottla.log.cleaning.runner import Runner


class World(NamedTuple):
    """What a node reaches outside of itself, each through its port."""

    disk: Disk
    clock: Clock
    timers: Timers
    workers: Workers
    network: Network
    entropy: Entropy
    host_names: HostNames
    make_cleaner: Callable[[], "Runner"]
    """For each cleaning that runs beside others; see `ottla.log.cleaning`."""
