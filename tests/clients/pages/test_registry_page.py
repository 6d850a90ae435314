"""The commands and the program of docs/registry.md, run as they stand there, but for the ports."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker, SchemaRegistry
from ottla.testing.free_ports import free_ports
from tests.clients.eventually import eventually

PAGE = Path(__file__).parents[3] / "docs" / "registry.md"
TIMEOUT_S = 60


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


class Shell:
    """A directory in which commands are run, with the page's ports replaced by free ones."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = dict(zip(("8081", "8082", "9092"), map(str, free_ports(3)), strict=True))
        self.path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.started: list[subprocess.Popen[bytes]] = []

    def with_ports(self, command: str) -> str:
        for port, free in self.ports.items():
            command = re.sub(rf"\b{port}\b", free, command)
        return command

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.with_ports(command)],
            cwd=self.directory,
            env={**os.environ, "PATH": self.path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}{self.log()}"
        return done.stdout

    def start(self, command: str) -> None:
        """What the page starts with `&`; it is ready when it says so."""
        words = self.with_ports(command).rstrip().removesuffix("&").split()
        environment = {**os.environ, "PATH": self.path, "PYTHONUNBUFFERED": "1"}
        with (self.directory / "log").open("wb") as log:
            started = subprocess.Popen(words, cwd=self.directory, env=environment, stdout=log, stderr=log)
        self.started.append(started)
        eventually(lambda: "is ready at" in self.log(), True)

    def log(self) -> str:
        path = self.directory / "log"
        return path.read_text() if path.exists() else ""

    def stop(self) -> None:
        while self.started:
            process = self.started.pop()
            process.terminate()
            process.wait(TIMEOUT_S)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.stop()


def test_the_commands_of_the_page_run_in_its_order(shell: Shell) -> None:
    _install, inside, alone, use, across = blocks("sh")
    shell.start(inside.replace("start", "start --port 9092"))
    shell.run("ottla registry list --url http://127.0.0.1:8081")
    shell.stop()
    with Broker() as broker:
        shell.start(alone.replace("127.0.0.1:9092", broker.bootstrap))
        told = shell.run(use)
        assert "it says why not" in told
        assert "orders-value version 2, id 2" in told
        with Broker() as other, SchemaRegistry(other.bootstrap, port=int(shell.ports["8082"])):
            told = shell.run(across)
            assert "copied 2 versions" in told
            assert "imported 0 versions, 2 were there" in told


def test_the_program_of_the_page_runs(shell: Shell) -> None:
    (program,) = blocks("python")
    (shell.directory / "program.py").write_text(program)
    assert shell.run(f"{sys.executable} program.py") == "['clicks-value']\n"
