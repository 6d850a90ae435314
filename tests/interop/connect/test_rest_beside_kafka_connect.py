"""Every call of the REST interface, right and wrong, beside Kafka Connect 4.3.1: the same status and the same body."""

from pathlib import Path

import pytest

from ottla import Admin, NewTopic
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses
from tests.interop.connect.kafka_connect import ConnectCluster
from tests.interop.connect.rest_comparison import differences
from tests.interop.connect.rest_script import SCRIPT, Call
from tests.unit.connect.worker.worker_in_a_thread import WorkerInAThread, wait_for

pytestmark = pytest.mark.interop


def test_every_call_is_answered_as_kafka_connect_does(tmp_path: Path) -> None:
    with (
        ClusterOfProcesses(tmp_path / "nodes", 1) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
        ConnectCluster(tmp_path, cluster.bootstrap, workers=1, replicas=1) as connect,
        WorkerInAThread(cluster.bootstrap, "ours") as worker,
    ):
        admin.create_topics(NewTopic("rest-lines", 1, 1))
        connect.wait(lambda: connect.ask("GET", "/health"), "Kafka Connect serves")
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "our worker leads")
        found = differences(connect.url, worker.url, SCRIPT)
        assert not found, "\n\n".join(found)
        print(f"{sum(isinstance(step, Call) for step in SCRIPT)} calls answered alike")
