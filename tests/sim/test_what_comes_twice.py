"""Frames that come twice: a client, and a node, goes on over another connection, and nothing is lost or doubled."""

from collections import Counter
from random import Random

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.admin.topics import NewTopic
from ottla.client.promise import spawn
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.encryption import Encryption
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.network.connection_end import ConnectionEnd
from ottla.testing.sim.network.host_network import HostListener, HostNetwork
from ottla.testing.sim.network.passing_frames import Repeating
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.workloads.actor import FAST
from ottla.testing.sim.workloads.final_reader import read_everything
from ottla.testing.sim.workloads.history import Fate, History
from ottla.testing.sim.workloads.producing import SimulatedProducer

NODES, CLIENTS = "10.0.0", "10.1.0"
ORDERS = TopicPartition("orders", 0)
RECORDS = 100
PLAIN, TLS = Encryption(), Encryption(True, True, True, 1.0)
SHARE = 0.05


class Scene:
    def __init__(self, encryption: Encryption) -> None:
        self.cluster = SimulatedCluster(1, ClusterSettings(3, encryption=encryption))
        self.cluster.start()
        self.cluster.create_topics(NewTopic("orders", 1, 3))
        self.history = History()
        self.errors: list[Exception] = []
        self.opened = self._count_dials()

    def _count_dials(self) -> list[str]:
        opened: list[str] = []
        fabric = self.cluster.simulation.fabric
        join = fabric._join

        def joined(network: HostNetwork, listener: HostListener, address: str) -> ConnectionEnd:
            opened.append(network.host.address)
            return join(network, listener, address)

        fabric._join = joined  # type: ignore[method-assign]
        return opened

    def repeat(self, client: ClientInSimulation, repeating: Repeating | None) -> None:
        fabric = self.cluster.simulation.fabric
        hosts = [machine.host for machine in self.cluster.machines.values()]
        for link in fabric.links_between([*hosts, client.host], [*hosts, client.host]):
            link.repeating = repeating

    def write(self, repeating: Repeating) -> None:
        simulation = self.cluster.simulation
        client = self.cluster.client("writer")
        settings = {**client.settings, **FAST, "delivery.timeout.ms": 120_000}
        writer = SimulatedProducer(client, self.history, settings)
        writer.on_error = self.errors.append
        self.repeat(client, repeating)
        for number in range(RECORDS):
            spawn(writer.send(self.history.send("writer", number, ORDERS)))
            simulation.run_for(200)
        records = self.history.sent.values()
        simulation.run_until(lambda: all(record.fate is not Fate.OPEN for record in records), 120_000)
        self.repeat(client, None)
        assert client.problems == []


@pytest.mark.parametrize(("replies", "requests"), [(SHARE, 0.0), (0.0, SHARE)], ids=["replies", "requests"])
@pytest.mark.parametrize("encryption", [PLAIN, TLS], ids=["plain", "tls"])
def test_records_are_there_once_and_in_order(encryption: Encryption, replies: float, requests: float) -> None:
    scene = Scene(encryption)
    scene.write(Repeating(Random(1), replies, requests))
    assert scene.errors == []
    found = read_everything(scene.cluster, [ORDERS], "read_committed")[ORDERS]
    assert [value for _, value in found] == list(scene.history.sent)
    hung_up = Counter(address.rpartition(".")[0] for address in scene.opened)
    assert hung_up[NODES] > 10, "nodes go on over other connections"
    assert hung_up[CLIENTS] > 5, "and the client"
