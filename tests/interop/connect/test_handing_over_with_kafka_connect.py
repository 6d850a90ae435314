"""Kafka Connect hands its connectors over to us, and we hand them back: the same three topics, one after the other."""

from pathlib import Path

import pytest

from ottla import Admin, NewTopic
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses
from tests.interop.connect.kafka_connect import FILE_SOURCE, ConnectCluster
from tests.interop.connect.rest_comparison import settle
from tests.interop.connect.rest_script import Settled
from tests.unit.connect.worker.worker_in_a_thread import WorkerInAThread, wait_for

pytestmark = pytest.mark.interop

TOPICS = {
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
}
RUNNING = ("RUNNING", ["RUNNING"])


def test_connectors_states_and_offsets_go_over_and_back(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    source = {"connector.class": FILE_SOURCE, "file": str(lines), "topic": "lines"}
    with (
        ClusterOfProcesses(tmp_path / "nodes", 1) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
        ConnectCluster(tmp_path, cluster.bootstrap, workers=1, replicas=1) as connect,
    ):
        admin.create_topics(NewTopic("lines", 1, 1))
        connect.create("kept", source)
        connect.create("changed", source)
        connect.create("deleted", source)
        connect.create("wide", {"connector.class": "FileStreamSink", "topics": "lines", "tasks.max": 3})
        connect.ask("PUT", "/connectors/changed/pause")
        settle(connect.url, Settled("changed", "PAUSED", ("PAUSED",)))
        connect.wait(lambda: connect.offsets_of("kept"), "the lines are written")

        with WorkerInAThread(cluster.bootstrap, "connect", properties=TOPICS) as ours:
            # The group is Kafka Connect's until its last worker is gone.
            assert ours.ask("GET", "/health").status == 503
            assert not ours.engine.starts
            connect.kill(0)
            wait_for(lambda: ours.engine.starts, "ours runs the connectors", 60.0)
            wait_for(lambda: ours.state_of("kept") == RUNNING, "it runs")
            wait_for(lambda: ours.state_of("wide") == RUNNING, "it runs, with one task")
            assert ours.state_of("changed") == ("PAUSED", ["PAUSED"])
            assert {spec.name for spec in ours.engine.starts} == {"kept", "deleted", "wide"}
            position = [{"partition": {"filename": str(lines)}, "offset": {"position": 8}}]
            assert ours.ask("GET", "/connectors/kept/offsets").body == {"offsets": position}
            assert ours.ask("GET", "/connectors/kept/topics").body == {"kept": {"topics": ["lines"]}}

            ours.ask("DELETE", "/connectors/deleted")
            ours.ask("PATCH", "/connectors/changed/config", {"batch.size": "7"})
            assert ours.ask("PUT", "/connectors/new/config", source).status == 201
            assert ours.ask("PUT", "/connectors/kept/stop").status == 204
            wait_for(lambda: ours.state_of("kept") == ("STOPPED", []), "it is stopped")
            moved = {"offsets": [{"partition": {"filename": str(lines)}, "offset": {"position": 4}}]}
            assert ours.ask("PATCH", "/connectors/kept/offsets", moved).status == 200

        connect.start(0)
        connect.wait(lambda: connect.ask("GET", "/connectors"), "Kafka Connect serves")
        settle(connect.url, Settled("kept", "STOPPED"))
        settle(connect.url, Settled("changed", "PAUSED", ("PAUSED",)))
        settle(connect.url, Settled("new", "RUNNING", ("RUNNING",)))
        settle(connect.url, Settled("wide", "RUNNING", ("RUNNING",) * 3))
        assert sorted(connect.ask("GET", "/connectors")) == ["changed", "kept", "new", "wide"]
        assert connect.ask("GET", "/connectors/changed/config")["batch.size"] == "7"
        assert connect.offsets_of("kept") == moved["offsets"]
