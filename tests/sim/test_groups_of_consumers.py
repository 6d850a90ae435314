"""Whole consumers, without their threads, in groups in the simulation: which records they read, and how often.

With automatic commits a record is read at least once. It is read once if no consumer dies: partitions are given up only
after their offsets were committed, and a consumer that closes commits.
"""

from collections import Counter
from random import Random

import pytest

from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import make_member
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.simulated_node import SimulatedNode
from ottla.testing.sim.simulation import Simulation
from tests.sim.simulated_cluster import PORT, create_topics, node_maker, produce

PARTITIONS = 4
TURNS = 14
PATIENCE_MS = 120_000
STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky", "consumer")


class Reader:
    """An application that polls and notes what it is given."""

    def __init__(self, simulation: Simulation, strategy: str) -> None:
        self.read: list[str] = []
        self.polls = True
        self.client = ClientInSimulation(simulation)
        self._chance = Random(simulation.random.getrandbits(64))
        settings: dict[str, object] = {
            "bootstrap.servers": f"127.0.0.1:{PORT}",
            "group.id": "group",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 1_000,
        }
        if strategy == "consumer":
            settings["group.protocol"] = "consumer"
        else:
            settings["partition.assignment.strategy"] = strategy
        self.core = ConsumerCore(self.client.world, read_settings(Scope.CONSUMER, settings, {}), make_member)
        self.core.subscribe(["orders"], None)
        self._poll()

    def _poll(self) -> None:
        if not self.polls:
            return
        self.run_tasks()
        self.read += (record.value.decode() for record in self.core.poll(self._chance.choice((1, 5, 500))))
        self.client.timers.after(self._chance.choice((0.01, 0.1, 0.8)), self._poll)

    def run_tasks(self) -> None:
        while self.core.tasks:
            task = self.core.tasks.popleft()
            task.run()
            task.done(None)


class Scene:
    def __init__(self, seed: int, strategy: str) -> None:
        self.simulation = Simulation(seed)
        self.chance = self.simulation.random
        self.strategy = strategy
        self.make_node = node_maker()
        self.node: SimulatedNode | None = self.simulation.start(self.make_node)
        admin = self.node.connect(name="admin")
        create_topics(admin, "orders", partitions=PARTITIONS)
        admin.close()
        self.readers: list[Reader] = []
        self.read: Counter[str] = Counter()
        """What those who are gone have read."""
        self.written: list[str] = []

    def join(self) -> None:
        self.readers.append(Reader(self.simulation, self.strategy))

    def leave(self) -> None:
        if not self.readers:
            return
        reader = self.readers.pop(self.chance.randrange(len(self.readers)))
        reader.polls = False
        closing = spawn(reader.core.close())

        def is_closed() -> bool:
            reader.run_tasks()
            return closing.is_done

        self.simulation.run_until(is_closed, PATIENCE_MS)
        closing.value()
        reader.core.stop()
        self._end(reader)

    def kill(self) -> None:
        if self.readers:
            self._end(self.readers.pop(self.chance.randrange(len(self.readers))))

    def _end(self, reader: Reader) -> None:
        reader.client.kill()
        self.read.update(reader.read)
        assert reader.client.problems == []

    def write(self) -> None:
        assert self.node is not None
        client = self.node.connect(name="writer")
        for partition in range(PARTITIONS):
            values = [f"{partition}-{len(self.written) + number}" for number in range(self.chance.randrange(6))]
            if values:
                produce(client, "orders", partition, [value.encode() for value in values])
            self.written += values
        client.close()

    def restart_node(self) -> None:
        assert self.node is not None
        node, self.node = self.node, None
        self.node = self.simulation.start(self.make_node, node.kill())

    def all_read(self) -> Counter[str]:
        read = self.read.copy()
        for reader in self.readers:
            read.update(reader.read)
        return read

    def play(self, *events: str) -> Counter[str]:
        """Returns how often each record was read, once all were."""
        for _ in range(TURNS):
            getattr(self, self.chance.choice((*events, "write")))()
            self.simulation.run_for(self.chance.choice((0, 30, 700, 6_000)))
        self.join()
        self.simulation.run_until(lambda: self.all_read().keys() >= set(self.written), PATIENCE_MS)
        self.simulation.run_for(15_000)
        while self.readers:
            self.leave()
        assert self.read.keys() == set(self.written)
        return self.read


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_record_is_read_once_if_no_consumer_dies(strategy: str, seed: int) -> None:
    times = Scene(seed, strategy).play("join", "join", "leave")
    assert [value for value, count in times.items() if count > 1] == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "consumer"])
def test_every_record_is_read_though_consumers_and_their_node_die(strategy: str, seed: int) -> None:
    Scene(seed, strategy).play("join", "leave", "kill", "restart_node")
