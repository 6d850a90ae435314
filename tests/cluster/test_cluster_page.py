"""The commands of docs/cluster.md, run as they stand there, on one machine: a host is a directory and two ports.

What the page has for a cluster of Apache Kafka's is run by tests/interop, which has one.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.local_cluster.cluster_layout import open_cluster
from ottla.cli.local_cluster.node_process import running_pid
from ottla.testing.free_ports import free_ports
from tests.cluster.processes_of_a_cluster import WAIT_S, eventually

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
HOSTS = (1, 2, 3)
NEW = 4
FOR_APACHE_KAFKA = "share.version"
READY = "is ready at"


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def commands(text: str) -> list[str]:
    """The indented lines that are commands, whole where a backslash ends a line, and without their comments."""
    lines = re.findall(r"^    (\S.*)$", text.replace("\\\n", " "), re.MULTILINE)
    return [re.sub(r"\s+", " ", line.partition(" #")[0]).strip() for line in lines if re.match("ottla |kafka-", line)]


class Shell:
    """Runs commands of the page, with what it has for hosts, ports and ids replaced by `names`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.names: dict[str, str] = {}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path}
        self._background: list[subprocess.Popen[bytes]] = []

    def run(self, command: str, host: str = ".") -> str:
        words = self._words(command)
        done = subprocess.run(
            words,
            cwd=self.directory / host,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def start(self, command: str, *further: str, host: str = ".", ready: str = READY) -> subprocess.Popen[bytes]:
        """In the background; returns when it has said that it is ready."""
        log = self.directory / host / "printed"
        with log.open("wb") as printed:
            process = subprocess.Popen(
                [*self._words(command), *further],
                cwd=self.directory / host,
                env=self._environment,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
        self._background.append(process)
        eventually(lambda: ready in log.read_text() or process.poll() is not None, f"{command} is ready")
        assert process.poll() is None, log.read_text()
        return process

    def _words(self, command: str) -> list[str]:
        for name, meant in self.names.items():
            command = command.replace(name, meant)
        return command.split()

    def close(self) -> None:
        for process in self._background:
            process.kill()
            process.wait()
        for data in filter(Path.is_dir, self.directory.glob("ottla-*")):
            for node in open_cluster(data):
                if (pid := running_pid(node)) is not None:
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def test_a_cluster_to_try(shell: Shell) -> None:
    start, *others, _, _ = commands(section("On one machine, to try it"))
    cluster = shell.start(start, "--port", "0", ready="bootstrap ")
    printed = [shell.run(command) for command in others]
    assert "3 of 3 nodes up" in printed[0]
    assert [command.split()[2] for command in others] == ["status", "kill", "restart", "add", "stop"]
    assert cluster.wait(WAIT_S) == 0


def test_a_cluster_with_certificates_and_a_login(shell: Shell) -> None:
    *_, start, list_topics = commands(section("On one machine, to try it"))
    shell.start(start, "--port", "0", ready="bootstrap ")
    shell.names["127.0.0.1:9092"] = open_cluster(shell.directory / "ottla-secured")[0].address
    shell.run(list_topics)


def test_balance_drain_and_roll(shell: Shell) -> None:
    start, *_, add, _, _, _ = commands(section("On one machine, to try it"))
    shell.start(start, "--port", "0", ready="bootstrap ")
    shell.names["host1:9092"] = open_cluster(shell.directory / "ottla-cluster")[0].address
    shell.run(
        "kafka-topics --bootstrap-server host1:9092 --create --topic orders --partitions 12 --replication-factor 3"
    )
    shell.run(add)
    propose, execute, undo, drain, undrain, remove = commands(section("Balance"))
    here, there = commands(section("A rolling restart"))
    assert "Nothing was changed" in shell.run(propose)
    assert "brings everything back" in shell.run(execute)
    shell.run(undo)
    assert len(shell.run(here).splitlines()) == 4
    # By a command: here it is another one than over there.
    shell.names |= {"'ssh {host} sudo systemctl restart ottla'": "true"}
    assert "node 4 restarted" in shell.run(there)
    assert "broker 4 has no replicas" in shell.run(drain)
    shell.run(undrain)
    shell.run("ottla cluster kill 4")
    assert "broker 4 is not part of the cluster any more" in shell.run(remove)


def test_one_machines_cores(shell: Shell) -> None:
    (start,) = commands(section("One machine's cores"))
    cores = shell.start(start, "--port", "0")
    assert "4, the other brokers at ports" in (shell.directory / "printed").read_text()
    cores.send_signal(signal.SIGINT)
    assert cores.wait(WAIT_S) == 0


def write_settings(shell: Shell, host: int, voters: str | None = None) -> None:
    """Those of the page, for this host."""
    block = section("On three hosts").partition("On each host")[2].partition("Then,")[0]
    text = "\n".join(re.findall(r"^    (\S.*)$", block, re.MULTILINE))
    text = text.replace("node.id=1", f"node.id={host}").replace("//host1:", f"//host{host}:")
    text = text.replace("/var/lib/ottla", str(shell.directory / f"host{host}" / "data"))
    if voters is not None:
        text = re.sub("controller.quorum.bootstrap.servers=.*", f"controller.quorum.voters={voters}", text)
        text = re.sub(r"(factor|min\.isr|replicas)=\d", r"\1=1", text)
    for name, meant in shell.names.items():
        text = text.replace(name, meant)
    (shell.directory / f"host{host}").mkdir()
    (shell.directory / f"host{host}" / "server.properties").write_text(text)


def name_hosts(shell: Shell, *hosts: int) -> None:
    ports = iter(free_ports(2 * len(hosts)))
    shell.names |= {f"host{host}:{port}": f"127.0.0.1:{next(ports)}" for host in hosts for port in (9092, 9093)}


def test_three_hosts_and_a_controller_that_is_added_and_one_removed(shell: Shell) -> None:
    random_uuid, form, start = commands(section("On three hosts"))
    name_hosts(shell, *HOSTS, NEW)
    shell.names |= {name: shell.run(random_uuid) for name in ("CLUSTER_ID", "DIR1", "DIR2", "DIR3")}
    for host in HOSTS:
        write_settings(shell, host)
        shell.run(form, f"host{host}")
    for host in HOSTS[1:]:  # The first is ready when a majority is.
        shell.start(start, host=f"host{host}", ready="")
    shell.start(start, host="host1")
    (status,) = re.findall(r"`(kafka-metadata-quorum [^`]* --status)`", section("On three hosts"))
    assert "CurrentVoters:" in shell.run(status)

    shell.run("kafka-topics --bootstrap-server host1:9092 --create --topic orders")
    (elect,) = commands(section("Replicas"))
    shell.run(elect)

    form, start, add, remove, _ = commands(section("Adding and removing controllers"))
    write_settings(shell, NEW)
    shell.run(form, f"host{NEW}")
    shell.start(start, host=f"host{NEW}")
    shell.run(add, f"host{NEW}")
    shell.run(remove.replace("host1:", f"host{NEW}:"))
    assert f'"id": {NEW}' in shell.run(status.replace("host1:", f"host{NEW}:"))


def test_voters_that_are_a_setting_become_data(shell: Shell) -> None:
    name_hosts(shell, 1)
    write_settings(shell, 1, voters="1@host1:9093")
    shell.run(f"kafka-storage format -c server.properties -t {shell.run('kafka-storage random-uuid')}", "host1")
    shell.start("kafka-server-start server.properties", host="host1")
    raise_version = commands(section("Adding and removing controllers"))[-1]
    shell.run(raise_version)


def test_every_command_of_the_page_is_in_a_section_whose_commands_are_run_here() -> None:
    titles = (
        "On one machine, to try it",
        "One machine's cores",
        "On three hosts",
        "Replicas",
        "Balance",
        "A rolling restart",
    )
    run = {command for title in (*titles, "Adding and removing controllers") for command in commands(section(title))}
    assert [command for command in commands(PAGE) if command not in run and FOR_APACHE_KAFKA not in command] == []
