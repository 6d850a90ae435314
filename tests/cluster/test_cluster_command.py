"""`ottla cluster`: one command starts a cluster, others look after it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from ottla.admin import ConfigResource, NewTopic
from ottla.cli.local_cluster.cluster_layout import NodeFiles, open_cluster
from ottla.cli.local_cluster.cluster_making import make_cluster, make_cores
from ottla.cli.local_cluster.command import main
from ottla.cli.local_cluster.node_process import is_ready, running_pid
from ottla.cli.main import COMMANDS
from ottla.client.blocking.admin import Admin
from tests.cluster.processes_of_a_cluster import WAIT_S, described, eventually


def test_a_cluster_is_started_looked_at_killed_in_part_and_stopped(tmp_path: Path, capfd) -> None:
    data = str(tmp_path / "cluster")
    command = [
        sys.executable,
        "-m",
        "ottla.cli.main",
        "cluster",
        "start",
        "--nodes",
        "2",
        "--port",
        "0",
        "--data",
        data,
        "--metrics",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            first, second = (started.stdout.readline() for _ in range(2))
            assert first.split()[:2] + first.split()[3:4] == ["node", "1", "up"]
            for line in (first, second):
                with urlopen(line.split()[-1].replace("/metrics", "/readyz"), timeout=WAIT_S) as reply:
                    assert reply.read() == b"ready\n"
            assert second.split()[:2] + second.split()[3:4] == ["node", "2", "up"]
            assert started.stdout.readline().startswith("bootstrap 127.0.0.1:")

            assert main(["kill", "2", "--data", data]) == 0
            one, two = open_cluster(Path(data))
            assert running_pid(two) is None
            assert main(["restart", "2", "--data", data]) == 0
            capfd.readouterr()
            assert main(["status", "--data", data]) == 0
            assert "2 of 2 nodes up; controller 1" in capfd.readouterr().out

            assert main(["add", "--data", data]) == 0
            assert capfd.readouterr().out.split()[:2] == ["node", "3"]
            assert main(["status", "--data", data]) == 0
            assert "3 of 3 nodes up; controller 1" in capfd.readouterr().out
            three = open_cluster(Path(data))[2]
            with Admin(bootstrap_servers=three.address) as admin:
                admin.create_topics([NewTopic("on-the-new", assignment={0: [3, 1]})])["on-the-new"]
                assert described(admin, "on-the-new").partitions[0].leader == 3
            added = running_pid(three)
            os.kill(added, signal.SIGKILL)
            eventually(lambda: running_pid(three) not in (None, added), "the supervisor starts the new node again")

            assert main(["stop", "--data", data]) == 0
            assert started.wait(WAIT_S) == 0
            eventually(lambda: all(running_pid(node) is None for node in (one, two, three)), "all nodes are down")
        finally:
            if started.poll() is None:
                started.send_signal(signal.SIGTERM)


def test_a_node_is_not_added_to_a_cluster_that_does_not_run(tmp_path: Path, capsys) -> None:
    make_cluster(tmp_path, 1, port=0)
    assert main(["add", "--data", str(tmp_path)]) == 1
    assert "does not run" in capsys.readouterr().err
    assert len(open_cluster(tmp_path)) == 1


def test_a_node_is_not_restarted_where_no_controller_could_take_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor killed, if it does not run."""
    nodes = make_cluster(tmp_path, 1, port=0)
    assert main(["restart", "1", "--data", str(tmp_path)]) == 1
    assert "does not run: `ottla cluster start` starts all its nodes" in capsys.readouterr().err
    assert main(["kill", "1", "--data", str(tmp_path)]) == 1
    assert "node 1 does not run" in capsys.readouterr().err
    assert not nodes[0].log.exists()


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, capsys) -> None:
    assert main(["status", "--data", str(tmp_path)]) == 1
    assert "there is no cluster in" in capsys.readouterr().err


def test_a_roll_of_a_cluster_elsewhere_does_not_restart_nodes_here(tmp_path: Path, capsys) -> None:
    make_cluster(tmp_path, 1, port=0)
    assert main(["roll", "--data", str(tmp_path), "-b", "127.0.0.1:1"]) == 1
    assert "-b needs --command" in capsys.readouterr().err


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["start", *arguments]) == 1
    return capsys.readouterr().err


def test_directories_of_something_else_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cores, replicated, single = (tmp_path / name for name in ("cores", "replicated", "single"))
    make_cores(cores, 2, port=0)
    make_cluster(replicated, 3, port=0)
    single.mkdir()
    (single / "meta.properties").touch()
    before = sorted(tmp_path.rglob("*"))
    assert "is of one node: a cluster needs a directory of its own" in refusal(capsys, "--data", str(single))
    assert "`ottla start --cores 2` runs it" in refusal(capsys, "--data", str(cores))
    assert "has 3 nodes: leave --nodes out" in refusal(capsys, "--data", str(replicated), "--nodes", "5")
    assert "leave --port out" in refusal(capsys, "--data", str(replicated), "--port", "1")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_port_in_use_is_told_before_anything_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = refusal(capsys, "--data", str(tmp_path / "new"), "--nodes", "1", "--port", port)
    assert f"port {port} of 127.0.0.1 is in use: choose another with --port" in told
    assert not (tmp_path / "new").exists()


@contextmanager
def started(data: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A cluster's process. All that is left of it is killed at the end."""
    command = [sys.executable, "-m", "ottla.cli.main", "cluster", "start", "--data", str(data), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
            for node in open_cluster(data):
                if (pid := running_pid(node)) is not None:
                    os.kill(pid, signal.SIGKILL)


def break_settings(node: NodeFiles) -> None:
    with node.properties.open("a") as file:
        file.write("num.partitions=none\n")


def test_a_cluster_with_a_node_that_cannot_start_says_why_and_stops(tmp_path: Path) -> None:
    nodes = make_cluster(tmp_path, 2, port=0)
    break_settings(nodes[1])
    with started(tmp_path) as process:
        assert process.wait(WAIT_S) == 1
        told = process.stderr.read()
    assert "node 2 has ended:" in told
    assert "num.partitions=none" in told
    assert [running_pid(node) for node in nodes] == [None, None]


def test_a_node_that_does_not_come_up_again_is_told_of_with_its_last_words(tmp_path: Path) -> None:
    """The others go on, and it comes back when what is wrong is mended."""
    nodes = make_cluster(tmp_path, 2, port=0)
    with started(tmp_path) as process:
        assert [process.stdout.readline().split()[0] for _ in range(3)] == ["node", "node", "bootstrap"]
        settings = nodes[1].properties.read_text()
        break_settings(nodes[1])
        os.kill(running_pid(nodes[1]), signal.SIGKILL)
        lines = (line for line in process.stderr if line.strip())
        assert "node 2 has ended, and is started again" in next(lines)
        told = next(lines)
        assert "node 2 does not come up: " in told
        assert "num.partitions=none" in told
        nodes[1].properties.write_text(settings)
        eventually(lambda: running_pid(nodes[1]) is not None and is_ready(nodes[1]), "the node is up again")
        assert running_pid(nodes[0]) is not None


def test_an_interrupted_start_leaves_no_node_behind(tmp_path: Path) -> None:
    nodes = make_cluster(tmp_path, 2, port=0)
    with started(tmp_path) as process:
        eventually(lambda: any(running_pid(node) is not None for node in nodes), "a node is started")
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
        assert [running_pid(node) for node in nodes] == [None, None]
        assert "Traceback" not in process.stderr.read()


def test_a_cluster_with_tls_and_logins_and_settings_for_all(tmp_path: Path, capfd) -> None:
    data = tmp_path / "cluster"
    words = "--nodes 2 --port 0 --security sasl_ssl --set log.retention.hours=7 --log-level info"
    with started(data, *words.split()) as running:
        lines = [running.stdout.readline() for _ in range(4)]
        assert lines[2] == f"clients   need {data}/client.properties (--command-config)\n"
        bootstrap = lines[3].split()[1].rstrip(";")
        with Admin.from_properties(data / "client.properties", bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 1, 2)]).raise_first()
            resource = ConfigResource.broker(1)
            assert admin.describe_configs([resource])[resource]["log.retention.hours"].value == "7"
        assert main(["status", "--data", str(data)]) == 0
        assert "2 of 2 nodes up; controller 1; 1 topic; all in sync" in capfd.readouterr().out
        assert main(["roll", "--data", str(data), "--only", "2"]) == 0, "with the file that was made for clients"
        assert "node 2 restarted, all in sync" in capfd.readouterr().out
        assert main(["add", "--data", str(data)]) == 0
        assert "listeners=SASL_SSL://" in (data / "node-3" / "server.properties").read_text()
    assert "Kafka Server started: node 1" in (data / "node-1" / "node.log").read_text()
    assert (data / "client.properties").stat().st_mode & 0o077 == 0
    assert (data / "node-1" / "server.properties").stat().st_mode & 0o077 == 0


def test_what_each_node_has_its_own_of_is_no_setting_for_all(tmp_path: Path, capsys) -> None:
    told = refusal(capsys, "--data", str(tmp_path), "--set", "node.id=3")
    assert told == "ottla: --set node.id: each node has its own, in its server.properties\n"


def test_it_is_a_command() -> None:
    assert COMMANDS["cluster"].module == "ottla.cli.local_cluster.command"
