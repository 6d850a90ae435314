"""The last node of a cluster stops by itself, with nobody left to hand over to."""

from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster


def test_a_node_whose_other_controllers_are_gone_stops_within_five_seconds() -> None:
    cluster = SimulatedCluster(5, ClusterSettings(nodes=3))
    cluster.start()
    last = cluster.machines[3]
    cluster.machines[1].kill()
    cluster.machines[2].kill()
    assert last.life is not None
    stopped_at_us = cluster.simulation.clock.elapsed_us()
    last.life.stop()
    assert cluster.simulation.clock.elapsed_us() - stopped_at_us < 5_000_000
    assert last.disk.exists("/data/.kafka_cleanshutdown")
