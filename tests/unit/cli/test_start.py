"""`ottla start` as a person meets it: what it prints, how it stops, and what it says when it cannot start."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from ottla.log.names import CLEAN_SHUTDOWN

WAIT_S = 30


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ottla.cli.main", "start", *words]


@contextmanager
def started(*words: str, cwd: Path | None = None) -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """A node, and the lines of its banner."""
    process = subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment()
    )
    try:
        assert process.stdout is not None
        banner = []
        for line in process.stdout:
            banner.append(line.rstrip())
            if line.lstrip().startswith("stop"):
                break
        assert banner, process.stderr.read() if process.stderr else ""
        yield process, banner
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WAIT_S)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}


def refused(*words: str) -> str:
    """What a node that does not start says, in one line."""
    ended = subprocess.run(command(*words), capture_output=True, text=True, timeout=WAIT_S, env=environment())
    assert ended.returncode == 1
    assert ended.stdout == ""
    [line] = ended.stderr.splitlines()
    return line


def address_in(banner: list[str]) -> tuple[str, int]:
    host, _, port = banner[0].rpartition(" ")[2].rpartition(":")
    return host, int(port)


def answers(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


def end(process: "subprocess.Popen[str]", how: signal.Signals = signal.SIGTERM) -> int:
    process.send_signal(how)
    return process.wait(WAIT_S)


def cluster_in(banner: list[str]) -> str:
    return told(banner, "cluster").rstrip(",")


def told(banner: list[str], what: str) -> str:
    [words] = [line.split() for line in banner if line.split()[0] == what]
    return words[1]


def test_the_banner_says_where_the_node_is_and_how_to_stop_it(tmp_path: Path) -> None:
    with started("--port", "0", cwd=tmp_path) as (process, banner):
        assert banner[0].startswith("ottla ")
        assert answers(address_in(banner))
        assert f"  data     {tmp_path}/ottla-data" in banner
        assert end(process) == 0
    assert (tmp_path / "ottla-data" / CLEAN_SHUTDOWN).exists()


def test_the_cluster_is_the_same_after_a_restart_and_after_a_kill(tmp_path: Path) -> None:
    found = set()
    for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
        with started("--data", str(tmp_path), "--port", "0") as (process, banner):
            found.add(cluster_in(banner))
            end(process, how)
    assert len(found) == 1


def test_an_ephemeral_node_leaves_nothing_behind() -> None:
    with started("--ephemeral", "--port", "0") as (process, banner):
        data = Path(told(banner, "data"))
        assert data.exists()
        assert end(process) == 0
    assert not data.exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_at_once(tmp_path: Path, how: signal.Signals) -> None:
    with (
        started("--data", str(tmp_path), "--port", "0") as (process, banner),
        # A client that has begun a request holds the first stop up for a moment.
        socket.create_connection(address_in(banner)) as client,
    ):
        client.sendall((100).to_bytes(4, "big"))
        process.send_signal(how)
        time.sleep(0.01)
        process.send_signal(how)
        # 0 or death by the signal: the first one was quicker.
        assert process.wait(WAIT_S) in (0, 130, -how)


def test_metrics_are_served_where_asked(tmp_path: Path) -> None:
    with (
        started("--data", str(tmp_path), "--port", "0", "--metrics", "0") as (_, banner),
        urlopen(told(banner, "metrics"), timeout=WAIT_S) as reply,
    ):
        page = reply.read().decode()
    assert "kafka_controller_kafkacontroller_activecontrollercount 1\n" in page
    assert "kafka_server_replicamanager_underreplicatedpartitions 0\n" in page
    assert "kafka_server_brokertopicmetrics_bytesin_total 0\n" in page


def test_log_lines_can_be_json(tmp_path: Path) -> None:
    with started("--data", str(tmp_path), "--port", "0", "--log-format", "json", "--log-level", "info") as (process, _):
        end(process)
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()
    assert lines[-1]["message"] == "stopping"


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--data", str(tmp_path), "--port", str(port)).endswith(
            f"cannot listen on PLAINTEXT://127.0.0.1:{port}: Address already in use"
        )


def test_a_directory_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with started("--data", str(tmp_path), "--port", "0"):
        assert f"{tmp_path} is in use by another process" in refused("--data", str(tmp_path), "--port", "0")


def test_a_directory_with_other_things_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert f"{tmp_path} is not formatted" in refused("--data", str(tmp_path), "--port", "0")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_directory_of_another_node_is_one_clear_line(tmp_path: Path) -> None:
    with started("--data", str(tmp_path), "--port", "0") as (process, _):
        end(process)
    line = refused(
        "--data", str(tmp_path), "--port", "0", "--set", "node.id=2", "--set", "controller.quorum.voters=2@127.0.0.1:1"
    )
    assert "is of node 1, and node.id says that this is node 2" in line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--set", "num.partitions=none"), "num.partitions=none: it must be a whole number of 32 bits"),
        (("--set", "num.partitions=0"), "num.partitions=0: it must be"),
        (("--set", "num.partitions"), "--set num.partitions: it must be KEY=VALUE"),
        (("--set", "listeners=9092"), "listeners=9092: it must be NAME://HOST:PORT"),
        (("--config", "/nowhere/server.properties"), "No such file or directory: '/nowhere/server.properties'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    where = () if "--config" in words else ("--data", str(tmp_path))
    assert expected in refused(*where, "--port", "0", *words)


def test_an_unknown_setting_and_one_that_does_nothing_yet_are_warned_about_once(tmp_path: Path) -> None:
    words = ("--set", "no.such.setting=1", "--set", "num.io.threads=9")
    with started("--data", str(tmp_path), "--port", "0", *words) as (process, _):
        end(process)
        assert process.stderr is not None
        printed = process.stderr.read()
    assert printed.count("no.such.setting") == 1
    assert printed.count("num.io.threads") == 1


def test_a_file_of_kafkas_needs_a_formatted_directory(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\n"
        "node.id=7\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=7@127.0.0.1:9093\n"
        f"log.dirs={tmp_path}/data\n"
    )
    assert f"{tmp_path}/data is not formatted" in refused("--config", str(config))
    from ottla.cli import storage

    assert storage.main(["format", "-t", "b3R0bGEtaW50ZXJvcC0wMQ", "-c", str(config)]) == 0
    with started("--config", str(config)) as (process, banner):
        assert cluster_in(banner) == "b3R0bGEtaW50ZXJvcC0wMQ"
        assert any("node 7" in line for line in banner)
        assert end(process) == 0


def test_a_mistyped_setting_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    with started("--port", "0", "--data", str(tmp_path / "data"), "--set", "num.oi.threads=8") as (process, _):
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=WAIT_S)
    assert "num.oi.threads: no setting has this name (did you mean num.io.threads?); it is ignored" in said


def test_strict_refuses_a_mistyped_setting(tmp_path: Path) -> None:
    said = refused("--port", "0", "--data", str(tmp_path / "data"), "--strict", "--set", "log.retention.h=8")
    assert said == "ottla: log.retention.h: no setting has this name (did you mean log.retention.ms?)"
    assert not (tmp_path / "data").exists()


def test_strict_looks_into_the_file_too(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=1\nproces.roles=broker\nprocess.roles=broker,controller\n")
    more = ["--set", "controller.listener.names=C", "--set", "listeners=PLAINTEXT://:0,C://:0"]
    voters = ["--set", "controller.quorum.voters=1@localhost:1"]
    said = refused("--strict", "--config", str(tmp_path / "server.properties"), *more, *voters)
    assert said == "ottla: proces.roles: no setting has this name (did you mean process.roles?)"
