"""A broker that starts with older metadata than the cluster's acts on none of it."""

import pytest

from ottla.broker.broker import Broker
from ottla.client.admin.topics import NewTopic
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.cluster.cluster_health import is_whole
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

BROKER = 4  # and no controller
METADATA = "/data/__cluster_metadata-0"


def logs_of(machine: Machine) -> list[str]:
    """Those of the topic, and what was set aside of them."""
    return sorted(name for name in machine.disk.list_dir("/data") if name.startswith("orders"))


def forget_metadata(disk: MemoryDisk) -> None:
    """As after a power cut: a replica without a vote does not sync its metadata."""
    for path in list(disk.files()):
        if path.startswith(METADATA):
            disk.remove(path)


def test_a_broker_that_has_lost_its_metadata_keeps_its_logs() -> None:
    cluster = SimulatedCluster(6, ClusterSettings(nodes=4))
    cluster.start()
    cluster.create_topics(NewTopic("orders", 8, 3))
    simulation, machine = cluster.simulation, cluster.machines[BROKER]
    simulation.run_until(lambda: bool(logs_of(machine)), 30_000)
    simulation.run_until(lambda: is_whole(cluster), 30_000)
    simulation.run_for(1_000)  # All of its logs are made.
    logs = logs_of(machine)
    machine.kill()
    forget_metadata(machine.disk)
    others = [one.host for one in cluster.machines.values() if one is not machine]
    links = simulation.fabric.links_between([machine.host], others)
    for link in links:
        link.cut()
    machine.start()
    simulation.run_for(20_000)  # it knows of no topic
    for link in links:
        link.mend()
    simulation.run_until(lambda: is_whole(cluster), 120_000)
    assert logs_of(machine) == logs


def test_a_broker_takes_up_its_partitions_when_it_has_read_its_registration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the metadata of its last life it may lead, in an epoch of which it has lost records since."""
    taken_up: list[tuple[int, int]] = []
    start = Broker.start

    def seen(self: Broker) -> None:
        known = self.image.brokers.by_id.get(self.identity.node_id)
        taken_up.append((self.identity.broker_epoch, -1 if known is None else known.epoch))
        start(self)

    cluster = SimulatedCluster(6, ClusterSettings(nodes=3))
    cluster.start()
    monkeypatch.setattr(Broker, "start", seen)
    machine = cluster.machines[1]
    machine.kill()
    machine.start()
    cluster.simulation.run_until(lambda: is_whole(cluster), 60_000)
    ((own_epoch, known_epoch),) = taken_up
    assert own_epoch == known_epoch > 0
