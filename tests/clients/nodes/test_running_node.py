"""The runner that these tests and users' tests stand on."""

import socket
from pathlib import Path

import pytest

from ottla.testing.node import NodeError, RunningNode


def answers(node: RunningNode) -> bool:
    try:
        socket.create_connection(node.address, 5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_node_comes_back_to_the_same_address_and_data(tmp_path: Path) -> None:
    with RunningNode(tmp_path) as node:
        bootstrap, first_pid = node.bootstrap, node.pid
        identity = (node.data / "meta.properties").read_text()
        node.stop()
        assert (node.data / ".kafka_cleanshutdown").exists()
        assert not answers(node)
        node.start()
        assert node.bootstrap == bootstrap
        assert node.pid != first_pid
        assert (node.data / "meta.properties").read_text() == identity
        node.kill()
        assert not (node.data / ".kafka_cleanshutdown").exists()
        assert not node.is_running
    assert tmp_path.exists(), "a directory that was given is left alone"


def test_a_directory_of_its_own_goes_with_the_node() -> None:
    with RunningNode() as node:
        assert node.data.exists()
        assert node.rss_bytes() > 1 << 20
    assert not node.directory.exists()
    assert not answers(node)


def test_a_node_that_cannot_start_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NodeError, match=rf"did not start\n(.*\n)*.*{port}"):
            RunningNode(port=port).__enter__()
    with pytest.raises(NodeError, match=r"num\.partitions"):
        RunningNode(config={"num.partitions": "many"}).__enter__()
