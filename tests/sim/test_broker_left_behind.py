"""A broker that runs, and is away for longer than the controllers keep the log, takes their snapshot and goes on."""

from ottla.client.admin.topics import NewTopic
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

FREQUENT_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "1", "metadata.max.retention.bytes": "1"}
AWAY = 4  # A broker, and no controller.


def test_a_broker_whose_lag_outlives_the_leaders_log_goes_on_with_a_snapshot() -> None:
    cluster = SimulatedCluster(5, ClusterSettings(nodes=4, more=FREQUENT_SNAPSHOTS))
    cluster.start()
    simulation, away = cluster.simulation, cluster.machines[AWAY]
    cluster.create_topics(NewTopic("before", 4, 3))
    others = [machine.host for node_id, machine in cluster.machines.items() if node_id != AWAY]
    links = simulation.fabric.links_between([away.host], others) + simulation.fabric.links_between(others, [away.host])
    for link in links:
        link.cut()
    simulation.run_for(20_000)
    cluster.create_topics(*(NewTopic(f"topic-{number}", 1, 3) for number in range(3)))
    metadata = away.metadata
    assert metadata is not None
    (leader,) = (one.metadata for one in cluster.machines.values() if one.metadata and one.metadata.is_active)
    simulation.run_for(60_000)
    assert leader._store.log.log_start_offset > metadata.log_end_offset
    for link in links:
        link.mend()
    simulation.run_until(lambda: metadata.committed_offset == leader.committed_offset, 60_000)
    assert away.metadata is metadata
    assert sorted(metadata.image.topics.by_name) == ["before", "topic-0", "topic-1", "topic-2"]
    simulation.run_until(lambda: leader.image.brokers.by_id[AWAY].is_active, 60_000)
    cluster.create_topics(NewTopic("after", 4, 3))
    assert away.node is not None
    assert away.node.broker is not None
    partitions = away.node.broker.partitions
    simulation.run_until(lambda: any(name.topic == "after" for name in partitions), 10_000)
