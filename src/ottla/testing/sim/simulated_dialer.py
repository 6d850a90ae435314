"""The world of a real client in a simulation: its cores run against simulated nodes, on simulated time.

client = ClientInSimulation(simulation)
cluster = Cluster(client.world, settings)
simulation.run_for(1000)
client.kill()                 # its connections break and its timers are gone, as if its process had died
"""

from random import Random

from ottla.client.io.tls import TlsToBrokers
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld
from ottla.testing.sim.hosts.host_clock import HostClock
from ottla.testing.sim.hosts.process import Process, ProcessTimers
from ottla.testing.sim.network.host_network import HostNetwork
from ottla.testing.sim.simulation import Simulation


class ClientInSimulation:
    """A program of its own on a machine of its own. `problems` is what was reported as a bug.

    With `tls`, which are the settings for it, it connects so. `settings` are for its clients: where they reach the
    cluster, and how.
    """

    def __init__(
        self,
        simulation: Simulation,
        address: str = "127.0.0.1",
        chance: Random | None = None,
        tls: ClientSettings | None = None,
    ) -> None:
        self.problems: list[Exception] = []
        self.settings: dict[str, object] = {}
        self.host = simulation.fabric.add_host(address, is_named=False)
        self.process = Process(simulation.agenda)
        self.clock = HostClock(simulation.clock)
        self.timers = ProcessTimers(self.process, self.clock)
        self.network = HostNetwork(simulation.fabric, self.host, self.process)
        chance = chance or Random(simulation.random.getrandbits(64))
        dialer = self.network if tls is None else TlsToBrokers(self.network, self.timers, tls)
        self.world = ClientWorld(self.clock, self.timers, chance, dialer, self.problems.append)

    def drop_connections(self) -> None:
        """All of them break. The client may connect again."""
        for end in self.network.connections():
            end.reset()

    def kill(self) -> None:
        self.process.end()
        self.timers.close()
        self.network.end(resets=True)
