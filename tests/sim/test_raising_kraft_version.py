"""A cluster whose voters are a setting is raised to kraft.version 1 while it runs, and lives on after its leader."""

from ottla.client.admin.asking import Asking
from ottla.client.admin.feature_levels import FeatureUpdate, UpgradeType, update_features
from ottla.client.cluster.cluster import Cluster
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.cluster_health import is_whole
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster


def test_static_voters_become_data_in_a_cluster_that_runs() -> None:
    cluster = SimulatedCluster(3, ClusterSettings(nodes=3))
    cluster.start()
    cluster.simulation.run_for(8_000)
    asking = Asking(
        Cluster(cluster.client("admin").world, read_settings(Scope.ADMIN, {"bootstrap.servers": cluster.bootstrap}, {}))
    )
    raised = spawn(update_features(asking, {"kraft.version": FeatureUpdate(1, UpgradeType.UPGRADE)}))
    cluster.simulation.run_until(lambda: raised.is_done, 30_000)
    raised.value().raise_first()

    def all_know() -> bool:
        logs = [machine.metadata for machine in cluster.machines.values()]
        return all(log is not None and log.raft.kraft_version == 1 and len(log.raft.voters) == 3 for log in logs)

    cluster.simulation.run_until(all_know, 10_000)
    leader = next(one for one in cluster.machines.values() if one.metadata and one.metadata.raft.is_leader)
    leader.cut_power()
    cluster.simulation.run_for(5_000)
    leader.start()
    cluster.simulation.run_until(lambda: is_whole(cluster), 60_000)
    assert all_know()
