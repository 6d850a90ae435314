"""What the active controller decides because time has passed, in clusters that run."""

import pytest

from ottla.client.admin.topics import NewTopic
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.testing.sim.cluster.cluster_health import is_whole
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

BROKERS = (4, 5)
"""The nodes after the controllers, which are three."""


def started(**settings: str) -> SimulatedCluster:
    more = {key.replace("_", "."): value for key, value in settings.items()}
    cluster = SimulatedCluster(3, ClusterSettings(nodes=5, isolated=True, more=more))
    cluster.start()
    cluster.create_topics(NewTopic("orders", assignment={0: list(BROKERS)}))
    cluster.simulation.run_until(lambda: is_whole(cluster), 30_000)
    return cluster


def orders(cluster: SimulatedCluster) -> PartitionImage:
    """As the active controller has committed it."""
    (active,) = (one.metadata for one in cluster.machines.values() if one.metadata and one.metadata.is_active)
    return active.image.topics.by_name["orders"].partitions[0]


def restart_preferred(cluster: SimulatedCluster) -> None:
    """The first replica is killed and comes back in sync; the other one leads."""
    first, second = BROKERS
    cluster.machines[first].kill()
    cluster.simulation.run_until(lambda: orders(cluster).leader == second, 30_000)
    cluster.machines[first].start()
    cluster.simulation.run_until(lambda: len(orders(cluster).isr) == 2, 30_000)


def test_leaders_go_back_to_where_they_are_preferred_when_it_is_time() -> None:
    """`auto.leader.rebalance.enable` is the default, `leader.imbalance.check.interval.seconds` every how often."""
    cluster = started(leader_imbalance_check_interval_seconds="40")
    restart_preferred(cluster)
    cluster.simulation.run_until(lambda: orders(cluster).leader == BROKERS[0], 41_000)


def test_leaders_stay_where_they_are_if_that_is_set() -> None:
    cluster = started(leader_imbalance_check_interval_seconds="5", auto_leader_rebalance_enable="false")
    restart_preferred(cluster)
    cluster.simulation.run_for(30_000)
    assert orders(cluster).leader == BROKERS[1]


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_replica_out_of_sync_leads_where_the_brokers_setting_allows_it(is_allowed: bool) -> None:
    """`unclean.leader.election.enable`: the one that has all, the last of the ISR, does not come back."""
    cluster = started(unclean_leader_election_enable=str(is_allowed).lower())
    first, second = BROKERS
    cluster.machines[first].kill()
    cluster.simulation.run_until(lambda: orders(cluster).isr == (second,), 30_000)
    cluster.machines[second].cut_power()
    cluster.simulation.run_until(lambda: orders(cluster).leader == -1, 30_000)
    cluster.machines[first].start()
    cluster.simulation.run_for(30_000)
    assert (orders(cluster).leader == first) == is_allowed
