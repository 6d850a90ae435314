"""Nodes that speak TLS to each other and show their certificates, brokers and controllers alike."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.processes_of_a_cluster import WAIT_S, ClusterOfProcesses, eventually
from tests.unit.security.tls import trial_certificates as trial


def settings(directory: Path) -> dict[str, str]:
    """Every listener has TLS, and requires a certificate."""
    (directory / "ca.pem").write_bytes(trial.authority().issued.certificate)
    (directory / "node.pem").write_bytes(trial.node().both)
    (directory / "alice.pem").write_bytes(trial.client().certificate)
    (directory / "alice.key").write_bytes(trial.client().key)
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "ssl.client.auth": "required",
    }


def client(cluster: ClusterOfProcesses, directory: Path, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(directory / "ca.pem"),
        "ssl.certificate.location": str(directory / "alice.pem"),
        "ssl.key.location": str(directory / "alice.key"),
        "log_level": 0,
        "reconnect.backoff.max.ms": 200,
        **more,
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterOfProcesses]:
    with ClusterOfProcesses(tmp_path, settings=settings(tmp_path)) as running:
        yield running


def test_brokers_replicate_and_ask_the_controllers_over_tls(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    admin = AdminClient(client(cluster, tmp_path))
    for created in admin.create_topics([NewTopic("t", 3, 3)]).values():
        created.result(timeout=WAIT_S)

    def is_replicated() -> bool:
        partitions = admin.list_topics("t", timeout=WAIT_S).topics["t"].partitions.values()
        return len(partitions) == 3 and all(len(partition.isrs) == 3 for partition in partitions)

    eventually(is_replicated, "all replicas are in sync")
    producer = Producer(client(cluster, tmp_path, acks="all"))
    for number in range(300):
        producer.produce("t", bytes(10_000), str(number).encode())
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer(client(cluster, tmp_path, **{"group.id": "g", "auto.offset.reset": "earliest"}))
    consumer.subscribe(["t"])
    keys: set[bytes] = set()

    def has_all() -> bool:
        keys.update(record.key() for record in consumer.consume(300, 0.1) if record.error() is None)
        return len(keys) == 300

    eventually(has_all, "all records have come")
    consumer.close()


def test_no_listener_of_theirs_takes_plain_text(cluster: ClusterOfProcesses) -> None:
    host, _, port = cluster.bootstrap.split(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), WAIT_S) as sock:
        sock.sendall(b"\x00\x00\x00\x23\x00\x12\x00\x04" + bytes(31))
        assert sock.recv(100)[:2] in (b"", b"\x15\x03"), "an alert of TLS at most"
