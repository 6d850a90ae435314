"""A cluster of real nodes in one thread, from a seed.

    cluster = SimulatedCluster(seed=7, settings=ClusterSettings(nodes=3))
    cluster.start()
    client = cluster.client("writer")            # a machine of its own; `client.world` is for our clients' cores
    cluster.machines[1].kill()
    cluster.simulation.run_for(5_000)
    cluster.machines[1].start()

Clients reach it by `client.settings`, or without TLS by `cluster.bootstrap`.
"""

from ottla.base.ids import random_uuid, uuid_text
from ottla.client.admin.asking import Asking
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster.cluster import Cluster
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.cluster_settings import BROKER_PORT, TLS_PORT, ClusterSettings, address_of
from ottla.testing.sim.cluster.encryption import SSL_SETTINGS
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.network.links import Weather
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.simulation import Simulation

_START_MS = 60_000
_CREATE_MS = 120_000


class SimulatedCluster:
    """`machines` are by node id. They are formatted, and nothing runs on them until `start`."""

    def __init__(self, seed: int = 0, settings: ClusterSettings | None = None, weather: Weather | None = None) -> None:
        self.settings = settings or ClusterSettings()
        self.simulation = Simulation(seed, weather=weather)
        self.machines = {
            node_id: Machine(self, node_id, address_of(node_id)) for node_id in range(1, self.settings.nodes + 1)
        }
        self.clients: list[ClientInSimulation] = []
        self.bootstrap = self._addresses(BROKER_PORT)
        cluster_id = uuid_text(random_uuid(self.simulation.chance("cluster id").randbytes))
        directories = self.simulation.chance("directories")
        voters = self.settings.initial_voters(lambda: random_uuid(directories.randbytes))
        for machine in self.machines.values():
            machine.format(cluster_id, voters)

    def start(self) -> None:
        """Returns when every node serves."""
        for machine in self.machines.values():
            machine.start()
        self.simulation.run_until(lambda: all(one.is_serving for one in self.machines.values()), _START_MS)

    def client(self, name: str) -> ClientInSimulation:
        """A machine for a client. Its chance follows from its name, and so does whether it uses TLS."""
        has_tls = self.simulation.chance(f"encryption of {name}").random() < self.settings.encryption.of_clients
        settings: dict[str, object] = {"bootstrap.servers": self.bootstrap}
        if has_tls:
            settings = {"bootstrap.servers": self._addresses(TLS_PORT), "security.protocol": "SSL", **SSL_SETTINGS}
        client = ClientInSimulation(
            self.simulation,
            f"10.1.0.{len(self.clients) + 1}",
            self.simulation.chance(f"client {name}"),
            read_settings(Scope.ADMIN, settings, {}) if has_tls else None,
        )
        client.settings = settings
        self.clients.append(client)
        return client

    def _addresses(self, port: int) -> str:
        return ",".join(f"{address_of(node_id)}:{port}" for node_id in self.settings.brokers())

    def create_topics(self, *topics: NewTopic) -> None:
        """Returns when they are created."""
        client = self.client("admin")
        settings = read_settings(Scope.ADMIN, client.settings, {})
        cluster = Cluster(client.world, settings)
        created = spawn(create_topics(Asking(cluster), topics, timeout=_CREATE_MS / 1000))
        self.simulation.run_until(lambda: created.is_done, _CREATE_MS + 1_000)
        created.value().raise_first()
        cluster.close()
        client.kill()
