"""Nodes that do not belong where they are started: each names the setting that is wrong, and leaves its disk alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.local_cluster.node_process import end_of, start_process
from ottla.cli.storage import main as storage
from ottla.config.properties import read_properties
from ottla.testing.free_ports import free_ports
from tests.cluster.processes_of_a_cluster import WAIT_S, ClusterOfProcesses, eventually

ANOTHER_CLUSTER = "YW5vdGhlci1jbHVzdGVyIQ"
ENDS_SOON = {"initial.broker.registration.timeout.ms": "1000", "controller.quorum.fetch.timeout.ms": "300"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfProcesses]:
    with ClusterOfProcesses(tmp_path_factory.mktemp("cluster"), count=1) as cluster:
        yield cluster


class Stranger:
    """A broker beside the cluster, with some settings of its own, formatted unless `cluster_id` is None."""

    def __init__(
        self, cluster: ClusterOfProcesses, directory: Path, settings: dict[str, str], cluster_id: str | None
    ) -> None:
        client_port, controller_port = free_ports(2)
        own = {
            "process.roles": "broker",
            "node.id": "7",
            "listeners": f"PLAINTEXT://127.0.0.1:{client_port}",
            "log.dirs": str(directory / "data"),
        } | ENDS_SOON
        if "controller" in settings.get("process.roles", ""):
            own["listeners"] += f",CONTROLLER://127.0.0.1:{controller_port}"
        common = read_properties(cluster.nodes[1].properties.read_bytes())
        self.files = NodeFiles(7, directory, f"127.0.0.1:{client_port}")
        self.settings = {**common, **own, **settings}
        self.write_settings()
        self.files.data.mkdir()
        if cluster_id is not None:
            voters = ["--no-initial-controllers"] if "controller" in self.settings["process.roles"] else []
            words = ["format", "-t", cluster_id, "-c", str(self.files.properties), *voters]
            assert storage(words) == 0

    def write_settings(self, **changes: str) -> None:
        self.settings |= {key.replace("_", "."): value for key, value in changes.items()}
        lines = (f"{key}={value}\n" for key, value in self.settings.items() if value)
        self.files.properties.write_text("".join(lines))

    def contents(self) -> dict[str, bytes]:
        """What is in the files that a start would use; a lock is nothing."""
        found = (path for path in sorted(self.files.data.rglob("*")) if path.is_file() and path.name != ".lock")
        return {str(path): path.read_bytes() for path in found}

    def refused(self) -> str:
        """Starts it, and gives back what it printed before it ended by itself; nothing is written to its files."""
        before = self.contents()
        process = start_process(self.files)
        try:
            status = process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait()
        after = self.contents()
        printed = end_of(self.files.log)
        assert status != 0, printed
        assert {path: after.get(path) for path in before} == before
        return printed


def test_a_node_of_another_cluster(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    printed = Stranger(cluster, tmp_path, {}, ANOTHER_CLUSTER).refused()
    assert f"is of another cluster than this node's log.dirs, whose cluster.id is {ANOTHER_CLUSTER}" in printed
    assert "controller.quorum.bootstrap.servers" in printed


def test_a_controller_of_another_cluster_among_the_voters(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    """It asks for votes, rather than for who leads."""
    (server,) = read_properties(cluster.nodes[1].properties.read_bytes())["controller.quorum.bootstrap.servers"].split()
    stranger = Stranger(cluster, tmp_path, {"process.roles": "broker,controller"}, None)
    own = stranger.settings["listeners"].rpartition("://")[2]
    stranger.write_settings(controller_quorum_voters=f"1@{server},7@{own}", controller_quorum_bootstrap_servers="")
    assert storage(["format", "-t", ANOTHER_CLUSTER, "-c", str(stranger.files.properties)]) == 0
    printed = stranger.refused()
    assert f"is of another cluster than this node's log.dirs, whose cluster.id is {ANOTHER_CLUSTER}" in printed
    assert "controller.quorum.voters" in printed


def test_a_node_id_that_is_taken(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    printed = Stranger(cluster, tmp_path, {"node.id": "1"}, cluster.cluster_id).refused()
    assert "another broker with node.id=1 is up" in printed
    assert "DUPLICATE_BROKER_REGISTRATION" in printed


def test_a_directory_that_is_not_formatted(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    stranger = Stranger(cluster, tmp_path, {}, None)
    printed = stranger.refused()
    assert f"{stranger.files.data} is not formatted: it is in log.dirs and has no meta.properties" in printed
    assert stranger.contents() == {}


def test_a_directory_of_another_node(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    stranger = Stranger(cluster, tmp_path, {}, cluster.cluster_id)
    stranger.write_settings(node_id="8")
    assert "is of node 7, and node.id says that this is node 8" in stranger.refused()


def test_a_copy_of_a_directory(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    """Of another broker's, with only the node's id changed."""
    stranger = Stranger(cluster, tmp_path, {}, cluster.cluster_id)
    copied = (cluster.nodes[1].data / "meta.properties").read_text().replace("node.id=1", "node.id=7")
    (stranger.files.data / "meta.properties").write_text(copied)
    assert "another broker has a directory.id of this node's log.dirs" in stranger.refused()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"process.roles": "broker,king"}, "process.roles=broker,king: it must be "),
        (
            {"controller.quorum.voters": "7@127.0.0.1:1", "controller.quorum.bootstrap.servers": ""},
            "process.roles=broker: it must be with controller: node 7 is in controller.quorum.voters",
        ),
        (
            {
                "process.roles": "controller",
                "listeners": "CONTROLLER://127.0.0.1:1",
                "controller.quorum.voters": "8@127.0.0.1:1",
            },
            "node.id=7: it must be among controller.quorum.voters=8@127.0.0.1:1, as a controller",
        ),
    ],
    ids=["unknown", "a broker that is a voter", "a controller that is none"],
)
def test_roles_that_cannot_be(
    cluster: ClusterOfProcesses, tmp_path: Path, settings: dict[str, str], complaint: str
) -> None:
    stranger = Stranger(cluster, tmp_path, {}, cluster.cluster_id)
    stranger.settings |= settings
    stranger.write_settings()
    assert complaint in stranger.refused()


def test_a_voter_that_is_another_node_than_the_setting_says(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    """The node at that address is voter 1. The stranger goes on asking: the setting may be mended at the other end."""
    (server,) = read_properties(cluster.nodes[1].properties.read_bytes())["controller.quorum.bootstrap.servers"].split()
    stranger = Stranger(cluster, tmp_path, {"process.roles": "broker,controller"}, None)
    own = stranger.settings["listeners"].rpartition("://")[2]
    stranger.write_settings(controller_quorum_voters=f"5@{server},7@{own}", controller_quorum_bootstrap_servers="")
    assert storage(["format", "-t", cluster.cluster_id, "-c", str(stranger.files.properties)]) == 0
    process = start_process(stranger.files)
    try:
        complaint = f"the controller at {server} is not voter 5, or has lost its directory (INVALID_VOTER_KEY); see"
        eventually(lambda: complaint in end_of(stranger.files.log), "the wrong id is told of")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
