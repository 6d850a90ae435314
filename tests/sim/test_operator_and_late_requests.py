"""The operator of runs, when its request to unregister a broker comes late: the broker is back, and about to serve."""

from ottla.client.admin.asking import Asking
from ottla.client.admin.cluster_nodes import unregister_broker
from ottla.client.cluster.cluster import Cluster
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim import ClusterSettings, History, SimulatedCluster, spawn
from ottla.testing.sim.workloads.operator import Operator


def test_a_broker_that_is_unregistered_before_it_serves_is_restarted() -> None:
    """It waits to be unfenced, for ever, as Apache Kafka's do: only a new life registers again."""
    cluster = SimulatedCluster(seed=3, settings=ClusterSettings(nodes=3))
    cluster.start()
    machine, simulation = cluster.machines[2], cluster.simulation
    client = cluster.client("admin")
    settings = read_settings(Scope.ADMIN, {"bootstrap.servers": cluster.bootstrap, **client.settings}, {})
    asking = Asking(Cluster(client.world, settings))
    machine.kill("killed")
    machine.start()
    simulation.run_until(lambda: machine.broker_epoch >= 0)
    links = simulation.fabric.links_between([machine.host], [cluster.machines[node_id].host for node_id in (1, 3)])
    for link in links:
        link.cut()
    spawn(unregister_broker(asking, 2))
    known = cluster.machines[1].metadata
    assert known is not None
    simulation.run_until(lambda: 2 not in known.image.brokers.by_id)
    for link in links:
        link.mend()
    simulation.run_for(10_000)
    assert not machine.is_serving
    operator = Operator(cluster, History(), "operator-1", [])
    operator._restart_unregistered()
    simulation.run_until(lambda: machine.is_serving)
    assert 2 in known.image.brokers.by_id


def test_a_broker_that_has_not_registered_yet_is_left_alone() -> None:
    cluster = SimulatedCluster(seed=3, settings=ClusterSettings(nodes=3))
    cluster.start()
    machine, simulation = cluster.machines[2], cluster.simulation
    machine.kill("killed")
    machine.start()
    ends = len(machine.ends)
    Operator(cluster, History(), "operator-1", [])._restart_unregistered()
    simulation.run_until(lambda: machine.is_serving)
    assert len(machine.ends) == ends
