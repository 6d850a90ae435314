"""Voters come and go while the quorum runs (KIP-853): a controller joins, and the one that led leaves it."""

from pathlib import Path

from ottla.cli.cluster.metadata_quorum import main as metadata_quorum
from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.storage import main as storage
from ottla.client.blocking.admin import Admin
from ottla.testing.free_ports import free_port
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually


def second_controller(cluster: ClusterOfProcesses, directory: Path, **more: str) -> NodeFiles:
    """A controller alone, formatted to follow the quorum of the first node."""
    first = cluster.nodes[1]
    settings = dict(line.split("=", 1) for line in first.properties.read_text().splitlines())
    port = free_port()
    settings |= {
        "process.roles": "controller",
        "node.id": "2",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "log.dirs": str(directory / "node-2" / "data"),
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    node = NodeFiles(2, directory / "node-2", f"127.0.0.1:{port}")
    node.directory.mkdir()
    node.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    meta = (first.directory / "data" / "meta.properties").read_text().splitlines()
    (cluster_id,) = [line.partition("=")[2] for line in meta if line.startswith("cluster.id=")]
    assert storage(["format", "-t", cluster_id, "-c", str(node.properties), "--no-initial-controllers"]) == 0
    return node


def test_a_controller_is_added_and_the_leader_removed(tmp_path: Path) -> None:
    with ClusterOfProcesses(tmp_path, count=1) as cluster:
        cluster.nodes[2] = second_controller(cluster, tmp_path)
        cluster.start(2)
        server = ["--bootstrap-server", cluster.nodes[1].address]
        assert metadata_quorum([*server, "--command-config", str(cluster.nodes[2].properties), "add-controller"]) == 0
        with Admin(bootstrap_servers=cluster.nodes[1].address) as admin:
            quorum = admin.describe_metadata_quorum()
            assert [voter.replica_id for voter in quorum.voters] == [1, 2]
            assert quorum.leader_id == 1
            leader = quorum.voters[0]
            admin.remove_raft_voter(1, leader.directory_id)
            eventually(lambda: admin.describe_metadata_quorum().leader_id == 2, "the other voter leads")
            assert [voter.replica_id for voter in admin.describe_metadata_quorum().voters] == [2]
            eventually(
                lambda: 1 in [observer.replica_id for observer in admin.describe_metadata_quorum().observers],
                "the one that led follows",
            )


def test_a_controller_that_is_to_join_by_itself_becomes_a_voter(tmp_path: Path) -> None:
    """KIP-1186: `controller.quorum.auto.join.enable`."""
    with ClusterOfProcesses(tmp_path, count=1) as cluster:
        cluster.nodes[2] = second_controller(cluster, tmp_path, controller_quorum_auto_join_enable="true")
        cluster.start(2)
        with Admin(bootstrap_servers=cluster.nodes[1].address) as admin:
            eventually(
                lambda: [voter.replica_id for voter in admin.describe_metadata_quorum().voters] == [1, 2],
                "the second controller is a voter",
            )
