"""`kafka-server-stop` signals the nodes that are meant, and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ottla.cli.node_processes import NodeProcess, Process, as_node, node_processes
from ottla.cli.server_stop import main

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

NODES = [
    NodeProcess(100, ("a.properties",), 1, ("broker", "controller")),
    NodeProcess(101, ("b.properties",), 2, ("broker",)),
    NodeProcess(102, ("c.properties",), 3, ("controller",)),
    NodeProcess(103, ("gone.properties",), None, ()),
]
WAIT_S = 30


def stopped(*words: str) -> list[tuple[int, int]]:
    sent: list[tuple[int, int]] = []
    assert main(list(words), processes=lambda: NODES, kill=lambda pid, number: sent.append((pid, number))) == 0
    return sent


def test_all_nodes_are_asked_to_stop() -> None:
    assert stopped() == [(pid, signal.SIGTERM) for pid in (100, 101, 102, 103)]


def test_a_role_is_that_of_combined_nodes_too() -> None:
    assert [pid for pid, _ in stopped("--process-role=controller")] == [100, 102]
    assert [pid for pid, _ in stopped("--process-role", "broker")] == [100, 101]


def test_an_id_goes_before_a_role() -> None:
    assert [pid for pid, _ in stopped("--node-id=2", "--process-role=controller")] == [101]


def test_a_data_directory_is_looked_for_from_where_the_node_was_started(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "two")
    (tmp_path / "node.properties").write_text(f"node.id=5\nlog.dirs={tmp_path}/three,{tmp_path}/four\n")
    started = [
        ["python3", "-m", "ottla.cli.main", "start", "--data", "two", "--port", "0"],
        ["python3", "-m", "ottla.cli.main", "start"],
        ["python3", "/opt/bin/kafka-server-start", "node.properties", "--log-file", "two"],
    ]
    nodes = [as_node(Process(200 + number, words, str(tmp_path))) for number, words in enumerate(started)]

    def stopped_by(data: str) -> list[int]:
        sent: list[int] = []
        found = [node for node in nodes if node is not None]
        main(["--data", data], processes=lambda: found, kill=lambda pid, _: sent.append(pid))
        return sent

    assert stopped_by(f"{tmp_path}/two") == stopped_by(f"{tmp_path}/link") == [200]
    assert stopped_by(f"{tmp_path}/ottla-data") == [201]
    assert stopped_by(f"{tmp_path}/four") == [202]
    assert stopped_by(str(tmp_path)) == []


def test_the_signal_may_be_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNAL", "KILL")
    assert stopped("--node-id=1") == [(100, signal.SIGKILL)]


def test_an_unknown_signal_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SIGNAL", "TREM")
    assert main([], processes=lambda: NODES, kill=lambda *_: pytest.fail("no signal is to be sent")) == 1
    assert "there is no signal TREM" in capsys.readouterr().err


def test_without_a_node_there_is_nothing_to_stop(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--node-id=77"], processes=lambda: NODES) == 1
    assert capsys.readouterr().out == "No kafka server to stop\n"


def test_a_node_that_has_ended_meanwhile_is_no_error() -> None:
    def kill(pid: int, number: int) -> None:
        raise ProcessLookupError

    assert main([], processes=lambda: NODES, kill=kill) == 0


def test_a_dry_run_names_the_nodes_and_stops_none(capsys: pytest.CaptureFixture[str]) -> None:
    none = lambda *_: pytest.fail("no signal is to be sent")  # noqa: E731
    assert main(["--dry-run", "--node-id=1"], processes=lambda: NODES, kill=none) == 0
    assert capsys.readouterr().out == "process 100: node 1, broker,controller: a.properties\n"


@pytest.mark.parametrize(
    "words",
    [
        ["python3.11", "-m", "ottla.cli.main", "start", "--config", "node.properties"],
        ["/usr/bin/python3", "-X", "dev", "/opt/bin/ottla", "start", "--config=node.properties"],
        ["python", "/opt/bin/kafka-server-start", "-daemon", "node.properties"],
        ["python", "/opt/bin/kafka-server-start.sh", "other.properties", "--override", "node.id=7"],
    ],
)
def test_a_node_is_known_by_its_command_line(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "node.properties").write_text("node.id=7\nprocess.roles=broker, controller\n")
    (tmp_path / "other.properties").write_text("node.id=8\nprocess.roles=broker, controller\n")
    node = as_node(Process(5, words, str(tmp_path)))
    assert node is not None
    assert (node.node_id, node.roles) == (7, ("broker", "controller"))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["vim", "kafka-server-start"],
        ["grep", "ottla", "start"],
        ["python3", "-m", "pytest", "ottla", "start"],
        ["python3", "/opt/bin/ottla", "storage", "start"],
        ["python3", "my-ottla", "start"],
        ["bash", "-c", "ottla start"],
        ["python3", "/opt/bin/ottla", "start", "--cores=2"],
        ["java", "kafka.Kafka", "server.properties"],
    ],
)
def test_other_processes_are_no_nodes(words: list[str]) -> None:
    assert as_node(Process(5, words, "/")) is None


def test_a_node_without_a_file_is_a_cluster_of_one() -> None:
    node = as_node(Process(5, ["python", "/bin/ottla", "start", "--port", "0", "--data", "node.id=5"], "/"))
    assert node is not None
    assert (node.node_id, node.roles) == (1, ("broker", "controller"))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="working directories are told by /proc")
def test_a_running_node_stops_in_good_order(tmp_path: Path) -> None:
    node_id = os.getpid() + 1_000_000  # no other node of this machine has it
    command = [sys.executable, "-m", "ottla.cli.main", "start", "--port", "0", "--set", f"node.id={node_id}"]
    voters = f"controller.quorum.voters={node_id}@127.0.0.1:9093"
    node = subprocess.Popen([*command, "--set", voters, "--data", str(tmp_path / "data")], stdout=subprocess.PIPE)
    try:
        assert node.stdout is not None
        assert b"is ready" in node.stdout.readline()
        assert [found.pid for found in node_processes() if found.node_id == node_id] == [node.pid]
        assert main([f"--node-id={node_id}"]) == 0
        assert node.wait(WAIT_S) == 0
    finally:
        if node.poll() is None:
            node.kill()
        node.communicate()
    deadline = time.monotonic() + WAIT_S
    while any(found.node_id == node_id for found in node_processes()):
        assert time.monotonic() < deadline
