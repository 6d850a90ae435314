"""A node that ends at any moment: in the middle of a request, of a job of its disk threads, of its start.

What was acknowledged is there afterwards, in its order and once; what was not may be.
"""

from collections.abc import Callable

import pytest

from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.simulated_node import SimulatedNode
from ottla.testing.sim.simulation import Simulation
from tests.sim.simulated_cluster import create_topics, fetch, node_maker, produce_request

LIVES = 4
REQUESTS = 12

ENDS: dict[str, Callable[[SimulatedNode], MemoryDisk]] = {
    "killed": SimulatedNode.kill,
    "without power": SimulatedNode.cut_power,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("seed", range(8))
def test_what_was_acknowledged_outlives_the_node(seed: int, end: str) -> None:
    simulation = Simulation(seed)
    make_node = node_maker()
    node = simulation.start(make_node)
    flushes = {"flush_messages": "1"} if end == "without power" else {}
    create_topics(node.connect(), "orders", partitions=1, **flushes)
    acknowledged: list[bytes] = []
    sent: list[bytes] = []
    for life in range(LIVES):
        values = [b"%d %d" % (life, number) for number in range(REQUESTS)]
        sent += values
        acknowledged += written_until_the_end(simulation, node, values)
        node = simulation.start(make_node, ENDS[end](node))
        client = node.connect()
        found = fetch(client, "orders")
        client.close()
        assert [value for value in found if value in acknowledged] == acknowledged
        assert [value for value in sent if value in found] == found, "in the order in which they were sent, and once"


def test_without_flushing_a_power_cut_does_lose_something() -> None:
    """Or else the test above would show nothing."""
    simulation = Simulation(seed=1)
    node = simulation.start(node_maker())
    create_topics(node.connect(), "orders")
    simulation.run_for(1000)
    acknowledged: list[bytes] = []
    for number in range(20):
        acknowledged += written_until_the_end(simulation, node, [b"%d %d" % (number, one) for one in range(REQUESTS)])
    again = simulation.start(node_maker(), node.cut_power())
    assert not set(acknowledged) <= set(fetch(again.connect(), "orders"))


def written_until_the_end(simulation: Simulation, node: SimulatedNode, values: list[bytes]) -> list[bytes]:
    """Sends some of them, with a few steps or none after each; returns those that were acknowledged by then."""
    client, chance = node.connect(), simulation.random
    for value in values[: chance.randrange(1, len(values))]:
        client.send(produce_request("orders", 0, [value]), 9)
        for _ in range(chance.randrange(6)):
            simulation.step()
    replies = [reply.responses[0].partition_responses[0] for reply in client.responses]
    client.close()
    return [value for value, reply in zip(values, replies, strict=False) if reply.error_code == 0]


@pytest.mark.parametrize("seed", range(4))
def test_a_start_that_is_cut_short_is_no_harm_to_the_next(seed: int) -> None:
    simulation = Simulation(seed)
    make_node = node_maker()
    node = simulation.start(make_node)
    client = node.connect()
    create_topics(client, "orders", "clicks", flush_messages="1")
    client.ask(produce_request("orders", 0, [b"first"]), 9)
    disk = node.cut_power()
    for steps in range(1, 40, 3):
        begun = simulation.begin(make_node, disk)
        for _ in range(steps):
            simulation.step()
        disk = begun.cut_power()
    assert fetch(simulation.start(make_node, disk).connect(), "orders") == [b"first"]
