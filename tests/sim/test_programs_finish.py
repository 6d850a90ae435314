"""What programs have left to do, however much it is, they do within the time that a run gives them to finish."""

from ottla.testing.sim import ClusterSettings, Fate, History, SimulatedCluster, SimulatedProducer, spawn
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.network.links import Weather
from ottla.testing.sim.simulated_run import SETTLED_WITHIN_MS
from ottla.testing.sim.workloads.programs import make_programs, topics_for
from ottla.testing.sim.workloads.topics import CLICKS, partitions_of

NAME = "transformer-1"
GROUP = "transformers"
CLASSIC_SEED = 1
"""With it, the group is of the classic protocol."""
SLOW_GROUPS = ClusterSettings(nodes=3, more={"group.initial.rebalance.delay.ms": "3000"})
LEFT = 1_500
SLOWEST_US = 400_000


def test_a_transformer_is_done_in_time_though_links_are_slow_and_much_is_left() -> None:
    cluster = SimulatedCluster(2, ClusterSettings(nodes=3), Weather(spread_us=SLOWEST_US))
    cluster.start()
    cluster.create_topics(*topics_for([NAME]))
    history = History()
    writer = SimulatedProducer(cluster.client("writer"), history, {"bootstrap.servers": cluster.bootstrap})
    records = [history.send("writer", number, place) for number in range(LEFT) for place in partitions_of(CLICKS)[:1]]
    for record in records:
        spawn(writer.send(record))
    cluster.simulation.run_until(lambda: all(one.fate is Fate.ACKNOWLEDGED for one in records), SETTLED_WITHIN_MS)
    (transformer,) = make_programs(cluster, history, [NAME])
    transformer.begin()
    transformer.finish()
    cluster.simulation.run_until(lambda: transformer.is_settled, SETTLED_WITHIN_MS)
    assert history.violations == []


def coordinator_of(cluster: SimulatedCluster) -> Machine | None:
    """The node that has heard of the group."""
    for machine in cluster.machines.values():
        broker = machine.node.broker if machine.node is not None else None
        for led in broker.coordinators.groups.partitions.values() if broker is not None else ():
            if GROUP in led.machine.groups:
                return machine
    return None


def test_a_transformer_is_done_in_time_though_its_coordinator_loses_power_while_it_joins() -> None:
    """Nobody tells a member that waits for the others: it waits for as long as they may take."""
    cluster = SimulatedCluster(CLASSIC_SEED, SLOW_GROUPS)
    cluster.start()
    cluster.create_topics(*topics_for([NAME]))
    history = History()
    (transformer,) = make_programs(cluster, history, [NAME])
    transformer.begin()
    transformer.finish()
    cluster.simulation.run_until(lambda: coordinator_of(cluster) is not None, 20_000)
    cluster.simulation.run_for(1_000)
    coordinator = coordinator_of(cluster)
    assert coordinator is not None
    coordinator.cut_power()
    cluster.simulation.run_for(2_000)
    coordinator.start()
    cluster.simulation.run_until(lambda: transformer.is_settled, SETTLED_WITHIN_MS)
    assert history.violations == []
