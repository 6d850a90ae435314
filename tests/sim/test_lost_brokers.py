"""A broker whose process has ended is fenced at once; one that cannot be reached has the time of its session."""

import pytest

from ottla.testing.sim.cluster.cluster_settings import BROKER_PORT, ClusterSettings
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

SESSION_MS = 9_000
AT_ONCE_MS = 2_000
SETTINGS = {"broker.session.timeout.ms": str(SESSION_MS)}


def started() -> SimulatedCluster:
    cluster = SimulatedCluster(5, ClusterSettings(nodes=3, more=SETTINGS))
    cluster.start()
    cluster.simulation.run_for(3_000)  # all controllers know all brokers
    return cluster


def machines(cluster: SimulatedCluster) -> tuple[Machine, list[Machine]]:
    """That of the active controller, and the others."""
    (active,) = (one for one in cluster.machines.values() if one.metadata is not None and one.metadata.is_active)
    return active, [one for one in cluster.machines.values() if one is not active]


def is_fenced(lost: Machine, by: list[Machine]) -> bool:
    images = [one.metadata.image for one in by if one.metadata is not None]
    node_id = lost.node_id
    return bool(images) and all(image.brokers.by_id[node_id].fenced for image in images)


@pytest.mark.parametrize("is_active", [False, True], ids=["a broker", "the active controller with its broker"])
def test_a_broker_whose_process_ends_is_fenced_before_its_session_is_over(is_active: bool) -> None:
    cluster = started()
    active, others = machines(cluster)
    lost = active if is_active else others[0]
    left = [one for one in cluster.machines.values() if one is not lost]
    lost.kill()
    cluster.simulation.run_until(lambda: is_fenced(lost, left), AT_ONCE_MS)


def test_a_broker_that_comes_back_is_unfenced() -> None:
    cluster = started()
    active, (lost, *_) = machines(cluster)
    lost.kill()
    cluster.simulation.run_until(lambda: is_fenced(lost, [active]), AT_ONCE_MS)
    lost.start()
    cluster.simulation.run_until(lambda: not is_fenced(lost, [active]), 30_000)
    cluster.simulation.run_for(SESSION_MS)
    assert not is_fenced(lost, [active])


def test_a_broker_that_cannot_be_reached_has_the_time_of_its_session() -> None:
    cluster = started()
    active, (lost, *others) = machines(cluster)
    fabric = cluster.simulation.fabric
    rest = [one.host for one in (active, *others)]
    for link in fabric.links_between([lost.host], rest) + fabric.links_between(rest, [lost.host]):
        link.cut()
    cluster.simulation.run_for(SESSION_MS // 2)
    assert not is_fenced(lost, [active])
    cluster.simulation.run_until(lambda: is_fenced(lost, [active]), SESSION_MS)


def test_brokers_are_not_fenced_because_the_active_controller_lost_its_power() -> None:
    """Nobody tells them: what they have asked it is answered by the next one, as soon as there is one."""
    cluster = started()
    active, others = machines(cluster)
    active.cut_power()
    for _ in range(25):
        cluster.simulation.run_for(1_000)
        assert not any(is_fenced(one, others) for one in others)
    assert is_fenced(active, others)


def test_a_broker_at_whose_address_nobody_listens_is_not_fenced_for_that() -> None:
    """As where a firewall refuses controllers."""
    cluster = started()
    active, (other, *_) = machines(cluster)
    other.kill()
    own = cluster.settings.properties(other.node_id)["listeners"]
    other.start({"advertised.listeners": own.replace(f":{BROKER_PORT}", ":1")})
    cluster.simulation.run_until(lambda: not is_fenced(other, [active]), 30_000)
    for _ in range(20):
        cluster.simulation.run_for(SESSION_MS // 10)
        assert not is_fenced(other, [active])
