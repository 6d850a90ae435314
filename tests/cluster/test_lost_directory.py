"""A broker with two log directories, of which one fails (KIP-858): the steps are those of docs/cluster.md.

Others lead what was in the directory, the broker goes on with the other one, over a restart too, and has everything
again when there is a new disk.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, NewTopic
from ottla.cli.local_cluster.cluster_making import make_cores
from ottla.cli.storage import main as storage
from ottla.client.errors import KafkaStorageError
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, add_settings, described, eventually
from tests.cluster.programs_of_a_cluster import PARTITIONS, Reading, Writing, assert_nothing_is_lost_or_repeated, tool

BROKER = 1
TOPIC = "orders"
SETTINGS = {
    "replica.high.watermark.checkpoint.interval.ms": "200",  # How soon a disk that is gone is noticed.
    "offsets.topic.replication.factor": "3",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfProcesses]:
    directory = tmp_path_factory.mktemp("cluster")
    cluster = ClusterOfProcesses(directory, settings=SETTINGS, nodes=make_cores(directory, 3, port=0))
    use_directories(cluster, cluster.nodes[BROKER].data, second(cluster))
    format_new_disk(cluster)
    with cluster:
        yield cluster


def second(cluster: ClusterOfProcesses) -> Path:
    return cluster.nodes[BROKER].directory / "second"


def use_directories(cluster: ClusterOfProcesses, *directories: Path) -> None:
    add_settings(cluster.nodes[BROKER], {"log.dirs": ",".join(map(str, directories))})


def format_new_disk(cluster: ClusterOfProcesses) -> None:
    words = ["format", "--ignore-formatted", "-t", cluster.cluster_id, "-c", str(cluster.nodes[BROKER].properties)]
    assert storage(words) == 0


def in_second(cluster: ClusterOfProcesses) -> set[int]:
    """The partitions that the broker has there."""
    return {int(path.name.rpartition("-")[2]) for path in second(cluster).glob(f"{TOPIC}-*")}


def isrs(admin: Admin) -> dict[int, list[int]]:
    return {one.partition: sorted(one.in_sync_replicas) for one in described(admin, TOPIC).partitions}


def leaders(admin: Admin) -> dict[int, int | None]:
    return {one.partition: one.leader for one in described(admin, TOPIC).partitions}


def test_a_broker_goes_on_without_a_directory_and_has_all_again_on_a_new_disk(
    cluster: ClusterOfProcesses, capsys: pytest.CaptureFixture[str]
) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).raise_first()
        eventually(lambda: cluster.are_in_sync(TOPIC, 1, 2, 3), "all are in sync")
        writing, reading = Writing(cluster, TOPIC), Reading(cluster, TOPIC)
        writing.wait_for_more()

        lost = in_second(cluster)
        assert 0 < len(lost) < PARTITIONS, "the replicas are spread over both directories"
        second(cluster).rename(second(cluster).with_name("gone"))
        without = {index: [2, 3] if index in lost else [1, 2, 3] for index in range(PARTITIONS)}
        eventually(lambda: isrs(admin) == without, "the replicas of the directory are out of sync, and no others")
        eventually(lambda: all(leaders(admin)[index] in (2, 3) for index in lost), "others lead them")
        writing.wait_for_more()
        assert_directory_is_offline(admin, cluster)
        told = tool(capsys, "log-dirs", cluster, "--describe", "--broker-list", "1")
        assert "KafkaStorageException" in told

        cluster.stop(BROKER)
        second(cluster).touch()  # No directory: as a disk that is not mounted, or answers with errors.
        cluster.start(BROKER)
        eventually(lambda: isrs(admin) == without, "the broker is back, with the directory that it has")
        assert_directory_is_offline(admin, cluster)
        writing.wait_for_more()

        cluster.stop(BROKER)
        second(cluster).unlink()
        format_new_disk(cluster)
        cluster.start(BROKER)
        eventually(lambda: cluster.are_in_sync(TOPIC, 1, 2, 3), "what was lost is fetched again")
        directories = admin.describe_log_dirs([BROKER])[BROKER]
        assert [directory.error for directory in directories.values()] == [None, None]
        assert in_second(cluster)

        cluster.stop(BROKER)
        second(cluster).rename(second(cluster).with_name("gone too"))
        use_directories(cluster, cluster.nodes[BROKER].data)
        cluster.start(BROKER)
        eventually(lambda: cluster.are_in_sync(TOPIC, 1, 2, 3), "what was lost is fetched into the one that is left")

        for node_id in (2, 3):  # The broker may lead what it has fetched: the controller knows where it is.
            cluster.stop(node_id)
        eventually(lambda: cluster.are_in_sync(TOPIC, BROKER), "the broker is the only one")
        assert set(leaders(admin).values()) == {BROKER}
        writing.wait_for_more()
        assert_nothing_is_lost_or_repeated(writing, reading)


def assert_directory_is_offline(admin: Admin, cluster: ClusterOfProcesses) -> None:
    directories = admin.describe_log_dirs([BROKER])[BROKER]
    assert isinstance(directories[str(second(cluster))].error, KafkaStorageError)
    assert directories[str(cluster.nodes[BROKER].data)].error is None
