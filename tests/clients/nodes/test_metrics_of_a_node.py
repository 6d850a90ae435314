"""The metrics listener of a real node: TLS, logins and tokens, and what probes hear."""

import re
import ssl
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ottla.testing.free_ports import free_ports
from ottla.testing.node import RunningNode
from tests.clients.eventually import eventually
from tests.unit.security.tls import trial_certificates as trial

WAIT_S = 30


def get(url: str, context: ssl.SSLContext | None = None, **headers: str) -> tuple[int, str]:
    try:
        with urlopen(Request(url, headers=headers), timeout=WAIT_S, context=context) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()


def url_of(node: RunningNode) -> str:
    return re.search(r"^  metrics  (\S+)/metrics$", node.log.read_text(), re.MULTILINE)[1]


def test_metrics_are_served_over_tls_to_who_may_read_them(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(trial.authority().issued.certificate)
    (tmp_path / "node.pem").write_bytes(trial.node().both)
    config = {
        "ottla.metrics.listener": "https://127.0.0.1:0",
        "ottla.metrics.basic.auth": "prometheus:secret",
        "ottla.metrics.bearer.tokens": "a-token",
        "listener.name.metrics.ssl.keystore.type": "PEM",
        "listener.name.metrics.ssl.keystore.location": tmp_path / "node.pem",
    }
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    login = b64encode(b"prometheus:secret").decode()
    with RunningNode(config=config) as node:
        url = url_of(node)
        assert url.startswith("https://")
        assert get(f"{url}/metrics", context)[0] == 401
        for shown in (f"Basic {login}", "Bearer a-token"):
            status, page = get(f"{url}/metrics", context, Authorization=shown)
            assert status == 200
            assert "kafka_server_replicamanager_partitioncount 0\n" in page
        assert get(f"{url}/metrics", context, Authorization="Bearer another")[0] == 401
        assert get(f"{url}/readyz", context) == (200, "ready\n")
        status, said = get(f"{url}/healthz", context)
        assert (status, said.splitlines()[0]) == (200, "the loop turns")
        eventually(lambda: "the disk answered within" in get(f"{url}/healthz", context)[1], True)


def test_a_broker_without_its_controller_is_alive_and_says_what_it_waits_for(tmp_path: Path) -> None:
    metrics, controller = free_ports(2)
    properties = {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": str(tmp_path / "data"),
    }
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    run = [sys.executable, "-m", "ottla.cli.main"]
    subprocess.run([*run, "storage", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(file)], check=True, timeout=60)
    words = [*run, "start", "--config", str(file), "--metrics", f"127.0.0.1:{metrics}"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{metrics}"
        waiting = (503, "not ready: waiting for the metadata quorum\n")
        eventually(lambda: answers(f"{url}/readyz"), waiting)
        assert get(f"{url}/healthz")[0] == 200
        assert "process_cpu_seconds_total" in get(f"{url}/metrics")[1]
    finally:
        process.terminate()
        process.wait(WAIT_S)


def answers(url: str) -> tuple[int, str] | None:
    try:
        return get(url)
    except OSError:
        return None


@pytest.mark.parametrize("text", ["nowhere", "ftp://127.0.0.1:1"])
def test_an_address_that_is_none_is_told(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ottla.cli.start import main

    try:
        status = main(["--ephemeral", "--metrics", text])
    except SystemExit as ended:
        status = ended.code
    assert status in (1, 2)
    assert "HOST:PORT" in capsys.readouterr().err
