"""One life of a node in a simulation: from its start to a clean stop, a kill, or a power cut."""

from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from ottla.runtime.procedure import Procedure
from ottla.runtime.world import World
from ottla.security.tls.handshake import Handshake
from ottla.testing.host_names import FixedHostNames
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.hosts.host_clock import HostClock
from ottla.testing.sim.hosts.process import Process, ProcessTimers
from ottla.testing.sim.network.fabric import Host
from ottla.testing.sim.network.host_network import HostNetwork
from ottla.testing.sim.simulated_cleaner import SimulatedRunner
from ottla.testing.sim.simulated_client import SimulatedClient
from ottla.testing.sim.simulated_workers import SimulatedWorkers

if TYPE_CHECKING:
    import ssl

    from ottla.testing.sim.simulation import Simulation


class Startable(Protocol):
    """A node, as `ottla.node.node.Node` is one."""

    def start(self) -> Coroutine[Any, None, None]: ...
    def stop(self) -> Coroutine[Any, None, None]: ...
    def abandon(self) -> None: ...


class SimulatedNode:
    """`node` is the real thing; `disk` is what survives it. Made by `Simulation.start`."""

    def __init__(
        self,
        simulation: "Simulation",
        make_node: Callable[[World], Startable],
        disk: MemoryDisk,
        random: Random,
        host: Host,
        clock: HostClock | None = None,
        on_outcome: Callable[[Exception | None], None] | None = None,
    ) -> None:
        self.disk = disk
        self.host = host
        self.is_stopping = False
        self.clock = clock or HostClock(simulation.clock)
        self.process = Process(simulation.agenda)
        self.network = HostNetwork(simulation.fabric, host, self.process)
        self.timers = ProcessTimers(self.process, self.clock)
        self.workers = SimulatedWorkers(ProcessTimers(self.process, self.clock), random)
        self._cleaning = ProcessTimers(self.process, self.clock)
        self._cleaners: list[SimulatedRunner] = []
        self._simulation = simulation
        self._random = random
        self._clients = 0
        self._outcomes: list[Exception | None] = []
        self._on_outcome = on_outcome
        self._procedure: Procedure[None] | None = None
        disk.clock = self.clock
        disk.on_call = self.workers.on_call
        self.world = World(
            disk=disk,
            clock=self.clock,
            timers=self.timers,
            workers=self.workers,
            network=self.network,
            entropy=random,
            host_names=FixedHostNames(),
            make_cleaner=self._make_cleaner,
        )
        self.node = make_node(self.world)

    @property
    def pending(self) -> int:
        """How many timers and jobs it has."""
        return len(self.timers) + len(self.workers) + len(self._cleaning)

    @property
    def is_over(self) -> bool:
        return self.process.is_over

    def begin(self) -> None:
        """It starts as time passes."""
        self._run(self.node.start())

    def begin_stop(self) -> None:
        """It stops as time passes, in good order. One that is paused does so when it continues."""
        self._outcomes.clear()
        self.is_stopping = True
        self.process.run(lambda: self._run(self.node.stop()))

    def wait(self) -> None:
        """Returns when it has started or stopped. Raises what keeps it from that."""
        self._simulation.run_until(lambda: bool(self._outcomes))
        outcome = self._outcomes.pop()
        if outcome is not None:
            raise outcome

    def connect(
        self, host: str = "", port: int = 9092, name: str = "", tls: "ssl.SSLContext | None" = None
    ) -> SimulatedClient:
        """A client on a machine of its own, with `tls` if it is given. Raises `ConnectionRefusedError` where the node
        does not listen. A client whose handshake fails is closed.
        """
        name = name or f"client {self._clients}"
        self._clients += 1
        fabric = self._simulation.fabric
        network = HostNetwork(fabric, fabric.add_host("127.0.0.1", is_named=False), Process(self._simulation.agenda))
        client, address = SimulatedClient(self._simulation, name), host or self.host.address
        end = fabric.connect(network, address, port)
        if tls is None:
            client.on_connected(end)
        else:
            handshake = Handshake(
                end,
                tls,
                later=network.at_end_of_turn,
                then=client.on_connected,
                failed=lambda _: client.close(),
                host=address,
            )
            handshake.start()
        return client

    def stop(self) -> MemoryDisk:
        """A clean stop; returns the disk for the next start."""
        self.begin_stop()
        self.wait()
        return self.kill()

    def kill(self) -> MemoryDisk:
        """Ends it at once, and with it its timers, its jobs and its connections. What it wrote is on the disk."""
        self.network.end(resets=self._random.random() < 0.5)
        self._end()
        return self.disk.survivor_of_kill()

    def cut_power(self) -> MemoryDisk:
        """As `kill`, and of what was not synced the disk keeps what chance decides. No client is told."""
        self.network.vanish()
        self._end()
        return self.disk.survivor(self._random)

    def pause(self) -> None:
        """The process is stopped, and nothing happens in it until it continues."""
        self.process.stop()

    def resume(self) -> None:
        self.process.resume()

    def abandon_jobs(self) -> None:
        """Jobs that have paused never go on, and let go of what they hold."""
        self.workers.close()
        for cleaner in self._cleaners:
            cleaner.stop()
        self._cleaning.close()

    def _end(self) -> None:
        self.process.end()
        if self._procedure is not None:
            self._procedure.cancel()
        self.timers.close()
        self.abandon_jobs()
        self.node.abandon()

    def _make_cleaner(self) -> SimulatedRunner:
        """A process of its own, which ends with the node's."""
        cleaner = SimulatedRunner(self.disk, self._cleaning, self._random)
        self._cleaners.append(cleaner)
        return cleaner

    def _run(self, procedure: Coroutine[Any, None, None]) -> None:
        timers = ProcessTimers(self.process, self.clock)  # Its own: to stop is to close the node's, and to continue.
        self._procedure = Procedure(procedure, timers, self._conclude, self._conclude)

    def _conclude(self, outcome: Exception | None) -> None:
        self._outcomes.append(outcome)
        if self._on_outcome is not None:
            self._on_outcome(outcome)
