"""Three real nodes, each controller and broker: they elect, they go on without the one that led, and take it back."""

from collections.abc import Iterator

import pytest

from ottla.admin import NewTopic
from ottla.cli.cluster.metadata_quorum import main as metadata_quorum
from ottla.client.blocking.admin import Admin
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfProcesses]:
    with ClusterOfProcesses(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def create(node_address: str, name: str, copies: int) -> None:
    with Admin(bootstrap_servers=node_address) as admin:
        admin.create_topics([NewTopic(name, partitions=1, replication_factor=copies)])[name]


def test_three_nodes_elect_and_go_on_when_the_active_controller_is_killed(
    cluster: ClusterOfProcesses, capsys: pytest.CaptureFixture[str]
) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        quorum = admin.describe_metadata_quorum()
        assert [voter.replica_id for voter in quorum.voters] == [1, 2, 3]
        for node in cluster.nodes.values():
            create(node.address, f"through-{node.node_id}", copies=3)
        cluster.kill(quorum.leader_id)
        others = [node for node in cluster.nodes.values() if node.node_id != quorum.leader_id]
        for node in others:
            create(node.address, f"later-through-{node.node_id}", copies=2)
        after = admin.describe_metadata_quorum()
        assert after.leader_id in [node.node_id for node in others]
        assert after.leader_epoch > quorum.leader_epoch

        assert metadata_quorum(["--bootstrap-server", others[0].address, "describe", "--status"]) == 0
        assert f"LeaderId:               {after.leader_id}" in capsys.readouterr().out
        assert metadata_quorum(["--bootstrap-server", others[0].address, "describe", "--replication"]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert {(line[0], line[-1]) for line in lines[1:]} == {
            (str(node_id), "Leader" if node_id == after.leader_id else "Follower") for node_id in cluster.nodes
        }

        cluster.start(quorum.leader_id)
        eventually(
            lambda: all(
                voter.log_end_offset >= after.high_watermark for voter in admin.describe_metadata_quorum().voters
            ),
            "the voter that was killed catches up",
        )
        assert {topic.name for topic in admin.list_topics()} >= {"through-1", "through-2", "through-3"}


def test_a_controller_that_stops_hands_over_at_once(cluster: ClusterOfProcesses) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        before = admin.describe_metadata_quorum()
        cluster.stop(before.leader_id)
        after = admin.describe_metadata_quorum()
        assert after.leader_id != before.leader_id
        cluster.start(before.leader_id)
