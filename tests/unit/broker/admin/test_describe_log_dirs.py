"""DescribeLogDirs and AlterReplicaLogDirs."""

import errno

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from tests.unit.broker.brokers import TestNode, batch


@pytest.fixture
def node() -> TestNode:
    node = TestNode(log_dirs=("/one", "/two"))
    node.create_topic("orders", partitions=2)
    node.create_topic("clicks")
    for index in range(2):
        node.produce(batch(b"a"), index=index)
    return node


def described(node: TestNode, topics=None, version: int = 5):
    return node.send(DescribeLogDirsRequest(topics=topics), version).results


def contents(results) -> dict[str, set[tuple[str, int]]]:
    return {
        result.log_dir: {
            (topic.name, partition.partition_index) for topic in result.topics for partition in topic.partitions
        }
        for result in results
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_directory_with_its_partitions(node, version):
    found = contents(described(node, version=version))
    assert set(found) == {"/one", "/two"}
    assert found["/one"] | found["/two"] == {("orders", 0), ("orders", 1), ("clicks", 0)}


def test_sizes_and_lag(node):
    sizes = {
        (topic.name, partition.partition_index): (
            partition.partition_size,
            partition.offset_lag,
            partition.is_future_key,
        )
        for result in described(node)
        for topic in result.topics
        for partition in topic.partitions
    }
    assert sizes["orders", 0] == (len(batch(b"a")), 0, False)
    assert sizes["clicks", 0] == (0, 0, False)


def test_only_the_partitions_that_are_asked_for(node):
    asked = [DescribeLogDirsRequest.DescribableLogDirTopic(topic="orders", partitions=(1, 9))]
    found = contents(described(node, asked))
    assert found["/one"] | found["/two"] == {("orders", 1)}


def test_a_directory_that_has_failed(node):
    node.broker.partitions.on_disk_error("/one", OSError(errno.EIO, "gone"))
    results = {result.log_dir: result.error_code for result in described(node)}
    assert results == {"/one": ErrorCode.KAFKA_STORAGE_ERROR, "/two": 0}


def test_the_space_of_a_directory_is_told_where_the_disk_tells_it(node, monkeypatch):
    assert {(one.total_bytes, one.usable_bytes) for one in described(node)} == {node.disk.space("/one")}

    def fails(path):
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(node.disk, "space", fails)
    assert {(one.total_bytes, one.usable_bytes) for one in described(node)} == {(-1, -1)}


# AlterReplicaLogDirs


def move(node: TestNode, topic: str, path: str, index: int = 0) -> int:
    topics = [AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic, partitions=(index,))]
    dirs = [AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=topics)]
    (result,) = node.send(AlterReplicaLogDirsRequest(dirs=dirs), 2).results
    assert result.topic_name == topic
    return result.partitions[0].error_code


def test_a_replica_that_is_where_it_is_to_go_has_arrived(node):
    assert move(node, "orders", node.partition().directory) == ErrorCode.NONE


def test_directories_and_partitions_that_are_not_here(node):
    node.create_topic("theirs", replicas=(2,), leader=2)
    assert move(node, "orders", "/three") == ErrorCode.LOG_DIR_NOT_FOUND
    assert move(node, "theirs", "/one") == ErrorCode.REPLICA_NOT_AVAILABLE
    assert move(node, "nobody", "/one") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(node, "x" * 230, "/one") == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_cordoned_directory_takes_no_replicas():
    node = TestNode(log_dirs=("/one", "/two"), cordoned_log_dirs="/two")
    node.create_topic("orders")
    assert move(node, "orders", "/two") == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_target_that_has_failed(node):
    node.broker.partitions.on_disk_error("/one", OSError(errno.EIO, "gone"))
    assert move(node, "orders", "/one") == ErrorCode.KAFKA_STORAGE_ERROR
