"""One life of a node in a simulation: from its start to a clean stop, a kill, or a power cut."""

from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from ottla.runtime.procedure import Procedure
from ottla.runtime.world import World
from ottla.testing.host_names import FixedHostNames
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.sim.simulated_cleaner import SimulatedRunner
from ottla.testing.sim.simulated_client import SimulatedClient
from ottla.testing.sim.simulated_workers import SimulatedWorkers
from ottla.testing.step_timers import StepTimers

if TYPE_CHECKING:
    from ottla.testing.sim.simulation import Simulation


class Startable(Protocol):
    """A node, as `ottla.node.node.Node` is one."""

    def start(self) -> Coroutine[Any, None, None]: ...
    def stop(self) -> Coroutine[Any, None, None]: ...
    def abandon(self) -> None: ...


class SimulatedNode:
    """`node` is the real thing; `disk` is what survives it. Made by `Simulation.start`."""

    def __init__(
        self, simulation: "Simulation", make_node: Callable[[World], Startable], disk: MemoryDisk, random: Random
    ) -> None:
        self.disk = disk
        self.network = MemoryNetwork()
        self.timers = StepTimers(simulation.clock, simulation.agenda)
        self.workers = SimulatedWorkers(StepTimers(simulation.clock, simulation.agenda), random)
        self._cleaners = StepTimers(simulation.clock, simulation.agenda)
        self._simulation = simulation
        self._clients: list[SimulatedClient] = []
        self._outcomes: list[Exception | None] = []
        self._procedure: Procedure[None] | None = None
        self.world = World(
            disk=disk,
            clock=simulation.clock,
            timers=self.timers,
            workers=self.workers,
            network=self.network,
            entropy=random,
            host_names=FixedHostNames(),
            make_cleaner=lambda: SimulatedRunner(disk, self._cleaners),
        )
        self.node = make_node(self.world)

    @property
    def pending(self) -> int:
        """How many timers and jobs it has."""
        return len(self.timers) + len(self.workers) + len(self._cleaners)

    def begin(self) -> None:
        """It starts as time goes on."""
        self._run(self.node.start())

    def wait(self) -> None:
        """Returns when it has started or stopped. Raises what keeps it from that."""
        self._simulation.run_until(lambda: bool(self._outcomes))
        outcome = self._outcomes.pop()
        if outcome is not None:
            raise outcome

    def connect(self, host: str = "127.0.0.1", port: int = 9092, name: str = "") -> SimulatedClient:
        client = SimulatedClient(
            self._simulation, self.network.connect(host, port), name or f"client {len(self._clients)}"
        )
        self._clients.append(client)
        self._simulation.serve(client)
        return client

    def stop(self) -> MemoryDisk:
        """A clean stop; returns the disk for the next start."""
        self._run(self.node.stop())
        self.wait()
        return self.kill()

    def kill(self) -> MemoryDisk:
        """Ends it at once, and with it its timers, its jobs and its connections. What it wrote is on the disk."""
        self._end()
        return self.disk.survivor_of_kill()

    def cut_power(self) -> MemoryDisk:
        """As `kill`, and of what was not synced the disk keeps what chance decides."""
        self._end()
        return self.disk.survivor(self._simulation.random)

    def _end(self) -> None:
        self._simulation.remove(self)
        if self._procedure is not None:
            self._procedure.cancel()
        self.timers.close()
        self.workers.close()
        self._cleaners.close()
        self.node.abandon()

    def _run(self, procedure: Coroutine[Any, None, None]) -> None:
        self._procedure = Procedure(procedure, self.timers, self._outcomes.append, self._outcomes.append)
