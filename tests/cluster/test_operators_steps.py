"""An operator's way through docs/cluster.md: three hosts from nothing, an upgrade, a new broker, a node gone for good.

The settings are those of the page, and so are the commands. Programs write and read all the time.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from ottla import Admin, NewTopic
from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.storage import main as storage
from ottla.config.properties import read_properties
from ottla.testing.free_ports import free_ports
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually
from tests.cluster.programs_of_a_cluster import PARTITIONS, Reading, Writing, assert_nothing_is_lost_or_repeated, tool

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
HOSTS = (1, 2, 3)
NEW = 4
OLD_RELEASE, NEW_RELEASE = "3.9", "4.3"
ELR = "eligible.leader.replicas.version"


def settings_of_the_page() -> dict[str, str]:
    block = PAGE.read_text().split("On each host a `server.properties`")[1].split("Then, with one cluster id")[0]
    return read_properties("\n".join(line.strip() for line in block.splitlines()[1:]).encode())


def random_uuid() -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        assert storage(["random-uuid"]) == 0
    return printed.getvalue().strip()


class Operator:
    """Follows the page, on one machine: a host is a directory and two ports."""

    def __init__(self, directory: Path) -> None:
        ports = free_ports(2 * len(HOSTS))
        self.directory = directory
        self.clients = dict(zip(HOSTS, ports, strict=False))
        self.controllers = dict(zip(HOSTS, ports[len(HOSTS) :], strict=True))
        self.cluster_id = random_uuid()
        self.directory_ids = {host: random_uuid() for host in HOSTS}

    def write_settings(self, host: int, **changes: str) -> NodeFiles:
        node = NodeFiles(host, self.directory / f"host{host}", f"127.0.0.1:{self.clients[host]}")
        settings = settings_of_the_page()
        settings["node.id"] = str(host)
        settings["log.dirs"] = str(node.data)
        settings["listeners"] = settings["listeners"].replace("host1:9092", node.address)
        settings |= {key.replace("_", "."): value for key, value in changes.items()}
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        text = text.replace("//host1:9093", f"//host{host}:9093")
        for other, port in self.controllers.items():
            text = text.replace(f"host{other}:9093", f"127.0.0.1:{port}")
        node.directory.mkdir()
        node.properties.write_text(text)
        return node

    def format(self, node: NodeFiles, *words: str) -> None:
        assert storage(["format", "-c", str(node.properties), "-t", self.cluster_id, *words]) == 0

    def three_hosts(self) -> list[NodeFiles]:
        nodes = [self.write_settings(host) for host in HOSTS]
        voters = [f"{host}@127.0.0.1:{port}:{self.directory_ids[host]}" for host, port in self.controllers.items()]
        for node in nodes:
            self.format(node, "--initial-controllers", ",".join(voters), "--release-version", OLD_RELEASE)
        return nodes

    def new_broker(self) -> NodeFiles:
        (self.clients[NEW],) = free_ports(1)
        node = self.write_settings(NEW, process_roles="broker", listeners=f"PLAINTEXT://127.0.0.1:{self.clients[NEW]}")
        self.format(node)
        return node


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(tmp_path_factory.mktemp("hosts"))


@pytest.fixture(scope="module")
def cluster(operator: Operator) -> Iterator[ClusterOfProcesses]:
    with ClusterOfProcesses(operator.directory, nodes=operator.three_hosts()) as cluster:
        yield cluster


def create_topic(cluster: ClusterOfProcesses, topic: str) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS)]).raise_first()
    eventually(lambda: cluster.are_in_sync(topic, *HOSTS), f"{topic} is in sync")


def is_replicated(capsys: pytest.CaptureFixture[str], cluster: ClusterOfProcesses) -> Callable[[], bool]:
    return lambda: not tool(capsys, "topics", cluster, "--describe", "--under-replicated-partitions").strip()


def active_controller(admin: Admin) -> int:
    return admin.describe_metadata_quorum().leader_id


def test_a_rolling_upgrade_fails_no_request(cluster: ClusterOfProcesses, capsys: pytest.CaptureFixture[str]) -> None:
    create_topic(cluster, "upgraded")
    writing, reading = Writing(cluster, "upgraded"), Reading(cluster, "upgraded")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        last = active_controller(admin)
        for host in sorted(HOSTS, key=lambda host: host == last):
            writing.wait_for_more()
            cluster.stop(host)
            writing.wait_for_more()
            cluster.start(host)
            eventually(is_replicated(capsys, cluster), "all are in sync")
        before = tool(capsys, "features", cluster, "describe")
        raised = tool(capsys, "features", cluster, "upgrade", "--release-version", NEW_RELEASE)
    assert "metadata.version was upgraded to" in raised
    assert level_of("metadata.version", before).startswith(OLD_RELEASE)
    assert (level_of(ELR, before), level_of("transaction.version", before)) == ("0", "0")

    def is_raised() -> bool:
        now = tool(capsys, "features", cluster, "describe")
        is_new = level_of("metadata.version", now).startswith(NEW_RELEASE)
        return is_new and (level_of(ELR, now), level_of("transaction.version", now)) == ("1", "2")

    eventually(is_raised, "the new levels are known")
    writing.wait_for_more()
    assert_nothing_is_lost_or_repeated(writing, reading)


def level_of(feature: str, described: str) -> str:
    (line,) = [line for line in described.splitlines() if line.split()[1] == feature]
    words = line.split()
    return words[words.index("FinalizedVersionLevel:") + 1]


def test_a_node_that_is_gone_for_good_is_replaced_by_a_new_broker(
    cluster: ClusterOfProcesses, operator: Operator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(cluster, "kept")
    writing, reading = Writing(cluster, "kept"), Reading(cluster, "kept")
    writing.wait_for_more()
    gone = 3
    left = [host for host in HOSTS if host != gone]
    cluster.kill(gone)
    del cluster.nodes[gone]  # Nobody asks there any more.
    cluster.nodes[NEW] = operator.new_broker()
    cluster.start(NEW)
    writing.wait_for_more()

    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": replicas_elsewhere(admin, gone)}))
        words = ["--reassignment-json-file", str(plan)]
        tool(capsys, "reassign-partitions", cluster, "--execute", *words)
        eventually(lambda: is_done(tool(capsys, "reassign-partitions", cluster, "--verify", *words)), "all has moved")
        removed = ["--controller-id", str(gone), "--controller-directory-id", operator.directory_ids[gone]]
        tool(capsys, "metadata-quorum", cluster, "remove-controller", *removed)
        tool(capsys, "cluster", cluster, "unregister", "--id", str(gone))

        assert [voter.replica_id for voter in admin.describe_metadata_quorum().voters] == left
        eventually(lambda: registered(admin) == [*left, NEW], "the broker is forgotten")
    eventually(lambda: cluster.are_in_sync("kept", *left, NEW), "all replicas are in sync")
    eventually(is_replicated(capsys, cluster), "the other topics' too")
    writing.wait_for_more()
    assert_nothing_is_lost_or_repeated(writing, reading)


def registered(admin: Admin) -> list[int]:
    return sorted(node.id for node in admin.describe_cluster(include_fenced_brokers=True).nodes)


def replicas_elsewhere(admin: Admin, gone: int) -> list[dict[str, object]]:
    topics = admin.describe_topics([topic.name for topic in admin.list_topics(include_internal=True)])
    return [
        {
            "topic": name,
            "partition": partition.partition,
            "replicas": [NEW if replica == gone else replica for replica in partition.replicas],
        }
        for name, topic in topics.items()
        for partition in topic.partitions
    ]


def is_done(verified: str) -> bool:
    return "is still in progress" not in verified
