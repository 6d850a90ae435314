"""Two of three controllers are lost for good: what docs/cluster.md says to do then, with `ottla quorum`."""

import re
import shutil
from pathlib import Path

import pytest

import ottla
from ottla.cli.cluster.metadata_quorum import main as metadata_quorum
from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.local_cluster.node_process import start_process
from ottla.cli.main import main
from ottla.cli.storage import main as storage
from ottla.client.errors import KafkaError
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually


def quorum(node: NodeFiles, *words: str) -> int:
    return main(["quorum", *words, "--config", str(node.properties)])


def log_end(node: NodeFiles, capsys: pytest.CaptureFixture[str]) -> tuple[int, int]:
    capsys.readouterr()
    assert quorum(node, "status") == 0
    told = capsys.readouterr().out
    assert re.search(r"^Voters: 1, 2, 3$", told, re.MULTILINE), told
    found = re.search(r"^Log end: epoch (\d+), offset (\d+)$", told, re.MULTILINE)
    assert found is not None
    return int(found[1]), int(found[2])


def test_one_that_is_left_becomes_the_quorum_and_others_join_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Node 2 has its directory still, and falls behind before; that of node 3 is gone."""
    with ClusterOfProcesses(tmp_path, settings={"min.insync.replicas": "2"}) as cluster:
        cluster_id = cluster.cluster_id
        with ottla.Producer(bootstrap_servers=cluster.bootstrap) as producer:
            for number in range(100):
                producer.send("orders", b"%d" % number)
        cluster.kill(2)
        with ottla.Admin(bootstrap_servers=cluster.bootstrap) as admin:
            eventually(lambda: cluster.isr_of("orders") == [1, 3], "node 2 is out of sync")
            admin.create_topics([ottla.admin.NewTopic("later", 1, 2)]).raise_first()
            eventually(lambda: "later" in [topic.name for topic in admin.list_topics()], "the topic is there")
        cluster.kill(3)
        shutil.rmtree(cluster.nodes[3].data)
        eventually(lambda: not has_leader(cluster.nodes[1].address), "the one that is left knows that it is alone")
        cluster.stop(1)

        before = log_end(cluster.nodes[1], capsys)
        assert before > log_end(cluster.nodes[2], capsys)
        assert quorum(cluster.nodes[1], "recover") == 0
        assert "Nothing was changed" in capsys.readouterr().out
        assert log_end(cluster.nodes[1], capsys) == before
        assert quorum(cluster.nodes[1], "recover", "--execute") == 0
        assert quorum(cluster.nodes[1], "recover", "--execute") == 0
        assert "only voter already" in capsys.readouterr().out

        cluster.start(1)
        assert quorum(cluster.nodes[1], "status") == 1
        assert "in use by another process" in capsys.readouterr().err
        server = ["--bootstrap-server", cluster.nodes[1].address]
        with ottla.Admin(bootstrap_servers=cluster.nodes[1].address) as admin:
            eventually(lambda: cluster_has(admin, "later", "orders"), "the metadata is there")
            eventually(lambda: cluster.leader_of("orders") == 1, "the partition has a leader")
            assert [voter.replica_id for voter in admin.describe_metadata_quorum().voters] == [1]

            format_again = ["format", "-t", cluster_id, "-c", str(cluster.nodes[3].properties)]
            assert storage([*format_again, "--no-initial-controllers"]) == 0
            for late in (2, 3):
                cluster._children.append(start_process(cluster.nodes[late]))
                eventually(
                    lambda late=late: late in [one.replica_id for one in admin.describe_metadata_quorum().observers],  # type: ignore[misc]
                    f"node {late} follows",
                )
                added = [*server, "--command-config", str(cluster.nodes[late].properties), "add-controller"]
                assert metadata_quorum(added) == 0
            assert [voter.replica_id for voter in admin.describe_metadata_quorum().voters] == [1, 2, 3]
        eventually(lambda: cluster.isr_of("orders") == [1, 2, 3], "all are in sync")
        assert read_all(cluster.bootstrap) == sorted(b"%d" % number for number in range(100))
        # Two of three are a majority again, without the one that was alone.
        cluster.kill(1)
        with ottla.Producer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send("orders", b"more").result(60)


def test_a_quorum_that_has_a_majority_is_not_recovered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two that go on, and a third that is its own majority: a second cluster with the same name."""
    with ClusterOfProcesses(tmp_path) as cluster:
        cluster.stop(1)
        before = log_end(cluster.nodes[1], capsys)
        for words in (["recover"], ["recover", "--execute"]):
            assert quorum(cluster.nodes[1], *words) == 1
            told = capsys.readouterr().err
            assert "2 other voters of 3 (2, 3) can be connected to" in told
        cluster.kill(3)
        assert quorum(cluster.nodes[1], "recover", "--execute") == 1
        assert "With node 1 they are a majority: start it" in capsys.readouterr().err
        assert log_end(cluster.nodes[1], capsys) == before
        cluster.start(1)
        eventually(lambda: has_leader(cluster.nodes[1].address), "they are a majority")


def test_a_directory_that_is_no_voter_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=controller\nnode.id=7\nlisteners=CONTROLLER://127.0.0.1:9093\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={tmp_path / 'data'}\n"
        "controller.quorum.voters=7@127.0.0.1:9093,8@127.0.0.1:9094\n"
    )
    assert main(["quorum", "recover", "-c", str(properties), "--execute"]) == 1
    assert "has no metadata of a controller" in capsys.readouterr().err
    assert storage(["format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties)]) == 0
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(exist_ok=True)
    assert main(["quorum", "recover", "-c", str(properties), "--execute"]) == 1
    told = capsys.readouterr().err
    assert "controller.quorum.voters" in told
    assert "7@127.0.0.1:9093,8@127.0.0.1:9094" in told


def has_leader(server: str) -> bool:
    """Of the quorum. What it decided before would be for a broker that is gone."""
    with ottla.Admin(bootstrap_servers=server, default_api_timeout_ms=1000, request_timeout_ms=500) as admin:
        try:
            return admin.describe_metadata_quorum().leader_id > 0
        except KafkaError:
            return False


def cluster_has(admin: ottla.Admin, *topics: str) -> bool:
    return {topic.name for topic in admin.list_topics()} >= set(topics)


def read_all(servers: str) -> list[bytes]:
    with ottla.Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        partitions = [ottla.TopicPartition("orders", one.partition) for one in consumer.list_topics()["orders"]]
        consumer.assign(partitions)
        ends, found = consumer.end_offsets(partitions), []
        while any(consumer.position(one) < end for one, end in ends.items()):
            found += [record.value or b"" for record in consumer.poll(timeout=1)]
    return sorted(found)
