"""`ottla cluster`: one command starts a cluster, others look after it."""

import signal
import subprocess
import sys
from pathlib import Path

from processes_of_a_cluster import WAIT_S, eventually

from ottla.cli.local_cluster.cluster_layout import open_cluster
from ottla.cli.local_cluster.command import main
from ottla.cli.local_cluster.node_process import running_pid
from ottla.cli.main import COMMANDS


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
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            first, second = (started.stdout.readline() for _ in range(2))
            assert first.split()[:2] + first.split()[3:4] == ["node", "1", "up"]
            assert second.split()[:2] + second.split()[3:4] == ["node", "2", "up"]
            assert started.stdout.readline().startswith("bootstrap 127.0.0.1:")

            assert main(["kill", "2", "--data", data]) == 0
            one, two = open_cluster(Path(data))
            assert running_pid(two) is None
            assert main(["restart", "2", "--data", data]) == 0
            capfd.readouterr()
            assert main(["status", "--data", data]) == 0
            assert "2 of 2 nodes up; controller 1" in capfd.readouterr().out

            assert main(["stop", "--data", data]) == 0
            assert started.wait(WAIT_S) == 0
            eventually(lambda: running_pid(one) is None and running_pid(two) is None, "all nodes are down")
        finally:
            if started.poll() is None:
                started.send_signal(signal.SIGTERM)


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, capsys) -> None:
    assert main(["status", "--data", str(tmp_path)]) == 1
    assert "there is no cluster in" in capsys.readouterr().err


def test_it_is_a_command() -> None:
    assert COMMANDS["cluster"].module == "ottla.cli.local_cluster.command"
