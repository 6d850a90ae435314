"""Apache Kafka's tools at the door of our controllers (`--bootstrap-controller`, KIP-919), and users' credentials."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from ottla.testing.free_ports import free_ports
from ottla.testing.node import RunningNode
from tests.interop.apache_kafka import MAIN_CLASSES, java

pytestmark = pytest.mark.interop

BROKER_1 = ("--entity-type", "brokers", "--entity-name", "1")
ALICE = ("--entity-type", "users", "--entity-name", "alice")


class Doors(NamedTuple):
    broker: str
    controller: str


@pytest.fixture(scope="module")
def node() -> Iterator[Doors]:
    port, controller_port = free_ports(2)
    doors = Doors(f"127.0.0.1:{port}", f"127.0.0.1:{controller_port}")
    config = {
        "listeners": f"PLAINTEXT://{doors.broker},CONTROLLER://{doors.controller}",
        "controller.quorum.voters": f"1@{doors.controller}",
    }
    with RunningNode(config=config, port=port):
        yield doors


def run(tool: str, *arguments: str) -> str:
    return java(MAIN_CLASSES[tool], *arguments).stdout


def test_the_quorum_is_described(node: Doors) -> None:
    status = run("kafka-metadata-quorum", "--bootstrap-controller", node.controller, "describe", "--status")
    assert f'[{{"id": 1, "endpoints": ["CONTROLLER://{node.controller}"]}}]' in status
    replication = run("kafka-metadata-quorum", "--bootstrap-controller", node.controller, "describe", "--replication")
    assert "Leader" in replication


def test_the_cluster_is_named_and_its_controllers_are_listed(node: Doors) -> None:
    by_controller = run("kafka-cluster", "cluster-id", "--bootstrap-controller", node.controller)
    assert by_controller == run("kafka-cluster", "cluster-id", "--bootstrap-server", node.broker)
    listed = run("kafka-cluster", "list-endpoints", "--bootstrap-controller", node.controller)
    assert listed.splitlines()[-1].split() == ["1", *node.controller.split(":"), "null", "controller"]


def test_features_are_described(node: Doors) -> None:
    described = run("kafka-features", "--bootstrap-controller", node.controller, "describe")
    assert described == run("kafka-features", "--bootstrap-server", node.broker, "describe")
    assert "metadata.version" in described


def test_settings_of_a_broker_are_changed(node: Doors) -> None:
    there = ("--bootstrap-controller", node.controller)
    run("kafka-configs", *there, "--alter", *BROKER_1, "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in run("kafka-configs", *there, "--describe", *BROKER_1)
    assert "log.cleaner.threads=2" in run("kafka-configs", "--bootstrap-server", node.broker, "--describe", *BROKER_1)


@pytest.mark.parametrize(
    ("option", "words"),
    [("--bootstrap-controller", "MismatchedEndpointType"), ("--bootstrap-server", "does not support METADATA")],
)
def test_the_wrong_door_is_told(node: Doors, option: str, words: str) -> None:
    wrong = node.broker if option == "--bootstrap-controller" else node.controller
    done = java(MAIN_CLASSES["kafka-metadata-quorum"], option, wrong, "describe", "--status", check=False)
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_credentials_of_users_are_kept_and_shown(node: Doors) -> None:
    here = ("kafka-configs", "--bootstrap-server", node.broker)
    run(*here, "--alter", *ALICE, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    run(*here, "--alter", *ALICE, "--add-config", "producer_byte_rate=1000000")
    shown = run(*here, "--describe", "--entity-type", "users")
    assert "SCRAM-SHA-256=iterations=8192" in shown
    assert "producer_byte_rate=1000000" in shown
    run(*here, "--alter", *ALICE, "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM" not in run(*here, "--describe", *ALICE)


def test_a_node_that_is_a_controller_alone_answers_too() -> None:
    (port,) = free_ports(1)
    alone = f"127.0.0.1:{port}"
    config = {
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{alone}",
        "controller.quorum.voters": f"1@{alone}",
    }
    with RunningNode(config=config, port=port):
        listed = run("kafka-cluster", "list-endpoints", "--bootstrap-controller", alone)
        assert listed.splitlines()[-1].split() == ["1", *alone.split(":"), "null", "controller"]
        status = run("kafka-metadata-quorum", "--bootstrap-controller", alone, "describe", "--status")
        assert f'[{{"id": 1, "endpoints": ["CONTROLLER://{alone}"]}}]' in status
