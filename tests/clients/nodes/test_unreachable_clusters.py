"""Commands that are pointed at something that is no broker say so at once, and not after a minute."""

import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
LONG = "300"
"""Seconds, in which a command that tells nothing at once is seen not to."""


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Server:
    """Accepts, reads a little, and answers always the same."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
                client.recv(4096)
                if self._answer:
                    client.sendall(self._answer)
            except OSError:
                return
            self._kept.append(client)

    def close(self) -> None:
        self._socket.close()
        for client in self._kept:
            client.close()


@pytest.fixture
def http_port() -> Iterator[int]:
    server = Server(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    yield server.port
    server.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    server = Server(b"")
    yield server.port
    server.close()


COMMANDS = [
    "ottla tail orders -b {} --timeout {}",
    "ottla consume orders -b {} --timeout {}",
    "ottla top --once -b {} --timeout {}",
    "ottla copy orders orders2 -b {} --timeout {}",
    "kafka-topics --list -b {} --timeout {}",
    "kafka-configs --describe --entity-type topics --bootstrap-server {} --timeout {}",
    "kafka-acls --list -b {} --timeout {}",
    "kafka-transactions -b {} --timeout {} list",
    "kafka-console-consumer --topic orders -b {}",
    "kafka-console-producer --topic orders -b {}",
    "kafka-consumer-perf-test --topic orders --num-records 1 -b {}",
]
every_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda text: " ".join(text.split()[:2]))


def start(command: str, port: int) -> "subprocess.Popen[str]":
    program, *words = command.format(f"127.0.0.1:{port}", LONG).split()
    return subprocess.Popen(
        [str(BIN / program), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_line(command: str, port: int) -> str:
    """What is told while the command is still trying."""
    running = start(command, port)
    try:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write("an order\n")
        running.stdin.flush()
        line = running.stderr.readline()
        assert running.poll() is None, "it was still at it"
        return line
    finally:
        running.kill()
        running.communicate()


@every_command
def test_a_broker_that_refuses_is_told_while_it_is_tried(command: str, closed_port: int) -> None:
    name = " ".join(command.split()[: 2 if command.startswith("ottla") else 1])
    line = first_line(command, closed_port)
    assert line.startswith(f"{name}: cannot connect to 127.0.0.1:{closed_port}: connection refused; trying again")


def test_a_port_that_does_not_answer_is_told_while_it_is_tried(silent_port: int) -> None:
    line = first_line("kafka-topics --list -b {} --timeout {}", silent_port)
    assert f"127.0.0.1:{silent_port} does not answer" in line


@every_command
def test_a_port_that_speaks_http_ends_a_command_at_once(command: str, http_port: int) -> None:
    running = start(command, http_port)
    try:
        printed, told = running.communicate("an order\n", timeout=60)
    finally:
        running.kill()
    assert f"127.0.0.1:{http_port} is not a Kafka broker: it speaks HTTP" in printed + told


def test_on_a_terminal_the_time_that_is_left_is_shown_as_it_goes(closed_port: int) -> None:
    ours, theirs = pty.openpty()
    words = [str(BIN / "kafka-topics"), "--list", "-b", f"127.0.0.1:{closed_port}", "--timeout", LONG]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    try:
        while b"trying again for 298 s" not in seen:
            seen += os.read(ours, 4096)
    finally:
        running.kill()
        running.wait()
        os.close(ours)
    assert b"\x1b[A\r\x1b[K" in seen, "the line is written over"
