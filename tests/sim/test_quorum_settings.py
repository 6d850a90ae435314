"""The settings of the metadata quorum do what they say, from the properties of a node on."""

import pytest

from ottla.machines.raft.machine import Raft, Role
from ottla.runtime.metadata.quorum.quorum_network import QuorumConfig
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.store import StoreConfig
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

SETTINGS = {
    "controller.quorum.request.timeout.ms": "2001",
    "controller.quorum.retry.backoff.ms": "21",
    "controller.quorum.fetch.max.bytes": "1002",
    "controller.quorum.fetch.snapshot.max.bytes": "1003",
    "controller.quorum.append.linger.ms": "4",
    "metadata.log.max.record.bytes.between.snapshots": "5005",
    "metadata.log.max.snapshot.interval.ms": "6006",
    "metadata.log.segment.bytes": "8388609",
    "metadata.log.segment.ms": "7007",
    "metadata.max.retention.bytes": "8008",
    "metadata.max.retention.ms": "9009",
}
_LONGEST_WAIT_MS = 600
"""A leader may answer a fetch so late: the timer of its follower has run for as long by then."""


def test_what_is_set_reaches_its_part() -> None:
    """What each of them does there is tested there."""
    cluster = SimulatedCluster(1, ClusterSettings(nodes=1, more=SETTINGS))
    cluster.start()
    metadata = cluster.machines[1].metadata
    assert metadata is not None
    assert metadata._network is not None
    assert metadata._network.config == QuorumConfig(2001, 21, 1002, 1003)
    assert metadata._gathering._linger_ms == 4
    assert metadata._snapshotter._config == SnapshotConfig(5005, 6006)
    assert metadata._store.config == StoreConfig(8_388_609, 7007, 8008, 9009)


def raft_of(machine: Machine) -> Raft:
    assert machine.metadata is not None
    return machine.metadata.raft


def without_its_leader(**settings: str) -> tuple[SimulatedCluster, Machine, list[Machine]]:
    """Three controllers, of which the leader has just been cut off from the others, without a word."""
    more = {"controller.quorum.request.timeout.ms": "60000", "broker.session.timeout.ms": "60000"}
    more |= {key.replace("_", "."): value for key, value in settings.items()}
    cluster = SimulatedCluster(2, ClusterSettings(nodes=3, more=more))
    cluster.start()
    cluster.simulation.run_for(2_000)
    (leader,) = (one for one in cluster.machines.values() if raft_of(one).is_leader)
    others = [one for one in cluster.machines.values() if one is not leader]
    fabric, hosts = cluster.simulation.fabric, [one.host for one in others]
    for link in fabric.links_between([leader.host], hosts) + fabric.links_between(hosts, [leader.host]):
        link.cut()
    return cluster, leader, others


@pytest.mark.parametrize("fetch_ms", [1_000, 10_000])
def test_a_silent_leader_is_replaced_after_the_fetch_timeout_and_resigns_half_a_timeout_later(fetch_ms: int) -> None:
    """`controller.quorum.fetch.timeout.ms`; the leader by itself, as it hears of no majority."""
    cluster, leader, others = without_its_leader(controller_quorum_fetch_timeout_ms=str(fetch_ms))
    simulation = cluster.simulation
    simulation.run_for(fetch_ms - _LONGEST_WAIT_MS)
    assert all(raft_of(one).leader_id == leader.node_id and raft_of(one).role is Role.FOLLOWER for one in others)
    simulation.run_until(lambda: any(raft_of(one).is_leader for one in others), _LONGEST_WAIT_MS + 5_000)
    simulation.run_until(lambda: not raft_of(leader).is_leader, fetch_ms)


@pytest.mark.parametrize("election_ms", [500, 10_000])
def test_a_voter_waits_for_the_election_timeout_before_it_asks_again(election_ms: int) -> None:
    """`controller.quorum.election.timeout.ms`, and up to as much again by chance."""
    cluster, _, (one, other) = without_its_leader(
        controller_quorum_fetch_timeout_ms="1000", controller_quorum_election_timeout_ms=str(election_ms)
    )
    simulation = cluster.simulation
    other.kill()
    simulation.run_until(lambda: raft_of(one).role is Role.PROSPECTIVE, 5_000)
    simulation.run_for(election_ms * 9 // 10)
    assert raft_of(one).role is Role.PROSPECTIVE
    simulation.run_until(lambda: raft_of(one).role is not Role.PROSPECTIVE, election_ms * 12 // 10)
