"""`ottla cluster`: one command starts a cluster, others look after it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from processes_of_a_cluster import WAIT_S, described, eventually

from ottla.admin import NewTopic
from ottla.cli.local_cluster.cluster_layout import open_cluster
from ottla.cli.local_cluster.cluster_making import make_cluster
from ottla.cli.local_cluster.command import main
from ottla.cli.local_cluster.node_process import running_pid
from ottla.cli.main import COMMANDS
from ottla.client.blocking.admin import Admin


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


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, capsys) -> None:
    assert main(["status", "--data", str(tmp_path)]) == 1
    assert "there is no cluster in" in capsys.readouterr().err


def test_it_is_a_command() -> None:
    assert COMMANDS["cluster"].module == "ottla.cli.local_cluster.command"
