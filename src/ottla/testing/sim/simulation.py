"""Nodes in one thread, from a seed: no socket, no thread, no clock and no chance but those made up here.

    simulation = Simulation(seed=7)
    node = simulation.start(make_node)
    client = node.connect()
    reply = client.ask(MetadataRequest(), 12)
    disk = node.kill()
    again = simulation.start(make_node, disk)

Theory of operation. Everything that happens is on one agenda: timers, jobs of disk threads, bytes that arrive, turns of
a node's network. What is due next happens next, and time moves to it; at one moment things happen in the order in which
they were put there. So nothing but the seed decides what happens.

`make_node` is given a `World` and returns a node on it, as
`lambda world: Node(world, config, may_format=True, failed=…)` does.
"""

from collections.abc import Callable
from hashlib import blake2b
from random import Random

from ottla.base.lent import poison
from ottla.base.ports import Buffer
from ottla.runtime.world import World
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.network.fabric import Fabric, Host
from ottla.testing.sim.network.links import Weather
from ottla.testing.sim.simulated_node import SimulatedNode, Startable
from ottla.testing.sim.transcript import Transcript
from ottla.testing.step_timers import Agenda

_MOST_STEPS = 1_000_000


class Simulation:
    """`transcript` is what its clients have seen, `trace_hash` all that went over its network: for comparing runs.

    Bytes that are lent are poisoned when they are given back (`ottla.base.lent`).
    """

    def __init__(self, seed: int = 0, clock: FixedClock | None = None, weather: Weather | None = None) -> None:
        poison()
        self.seed = seed
        self.random = Random(seed)
        self.clock = clock or FixedClock()
        self.agenda = Agenda(self.clock)
        self.transcript = Transcript()
        self.steps = 0
        self.after_step: Callable[[], None] | None = None
        """Called when something has happened, to look at it."""
        self.watchers: dict[Callable[[], None], None] = {}
        """Called after that, to do something about it."""
        self._trace = blake2b(digest_size=16)
        self.fabric = Fabric(self.agenda, self.chance("network"), weather, self._trace.update)
        self._default_host: Host | None = None

    def chance(self, name: str) -> Random:
        """Chance for one purpose: what else is drawn, or not, does not change it."""
        return Random(f"{self.seed} {name}")

    def start(self, make_node: Callable[[World], Startable], disk: MemoryDisk | None = None) -> SimulatedNode:
        """Returns when the node is up. A disk of an earlier one makes it the next life of that node."""
        node = self.begin(make_node, disk)
        node.wait()
        return node

    def begin(
        self, make_node: Callable[[World], Startable], disk: MemoryDisk | None = None, host: Host | None = None
    ) -> SimulatedNode:
        """As `start`, and returns at once: the node comes up as time passes. Without a `host` it is at 127.0.0.1."""
        disk = MemoryDisk(Random(self.random.getrandbits(64))) if disk is None else disk
        if host is None:
            host = self._default_host = self._default_host or self.fabric.add_host("127.0.0.1")
        node = SimulatedNode(self, make_node, disk, Random(self.random.getrandbits(64)), host)
        node.begin()
        return node

    # What happens next

    def step(self) -> bool:
        """Does the next thing. False if nothing is left to do."""
        self.steps += 1
        is_done = self.agenda.fire_next()
        if self.after_step is not None:
            self.after_step()
        if self.watchers:
            for watch in list(self.watchers):
                watch()
        return is_done

    def run_until(self, is_so: Callable[[], bool], most_ms: int = 60_000) -> None:
        """Goes on until it is so. Raises `TimeoutError` when it is not after so much time."""
        end_us = self.clock.elapsed_us() + most_ms * 1000
        for _ in range(_MOST_STEPS):
            if is_so():
                return
            if self.clock.elapsed_us() > end_us or not self.step():
                break
        raise TimeoutError(f"it is still not so after {most_ms} ms, {len(self.agenda)} timers and jobs are pending")

    def run_for(self, by_ms: int) -> None:
        """Lets so much time pass."""
        has_passed: list[bool] = []
        self.agenda.call_at(self.clock.elapsed_us() + by_ms * 1000, lambda: has_passed.append(True))
        while not has_passed:
            self.step()

    # For comparing runs

    def trace_hash(self) -> str:
        return self._trace.copy().hexdigest()

    def note(self, what: str, data: Buffer) -> None:
        self.transcript.note(self.clock.elapsed_us(), what, data)

    def note_disk(self, disk: MemoryDisk) -> None:
        """Every file on it goes into the transcript."""
        self.transcript.note_files(self.clock.elapsed_us(), disk.files())
