"""`ottla start --cores N`: several brokers that are started, reached, watched and stopped as one."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.admin import NewTopic
from ottla.cli.local_cluster.cluster_layout import NodeFiles, open_cluster
from ottla.cli.local_cluster.cluster_making import make_cluster, make_cores
from ottla.cli.local_cluster.command import main as cluster_command
from ottla.cli.local_cluster.node_process import is_ready, running_pid, start_process, wait_until_ready
from ottla.cli.start import main as start
from ottla.client.blocking.admin import Admin
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from tests.cluster.processes_of_a_cluster import WAIT_S, described, eventually


@contextmanager
def started(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it tells. All that is left of it is killed at the end."""
    command = [sys.executable, "-m", "ottla.cli.main", "start", "--port", "0", "--data", str(data), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            ready = process.stdout.readline()
            assert " is ready at " in ready, process.stderr.read()
            yield process, ready.split()[-1]
        finally:
            process.kill()
            for node in open_cluster(data):
                if (pid := running_pid(node)) is not None:
                    os.kill(pid, signal.SIGKILL)


def send(address: str, topic: str, values: list[str]) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value.encode(), partition=number % 2)


def read(address: str, topic: str, count: int) -> list[str]:
    """By a group, which goes on after what it has read before."""
    values: list[str] = []
    with Consumer(bootstrap_servers=address, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        ends_s = time.monotonic() + WAIT_S
        while len(values) < count:
            assert time.monotonic() < ends_s, f"only {values}"
            values += [record.value.decode() for record in consumer.poll(1.0)]
        consumer.commit()
    return sorted(values)


def test_cores_are_one_from_start_to_stop(tmp_path: Path) -> None:
    values = [f"{number:02}" for number in range(10)]
    with started(tmp_path, "--cores", "2", "--set", "log.retention.hours=7") as (process, address):
        controller, one, two = open_cluster(tmp_path)
        assert (controller.roles, one.roles, two.roles) == (("controller",), ("broker",), ("broker",))
        assert address == one.address
        with Admin(bootstrap_servers=address) as admin:
            names = ["first", "second", "third"]
            admin.create_topics([NewTopic(name) for name in names]).values()
            leaders = Counter(part.leader for name in names for part in described(admin, name).partitions)
            assert leaders == {1: 3, 2: 3}
            send(address, "first", values)
            assert read(address, "first", 10) == values
            internal = described(admin, "__consumer_offsets").partitions
            assert {(part.leader, len(part.replicas)) for part in internal} == {(1, 1), (2, 1)}

        killed = running_pid(two)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: running_pid(two) not in (None, killed) and is_ready(two), "a killed broker is started again")
        assert b"log.retention.hours=7" in Path(f"/proc/{running_pid(two)}/cmdline").read_bytes()
        send(address, "first", ["10", "11"])

        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
        assert not [node for node in (controller, one, two) if running_pid(node) is not None]
        assert "node 2 has ended, and is started again" in process.stderr.read()

    with plain_nodes(controller, one, two):
        assert read(two.address, "first", 2) == ["10", "11"]


@contextmanager
def plain_nodes(*nodes: NodeFiles) -> Iterator[None]:
    """Each is started by its file, and nobody watches over them."""
    children = [start_process(node) for node in nodes]
    try:
        wait_until_ready(list(nodes), WAIT_S)
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_all_end_when_a_node_does_not_come_up_again(tmp_path: Path) -> None:
    with started(tmp_path, "--cores", "1") as (process, _address):
        controller, broker = open_cluster(tmp_path)
        with broker.properties.open("a") as file:
            file.write("num.partitions=none\n")
        os.kill(running_pid(broker), signal.SIGKILL)
        assert process.wait(WAIT_S) == 1
        told = process.stderr.read()
        assert "node 1 does not come up again" in told
        assert "num.partitions" in told
        assert running_pid(controller) is None


def test_there_is_one_supervisor_and_one_that_was_killed_is_succeeded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with started(tmp_path, "--cores", "1") as (process, _address):
        controller, broker = open_cluster(tmp_path)
        pids = running_pid(controller), running_pid(broker)
        told = refusal(capsys, "--data", str(tmp_path), "--cores", "1")
        assert f"are run by process {process.pid} already" in told
        assert (running_pid(controller), running_pid(broker)) == pids
        process.kill()
        process.wait(WAIT_S)
        with started(tmp_path, "--cores", "1") as (successor, _address):
            assert (running_pid(controller), running_pid(broker)) == pids
            assert cluster_command(["stop", "--data", str(tmp_path)]) == 0
            assert successor.wait(WAIT_S) == 0


def test_it_ends_when_its_nodes_were_stopped_in_good_order(tmp_path: Path) -> None:
    with started(tmp_path, "--cores", "1") as (process, _address):
        controller, broker = open_cluster(tmp_path)
        for node in (broker, controller):
            os.kill(running_pid(node), signal.SIGTERM)
            eventually(lambda node=node: running_pid(node) is None, f"node {node.node_id} stops")
        assert process.wait(WAIT_S) == 0


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert start(list(arguments)) == 1
    return capsys.readouterr().err


def test_what_only_one_node_can_have_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cores = ("--data", str(tmp_path / "new"), "--cores", "2")
    assert "--metrics is for one node" in refusal(capsys, *cores, "--metrics", "0")
    assert "--set listeners: each node has its own" in refusal(capsys, *cores, "--set", "listeners=A://:1")
    assert not (tmp_path / "new").exists()


def test_a_port_in_use_is_told_before_anything_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = refusal(capsys, "--data", str(tmp_path / "new"), "--cores", "2", "--port", port)
    assert f"port {port} of 127.0.0.1 is in use" in told
    assert not (tmp_path / "new").exists()


def test_directories_of_something_else_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cores, replicated, single = (tmp_path / name for name in ("cores", "replicated", "single"))
    make_cores(cores, 2, port=0)
    make_cluster(replicated, 3, port=0)
    single.mkdir()
    (single / "meta.properties").touch()
    assert "has 2 brokers" in refusal(capsys, "--data", str(cores), "--cores", "3")
    assert "leave --port out" in refusal(capsys, "--data", str(cores), "--cores", "2", "--port", "1")
    assert "has the nodes of a cluster" in refusal(capsys, "--data", str(cores))
    assert "is of a replicated cluster" in refusal(capsys, "--data", str(replicated), "--cores", "3")
    assert "is of one node" in refusal(capsys, "--data", str(single), "--cores", "3")
