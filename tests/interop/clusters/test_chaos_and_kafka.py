"""The checker of `make chaos` passes Apache Kafka, and fails nodes of ours that are broken on purpose."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.interop

CHAOS = Path(__file__).resolve().parents[2] / "chaos"
SECONDS = 20
TIMEOUT_S = 400


def chaos(history: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHAOS), "--seconds", str(SECONDS), "--history", str(history), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)


def test_apache_kafka_passes(tmp_path: Path) -> None:
    done = chaos(tmp_path / "history", "--target", "apache-kafka", "--seed", "2")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("canary", "anomaly"), [("ack-before-replication", "lost write"), ("show-aborted", "aborted read")]
)
def test_broken_nodes_fail(tmp_path: Path, canary: str, anomaly: str) -> None:
    done = chaos(tmp_path / "history", "--canary", canary, "--seed", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(anomaly)]
    assert "FOUND" in line, done.stdout
