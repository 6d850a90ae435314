"""Nodes in one thread, from a seed: no socket, no thread, no clock and no chance but those made up here.

    simulation = Simulation(seed=7)
    node = simulation.start(make_node)
    client = node.connect()
    reply = client.ask(MetadataRequest(), 12)
    disk = node.kill()
    again = simulation.start(make_node, disk)

Theory of operation. What happens next is always decided: first the timers and jobs that are due, in the order of their
moments; then everything that is ready on a connection, node by node and in the order in which it began to be watched,
which takes a moment of time; and when nothing is ready, time moves to the next timer or job.

`make_node` is given a `World` and returns a node on it, as
`lambda world: Node(world, config, may_format=True, failed=…)` does.
"""

from collections.abc import Callable
from random import Random
from typing import Protocol

from ottla.base.ports import Buffer
from ottla.runtime.world import World
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.simulated_node import SimulatedNode, Startable
from ottla.testing.sim.transcript import Transcript
from ottla.testing.step_timers import Agenda

_MOST_STEPS = 1_000_000
_TURN_US = 50


class Exchanging(Protocol):
    """A client's end of a connection."""

    def exchange(self) -> bool:
        """Sends and receives what it can; returns whether there was something."""
        ...


class Simulation:
    """`transcript` is what has happened, for comparing one run with another."""

    def __init__(self, seed: int = 0, clock: FixedClock | None = None) -> None:
        self.random = Random(seed)
        self.clock = clock or FixedClock()
        self.agenda = Agenda(self.clock)
        self.transcript = Transcript()
        self._nodes: list[SimulatedNode] = []
        self._clients: list[Exchanging] = []

    def start(self, make_node: Callable[[World], Startable], disk: MemoryDisk | None = None) -> SimulatedNode:
        """Returns when the node is up. A disk of an earlier one makes it the next life of that node."""
        node = self.begin(make_node, disk)
        node.wait()
        return node

    def begin(self, make_node: Callable[[World], Startable], disk: MemoryDisk | None = None) -> SimulatedNode:
        """As `start`, and returns at once: the node comes up as time goes on."""
        disk = MemoryDisk(Random(self.random.getrandbits(64))) if disk is None else disk
        node = SimulatedNode(self, make_node, disk, Random(self.random.getrandbits(64)))
        self._nodes.append(node)
        node.begin()
        return node

    # What happens next

    def step(self) -> bool:
        """Does the next thing. False if nothing is left to do but to wait for a client."""
        for node in self._nodes:
            node.disk.now_ms = self.clock.now_ms()
        if self.agenda.next_us() <= self.clock.elapsed_us():
            return self.agenda.fire_next()
        if self._take_turns():
            self.clock.advance_to(self.clock.elapsed_us() + _TURN_US)
            return True
        return self.agenda.fire_next()

    def _take_turns(self) -> bool:
        is_busy = False
        for node in list(self._nodes):
            is_busy |= node.network.turn()
        for client in list(self._clients):
            is_busy |= client.exchange()
        return is_busy

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
        self.run_until(lambda: bool(has_passed), by_ms + 1)

    # For nodes and clients

    def serve(self, client: Exchanging) -> None:
        self._clients.append(client)

    def forget(self, client: Exchanging) -> None:
        self._clients.remove(client)

    def remove(self, node: SimulatedNode) -> None:
        self._nodes.remove(node)

    def note(self, what: str, data: Buffer) -> None:
        self.transcript.note(self.clock.elapsed_us(), what, data)

    def note_disk(self, disk: MemoryDisk) -> None:
        """Every file on it goes into the transcript."""
        self.transcript.note_files(self.clock.elapsed_us(), disk.files())
