"""The log of an idle quorum moves, so that everybody sees who keeps up with it (KIP-835)."""

import pytest

from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster


def records_while_idle(nodes: int, interval_ms: int) -> list[int]:
    """How many records come into each node's metadata in ten seconds in which nobody asks for anything."""
    cluster = SimulatedCluster(5, ClusterSettings(nodes, more={"metadata.max.idle.interval.ms": str(interval_ms)}))
    cluster.start()
    cluster.simulation.run_for(5_000)
    logs = [machine.metadata for machine in cluster.machines.values() if machine.metadata is not None]
    before = [log.committed_offset for log in logs]
    cluster.simulation.run_for(10_000)
    return [log.committed_offset - was for log, was in zip(logs, before, strict=True)]


def test_an_idle_leader_writes_a_no_op_record_every_interval() -> None:
    written = records_while_idle(nodes=3, interval_ms=500)
    assert len(written) == 3
    assert all(18 <= count <= 22 for count in written), written


@pytest.mark.parametrize(("nodes", "interval_ms"), [(3, 0), (1, 500)], ids=["told not to", "nobody follows"])
def test_none_are_written(nodes: int, interval_ms: int) -> None:
    assert set(records_while_idle(nodes, interval_ms)) == {0}
