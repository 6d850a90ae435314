"""Three nodes of Apache Kafka become three of ours one by one, and back, under programs that lose nothing by it.

The data directories stay where they are. The programs are those of `make chaos`, and so is the verdict.
"""

import time
from pathlib import Path

import pytest

from ottla import Admin
from ottla.admin import FeatureUpdate, UpgradeType
from ottla.testing.chaos.operations import Outcome
from ottla.testing.chaos.verdict import counts, judge, table
from tests.chaos.chaos_cluster import APACHE_KAFKA, NODE_IDS, OURS, TIMEOUT_S, ChaosCluster
from tests.chaos.chaos_load import Load
from tests.chaos.recorder import Recorder

pytestmark = pytest.mark.interop

SEED = 1
SOME, SOME_TRANSACTIONS = 200, 5


def switch_off(bootstrap: str, *features: str) -> None:
    """What docs/cluster.md tells operators to do first: our nodes do not serve these, and could not register."""
    off = {feature: FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE) for feature in features}
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.update_features(off).raise_first()


def wait_for_more(recorder: Recorder) -> None:
    """Until programs have been told of a few hundred operations more that they are done, transactions among them."""
    operations, transactions = _done(recorder)
    wanted_operations, wanted_transactions = operations + SOME, transactions + SOME_TRANSACTIONS
    ends_s = time.monotonic() + TIMEOUT_S
    while True:
        operations, transactions = _done(recorder)
        if operations >= wanted_operations and transactions >= wanted_transactions:
            return
        assert time.monotonic() < ends_s, f"{operations} operations and {transactions} transactions, and no more"
        time.sleep(0.2)


def _done(recorder: Recorder) -> tuple[int, int]:
    done = [one for one in [*recorder.operations] if one.outcome is Outcome.OK]
    return len(done), sum(one.is_transaction for one in done)


def test_a_cluster_changes_hands_node_by_node_and_back(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history")
    with ChaosCluster(APACHE_KAFKA) as cluster:
        switch_off(cluster.bootstrap, "share.version", "streams.version")
        load = Load(cluster, recorder, SEED)
        try:
            for end, becomes in ((cluster.stop, OURS), (cluster.kill, APACHE_KAFKA)):
                for node_id in NODE_IDS:
                    wait_for_more(recorder)
                    end(node_id)
                    cluster.swap(node_id)
                    cluster.start(node_id)
                    cluster.wait_until_whole()
                assert set(cluster.kinds.values()) == {becomes}
            wait_for_more(recorder)
        finally:
            load.over.set()
        assert load.finish() == []
    recorder.close()
    verdict = judge(recorder.operations)
    assert verdict.is_good, "\n".join([counts(recorder.operations), *table(verdict), str(load.problems())])
