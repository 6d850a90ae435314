"""Two controllers with one node.id: the second to start ends with a line that names the setting.

What it has on its disk stays as it is, and the first goes on. Apache Kafka runs both, unless the first leads.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.local_cluster.node_process import end_of, running_pid, start_process
from ottla.cli.sessions import open_admin
from ottla.cli.storage import main as storage
from ottla.testing.free_ports import free_ports
from tests.cluster.processes_of_a_cluster import WAIT_S, ClusterOfProcesses, eventually

CLUSTER_ID = "dGhlLW9uZS1jbHVzdGVyIQ"
HOST = "127.0.0.1"


def files_of(directory: Path, node_id: int, port: int, **quorum: str) -> NodeFiles:
    """A controller alone, with its settings. `quorum` are those of `controller.quorum`, by their last word."""
    directory.mkdir()
    node = NodeFiles(node_id, directory, f"{HOST}:{port}", ("controller",))
    settings = {
        "process.roles": "controller",
        "node.id": node_id,
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": node.data,
    } | {f"controller.quorum.{name.replace('_', '.')}": value for name, value in quorum.items()}
    node.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return node


def formatted(node: NodeFiles, *options: str) -> NodeFiles:
    assert storage(["format", "-t", CLUSTER_ID, "-c", str(node.properties), *options]) == 0
    return node


def contents(node: NodeFiles) -> dict[str, bytes]:
    """But for the lock, and for what an opened log makes again: indexes, and the state of producers."""
    found = (path for path in sorted(node.data.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path): path.read_bytes() for path in found if not path.name.endswith(("index", ".snapshot"))}


def refused(node: NodeFiles) -> str:
    """Starts it, and gives back what it printed before it ended by itself."""
    before = contents(node)
    process = start_process(node)
    try:
        status = process.wait(WAIT_S)
    finally:
        process.kill()
        process.wait()
    after = contents(node)
    assert status == 1, end_of(node.log)
    assert {path: after.get(path) for path in before} == before
    return end_of(node.log)


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfProcesses]:
    """Two controllers whose voters are a setting."""
    directory, ports = tmp_path_factory.mktemp("fixed"), free_ports(2)
    voters = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in enumerate(ports, 1))
    nodes = [
        formatted(files_of(directory / str(node_id), node_id, port, voters=voters))
        for node_id, port in enumerate(ports, 1)
    ]
    with ClusterOfProcesses(directory, nodes=nodes) as cluster:
        yield cluster


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[ClusterOfProcesses]:
    """One controller, of a quorum whose voters are data."""
    (port,) = free_ports(1)
    node = files_of(tmp_path / "first", 1, port, bootstrap_servers=f"{HOST}:{port}")
    with ClusterOfProcesses(tmp_path, nodes=[formatted(node, "--standalone")]) as cluster:
        yield cluster


def voters_of(cluster: ClusterOfProcesses) -> str:
    return ",".join(f"{node_id}@{node.address}" for node_id, node in cluster.nodes.items())


def test_copied_settings_at_another_port(fixed: ClusterOfProcesses, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    second = formatted(files_of(tmp_path / "second", 2, port, voters=voters_of(fixed)))
    place = f"{fixed.nodes[2].address}, which is its address in controller.quorum.voters"
    assert f"another controller with node.id=2 is up at {place}" in refused(second)
    assert running_pid(fixed.nodes[2]) is not None


def test_voters_of_its_own_that_name_it(fixed: ClusterOfProcesses, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    voters = f"1@{fixed.nodes[1].address},2@{HOST}:{port}"
    second = formatted(files_of(tmp_path / "second", 2, port, voters=voters))

    def is_registered() -> bool:
        with open_admin(None, controllers=fixed.nodes[1].address) as admin:
            return 2 in [node.id for node in admin.describe_cluster().nodes]

    eventually(is_registered, "the first has registered")
    place = f"{fixed.nodes[2].address}, which is where that controller is registered"
    assert f"another controller with node.id=2 is up at {place}" in refused(second)


def test_the_id_of_a_voter_with_another_directory(alone: ClusterOfProcesses, tmp_path: Path) -> None:
    """Apache Kafka has it follow the quorum, and with `auto.join` take the vote from the other that is up."""
    (port,) = free_ports(1)
    quorum = {"bootstrap_servers": alone.nodes[1].address, "auto_join_enable": "true"}
    second = formatted(files_of(tmp_path / "second", 1, port, **quorum), "--no-initial-controllers")
    printed = refused(second)
    assert f"another controller with node.id=1 is up at {alone.nodes[1].address}, which is a voter's address" in printed
    assert "directory.id=" in printed


def test_a_copied_directory(alone: ClusterOfProcesses, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    second = files_of(tmp_path / "second", 1, port, bootstrap_servers=alone.nodes[1].address)
    shutil.copytree(alone.nodes[1].data, second.data, ignore=shutil.ignore_patterns(".lock"))
    before = contents(second)
    assert "another controller with node.id=1 is up at" in refused(second)
    assert contents(second) == before


def test_a_controller_that_listens_elsewhere_now_starts(alone: ClusterOfProcesses) -> None:
    (port,) = free_ports(1)
    node = alone.nodes[1]
    alone.stop(1)
    node.properties.write_text(node.properties.read_text().replace(node.address, f"{HOST}:{port}"))
    alone.start(1)


def test_a_controller_that_is_known_by_another_name_starts(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    node = formatted(files_of(tmp_path / "one", 1, port, voters=f"1@localhost:{port}"))
    with ClusterOfProcesses(tmp_path, nodes=[node]):
        pass
