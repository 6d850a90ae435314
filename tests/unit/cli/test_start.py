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

from ottla import __version__
from ottla.cli.start import _banner
from ottla.log.file_names import CLEAN_SHUTDOWN
from ottla.records import kernel

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

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


def test_the_banner_says_when_the_compiled_modules_are_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = {"address": "127.0.0.1:9092", "data": "/data", "cluster": "c", "node": "1"}
    monkeypatch.setattr(kernel, "IS_COMPILED", False)
    _banner(summary, ephemeral=False, token=None)
    assert "  speed    pure Python, several times slower: `ottla doctor`" in capsys.readouterr().out


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


def test_with_json_every_line_is(tmp_path: Path) -> None:
    words = command(
        "--data", str(tmp_path), "--port", "0", "--log-format", "json", "--log-level", "info", "--set", "x=1"
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as node:
        assert node.stdout is not None
        ready = json.loads(node.stdout.readline())
        assert ready["message"].endswith(f"is ready at {ready['address']}")
        node.terminate()
        printed, logged = node.communicate(timeout=WAIT_S)
    assert printed == ""
    lines = [json.loads(line) for line in logged.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert lines[0]["message"].startswith("starting node 1 (broker,controller), ottla ")
    assert lines[1]["level"] == "warning", "of the setting x"
    assert lines[-1]["message"].startswith("node 1 has stopped, after ")


def test_with_json_so_is_the_reason_why_a_node_does_not_start(tmp_path: Path) -> None:
    line = json.loads(refused("--data", str(tmp_path), "--log-format", "json", "--set", "node.id=x"))
    assert line["level"] == "critical"
    assert line["message"] == "node.id=x: it must be a whole number of 32 bits"


def test_a_log_file_has_what_an_operator_wants_to_know(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "server.log"
    with started("--data", str(tmp_path / "data"), "--port", "0", "--log-file", str(log)) as (process, _):
        end(process)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    lines = log.read_text().splitlines()
    assert lines[0].endswith("starting node 1 (broker,controller), ottla " + __version__)
    assert any(line.endswith("Terminating process due to signal SIGTERM") for line in lines)
    assert "node 1 has stopped, after " in lines[-1]


def test_a_log_file_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = refused("--data", str(tmp_path / "data"), "--log-file", str(tmp_path / "file" / "server.log"))
    assert line == f"ottla: cannot write to the log {tmp_path}/file/server.log: File exists"


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--data", str(tmp_path), "--port", str(port)) == (
            f"ottla: cannot listen on PLAINTEXT://127.0.0.1:{port}: Address already in use; another process listens "
            "there: choose another port"
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
        (("--config", "/nowhere/server.properties"), "/nowhere/server.properties: No such file or directory"),
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


# Where a node listens, and what clients are told


def test_every_interface_needs_a_name_for_clients(tmp_path: Path) -> None:
    line = refused("--data", str(tmp_path), "--port", "0", "--host", "0.0.0.0")
    assert line.endswith("add --advertise HOST, the name or address that they reach this machine by")


def test_a_file_that_listens_everywhere_is_refused_in_kafkas_words_with_the_line_to_add(tmp_path: Path) -> None:
    """Apache Kafka 4.3.1 says the first two sentences."""
    file = tmp_path / "server.properties"
    file.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path}/data\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:9093\nlisteners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093\n"
    )
    assert refused("--config", str(file)) == (
        "ottla: advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address. Add a "
        "line like advertised.listeners=PLAINTEXT://HOST:9092, in which HOST is the name or address that clients reach "
        "this machine by"
    )


@pytest.mark.parametrize(
    ("words", "told_to_clients"),
    [
        (["--host", "0.0.0.0", "--advertise", "localhost"], "localhost:{}"),
        (["--host", "127.0.0.1", "--advertise", "localhost:19092"], "localhost:19092"),
        (["--advertise", "[::1]:19092"], "::1:19092"),
        (["--host", "127.0.0.1"], "127.0.0.1:{}"),
    ],
)
def test_clients_are_told_what_was_asked_for(tmp_path: Path, words: list[str], told_to_clients: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with started("--data", str(tmp_path), "--port", str(port), *words) as (_, banner):
        assert banner[0].rpartition(" ")[2] == told_to_clients.format(port)
        assert answers(("127.0.0.1", port))


# In the background


def write_properties(tmp_path: Path) -> str:
    file = tmp_path / "server.properties"
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "log.dirs": f"{tmp_path}/data",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    return str(file)


def start_daemon(file: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    program = "import sys; from ottla.cli.start import server_start; sys.exit(server_start())"
    words = [sys.executable, "-c", program, "-daemon", file]
    return subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, cwd=directory, env=environment())


def test_a_daemon_says_that_it_is_up_and_where_its_log_is(tmp_path: Path) -> None:
    file = write_properties(tmp_path)
    words = ["storage", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", file]
    subprocess.run([*command()[:-1], *words], check=True, capture_output=True, timeout=WAIT_S, env=environment())
    began = start_daemon(file, tmp_path)
    assert (began.returncode, began.stderr) == (0, "")
    assert began.stdout.startswith("node 1 is ready at 127.0.0.1:")
    assert began.stdout.endswith(", log logs/server.log\n")
    os.kill(int(began.stdout.partition("process ")[2].partition(",")[0]), signal.SIGTERM)
    log = tmp_path / "logs" / "server.log"
    deadline_s = time.monotonic() + WAIT_S
    while "has stopped" not in log.read_text():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert "Kafka Server started: node 1" in log.read_text()


def test_a_daemon_that_does_not_come_up_says_why_and_ends_with_1(tmp_path: Path) -> None:
    began = start_daemon(write_properties(tmp_path), tmp_path)
    assert began.returncode == 1
    assert began.stdout == ""
    assert began.stderr.startswith("kafka-server-start: ")
    assert "format" in began.stderr
    assert began.stderr.endswith("; log logs/server.log\n")
    assert "cannot start: " in (tmp_path / "logs" / "server.log").read_text()
