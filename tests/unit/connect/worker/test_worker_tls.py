"""A worker whose REST interface has TLS, with and without certificates of clients; changes pass over it too."""

import ssl
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ottla.cli.connect.rest_client import RestClient, WorkerRefused
from ottla.security.tls.issuing import Authority
from ottla.testing.node import RunningNode
from tests.unit.connect.worker.worker_in_a_thread import FILE_SOURCE, WorkerInAThread, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    with RunningNode(config={"group.initial.rebalance.delay.ms": 0}) as node:
        yield node


def healthy(client: RestClient) -> bool:
    try:
        return bool(client.ask("GET", "/health")["status"] == "healthy")
    except WorkerRefused:
        return False


def test_two_workers_behind_tls_pass_changes_on(node: RunningNode, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    authority = Authority("workers of tests", datetime.now(UTC))
    server, person = (authority.issue(name, ("localhost", "127.0.0.1")) for name in ("server", "person"))
    trusted = authority.issued.certificate.decode()
    properties = {
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.key": server.key.decode(),
        "listeners.https.ssl.keystore.certificate.chain": server.certificate.decode(),
        "listeners.https.ssl.truststore.type": "PEM",
        "listeners.https.ssl.truststore.certificates": trusted,
    }
    ca = tmp_path / "ca.pem"
    ca.write_text(trusted)
    with WorkerInAThread(node.bootstrap, "tls", properties=properties) as first:
        one = RestClient(first.url, ca=str(ca))
        wait_for(lambda: healthy(one), "it leads")
        with pytest.raises(WorkerRefused, match="certificate verify failed"):
            RestClient(first.url).ask("GET", "/")
        with WorkerInAThread(node.bootstrap, "tls", properties=properties) as second:
            two = RestClient(second.url, ca=str(ca))
            wait_for(lambda: healthy(two), "it knows the leader")
            config = {"connector.class": FILE_SOURCE, "file": "/in", "topic": "t"}
            two.ask("PUT", "/connectors/x/config", config)
            wait_for(lambda: first.engine.running, "the first runs it")

    required = {**properties, "listeners.https.ssl.client.auth": "required"}
    (tmp_path / "person.pem").write_bytes(person.key + person.certificate)
    with WorkerInAThread(node.bootstrap, "tls-required", properties=required) as worker:
        with pytest.raises(WorkerRefused):
            RestClient(worker.url, ca=str(ca)).ask("GET", "/")
        context = ssl.create_default_context(cafile=ca)
        context.load_cert_chain(tmp_path / "person.pem")
        with urllib.request.urlopen(f"{worker.url}/", context=context, timeout=10) as reply:
            assert reply.status == 200
