"""Nodes with several log directories, of which one fails (KIP-858): others lead, and none that has lost records."""

from collections.abc import Callable

import pytest

from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.testing.sim import (
    ClusterSettings,
    Fate,
    History,
    NewTopic,
    SimulatedCluster,
    SimulatedProducer,
    TopicPartition,
    spawn,
)
from ottla.testing.sim.cluster.cluster_health import is_whole
from ottla.testing.sim.cluster.machine import Machine

DIRECTORIES = "/data,/data-2,/data-3"
TOPIC = "orders"
PARTITIONS = 6
SOON_MS = 15_000
A_WHILE_MS = 10_000


class Scene:
    """Three brokers with three directories each, and three controllers. Some records are acknowledged."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(5, ClusterSettings(6, isolated=True, more={"log.dirs": DIRECTORIES}))
        self.cluster.start()
        self.cluster.create_topics(NewTopic(TOPIC, PARTITIONS))
        self.until(lambda: is_whole(self.cluster))
        self.history = History()
        settings = {"bootstrap.servers": self.cluster.bootstrap}
        self.producer = SimulatedProducer(self.cluster.client("shop"), self.history, settings)
        for _ in range(3):
            self.send_to_all()

    def until(self, is_so: Callable[[], bool]) -> None:
        self.cluster.simulation.run_until(is_so, SOON_MS)

    def send_to_all(self) -> None:
        """A record to each partition; all are acknowledged."""
        first = len(self.history.sent)
        records = [
            self.history.send("shop", first + index, TopicPartition(TOPIC, index)) for index in range(PARTITIONS)
        ]
        for record in records:
            spawn(self.producer.send(record))
        self.until(lambda: all(record.fate is Fate.ACKNOWLEDGED for record in records))

    @property
    def brokers(self) -> list[Machine]:
        return [self.cluster.machines[node_id] for node_id in self.cluster.settings.brokers()]

    def image(self, index: int) -> PartitionImage:
        metadata = self.cluster.machines[1].metadata
        assert metadata is not None
        return metadata.image.topics.by_name[TOPIC].partitions[index]

    def in_directory(self, machine: Machine, path: str) -> set[int]:
        """The partitions that are there."""
        assert machine.node is not None
        assert machine.node.broker is not None
        held = machine.node.broker.partitions
        return {name[1] for name, partition in held.items() if name[0] == TOPIC and partition.directory == path}

    def stop(self, machine: Machine) -> None:
        """In good order."""
        machine.stop()
        self.until(lambda: machine.life is None)
        assert machine.ends[-1] == "stopped"


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_broker_goes_on_without_a_directory_and_others_lead_what_was_in_it(scene: Scene) -> None:
    machine = scene.brokers[0]
    lost = scene.in_directory(machine, "/data-2")
    left = set(range(PARTITIONS)) - lost
    assert lost
    assert left
    machine.fail_directory("/data-2")
    scene.until(lambda: all(machine.node_id not in scene.image(index).isr for index in lost))
    assert all(scene.image(index).leader in scene.image(index).isr for index in lost)
    scene.send_to_all()
    assert all(len(scene.image(index).isr) == 3 for index in left)
    assert machine.is_serving


@pytest.mark.parametrize("is_removed", [False, True], ids=["a new disk", "one disk less"])
def test_after_a_restart_without_it_everything_is_in_sync_again(scene: Scene, is_removed: bool) -> None:
    machine = scene.brokers[0]
    machine.fail_directory("/data-2")
    scene.send_to_all()
    scene.stop(machine)
    machine.start()  # With the directory as it is.
    scene.until(lambda: machine.is_serving)
    scene.stop(machine)
    (machine.remove_directory if is_removed else machine.replace_directory)("/data-2")
    machine.start()
    scene.until(lambda: is_whole(scene.cluster))
    assert bool(scene.in_directory(machine, "/data-2")) is not is_removed


@pytest.mark.parametrize("is_removed", [False, True], ids=["a new disk", "one disk less"])
def test_a_broker_without_its_records_does_not_lead_however_orderly_it_stopped(scene: Scene, is_removed: bool) -> None:
    early, late, lossy = scene.brokers
    path = "/data-2"
    (index, *_) = scene.in_directory(lossy, path)
    scene.stop(early)
    scene.send_to_all()
    lossy.fail_directory(path)
    scene.until(lambda: scene.image(index).isr == (late.node_id,))
    assert lossy.node_id in scene.image(index).eligible_leader_replicas, "its records may come back with the disk"
    scene.stop(lossy)
    scene.stop(late)
    before = scene.image(index).directory(lossy.node_id)
    (lossy.remove_directory if is_removed else lossy.replace_directory)(path)
    lossy.start()
    scene.until(lambda: scene.image(index).directory(lossy.node_id) != before)
    early.start()
    scene.until(lambda: early.is_serving)
    scene.cluster.simulation.run_for(A_WHILE_MS)
    assert scene.image(index).leader == -1, "only one that is down has every record"
    late.start()
    scene.until(lambda: scene.image(index).leader == late.node_id)
    scene.until(lambda: is_whole(scene.cluster))
