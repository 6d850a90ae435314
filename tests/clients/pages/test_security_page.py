"""The ten commands of docs/security.md, run as they stand there, but for the ports."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.free_ports import free_ports
from ottla.testing.node import RunningNode
from tests.clients.eventually import eventually

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
SECTION = "## From a plain node to SASL_SSL with ACLs, in ten commands"
TIMEOUT_S = 60


def commands() -> list[str]:
    section = PAGE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


class Shell:
    """A directory in which commands are run, with the page's ports replaced by free ones."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = dict(zip(("9092", "9093", "9094"), map(str, free_ports(3)), strict=True))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path}
        self.background: list[subprocess.Popen[bytes]] = []

    def run(self, command: str) -> str:
        for port, free in self.ports.items():
            command = command.replace(f":{port}", f":{free}")
        if command.rstrip().endswith("&"):
            words = command.rstrip().removesuffix("&").split()
            with (self.directory / "node.log").open("ab") as log:
                self.background.append(
                    subprocess.Popen(words, cwd=self.directory, env=self.environment, stdout=log, stderr=log)
                )
            return ""
        shell = ["bash", "-euo", "pipefail", "-c", command]
        done = subprocess.run(
            shell, cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}{self.log()}"
        return done.stdout

    def log(self) -> str:
        return (self.directory / "node.log").read_text() if (self.directory / "node.log").exists() else ""

    def close(self) -> None:
        for process in self.background:
            process.terminate()
            process.wait(TIMEOUT_S)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def test_the_ten_commands_lead_from_a_plain_node_to_one_with_tls_users_and_acls(shell: Shell) -> None:
    every = commands()
    assert len(every) == 10
    with RunningNode(shell.directory / "plain", port=int(shell.ports["9092"])) as plain:
        for command in every[:3]:
            shell.run(command)
        plain.stop()
        plain.data.rename(shell.directory / "ottla-data")
    for command in every[3:-1]:
        shell.run(command)
        if shell.background:
            eventually(lambda: "is ready" in shell.log(), True)
    assert "hello" in shell.run(every[-1])
    listing = "kafka-topics --bootstrap-server localhost:9093 --list --command-config"
    assert "orders" in shell.run(f"{listing} admin.properties").split()
    assert "User:alice" not in shell.run(f"{listing} alice.properties")
