"""Three nodes of the release before become three of this one, one by one, and back, under programs that lose nothing.

What docs/upgrade.md says to do, with the load and the verdict of `make chaos`. Apache Kafka's nodes become ours in the
same way: test_cluster_swap.
"""

import subprocess
from pathlib import Path

import pytest

from ottla import Admin
from ottla.testing.chaos.verdict import counts, judge, table
from tests.chaos.chaos_cluster import CLUSTER_ID, NODE_IDS, OURS, ChaosCluster
from tests.chaos.chaos_load import Load
from tests.chaos.recorder import Recorder
from tests.interop.clusters.test_cluster_swap import wait_for_more
from tests.interop.previous_release import previous_python

pytestmark = pytest.mark.interop

SEED = 1
PREVIOUS = "previous"


class UpgradedCluster(ChaosCluster):
    """All its nodes are of the release before, at first."""

    def __init__(self, python: Path) -> None:
        super().__init__(OURS)
        self.kinds = dict.fromkeys(NODE_IDS, PREVIOUS)
        self._python = str(python)

    def swap(self, node_id: int) -> None:
        assert node_id not in self._processes, "a node that runs is what it is"
        self.kinds[node_id] = PREVIOUS if self.kinds[node_id] == OURS else OURS

    def _format(self, node_id: int) -> None:
        words = ["storage", "format", "-t", CLUSTER_ID, "-c", self._file(node_id)]
        subprocess.run([self._python, "-m", "ottla.cli.main", *words], check=True, capture_output=True)

    def _command(self, node_id: int) -> list[str]:
        command = super()._command(node_id)
        if self.kinds[node_id] == OURS:
            return command
        return [self._python, "-m", "ottla.cli.main", "start", "--config", self._file(node_id)]


def version_of(cluster: ChaosCluster) -> int:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        return admin.describe_features().finalized["metadata.version"].high


def test_a_cluster_is_upgraded_node_by_node_and_back(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history")
    with UpgradedCluster(previous_python()) as cluster:
        before = version_of(cluster)
        load = Load(cluster, recorder, SEED)
        try:
            for becomes in (OURS, PREVIOUS):
                for node_id in NODE_IDS:
                    wait_for_more(recorder)
                    cluster.stop(node_id)
                    cluster.swap(node_id)
                    cluster.start(node_id)
                    cluster.wait_until_whole()
                assert set(cluster.kinds.values()) == {becomes}
                # A new release uses nothing that the old one does not know, until it is told to.
                assert version_of(cluster) == before
            wait_for_more(recorder)
        finally:
            load.over.set()
        assert load.finish() == []
    recorder.close()
    verdict = judge(recorder.operations)
    assert verdict.is_good, "\n".join([counts(recorder.operations), *table(verdict), str(load.problems())])
