"""The control port itself: who may use it, what it refuses, and that it is not there unless it is asked for."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import NamedTuple

import pytest

from ottla.testing import Broker
from ottla.testing.broker.fault_control import FaultControl, FaultRefused
from ottla.testing.node import RunningNode
from tests.clients.eventually import eventually
from tests.clients.listening_addresses import listening_addresses


class Port(NamedTuple):
    number: int
    token: str


@pytest.fixture
def port(ottla_broker: Broker) -> Port:
    ottla_broker.is_harmed = True
    return Port(ottla_broker._control.port, ottla_broker._node.environment["OTTLA_FAULTS_TOKEN"])


def send(
    port: Port, body: bytes | str = b"{}", *, method: str = "POST", path: str = "/pause", **headers: str
) -> tuple[int, str]:
    """Status and body of the reply; `authorization=""` leaves the token out."""
    connection = HTTPConnection("127.0.0.1", port.number, timeout=20)
    given = {"Authorization": f"Bearer {port.token}"} | {
        name.replace("_", "-").title(): value for name, value in headers.items()
    }
    connection.request(method, path, body, {name: value for name, value in given.items() if value})
    reply: HTTPResponse = connection.getresponse()
    content = reply.read().decode()
    connection.close()
    return reply.status, content


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer wrong", "Basic {token}", "{token}", "Bearer {token}x", "Bearer ä"]
)
def test_without_the_token_nothing_is_done(ottla_broker: Broker, port: Port, authorization: str) -> None:
    given = authorization.format(token=port.token)
    status, content = send(port, authorization=given.encode().decode("latin-1"))
    assert status == 401
    assert port.token not in content
    assert ottla_broker._ask("faults")["is_paused"] is False


def test_the_front_says_when_its_token_is_wrong(port: Port) -> None:
    with pytest.raises(FaultRefused, match="token"):
        FaultControl(port.number, "wrong").ask("pause")


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/pause_all", "{}", 404, "there are fail_next, drop_connection"),
        ("/pause", "{", 400, "must be JSON"),
        ("/pause", b"\xff", 400, "must be JSON"),
        ("/pause", "[]", 400, "a JSON object"),
        ("/pause", "[" * 60_000, 400, "nested too deeply"),
        ("/pause", '{"for": 3}', 400, "there is no for"),
        ("/delay", '{"api": "Produce", "mss": 3}', 400, "ms is missing"),
        ("/delay", '{"api": "Produce", "ms": 3, "topics": "t"}', 400, "no topics; did you mean topic?"),
        ("/delay", '{"api": "Produce", "ms": true}', 400, "ms must be a whole number"),
        ("/delay", '{"api": "Produce", "ms": "3"}', 400, "ms must be a whole number"),
        ("/restart", '{"clean": 1}', 400, "clean must be true or false"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_the_reason(
    port: Port, path: str, body: str | bytes, status: int, reason: str
) -> None:
    got, content = send(port, body, path=path)
    assert (got, reason in json.loads(content)["error"]) == (status, True), content


def test_requests_that_are_too_large_or_odd_are_refused(port: Port) -> None:
    assert send(port, method="GET")[0] == 405
    assert send(port, b"", content_length="many")[0] == 400
    with socket.create_connection(("127.0.0.1", port.number), 20) as connection:
        head = f"POST /pause HTTP/1.1\r\nAuthorization: Bearer {port.token}\r\nContent-Length: 70000\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", port.number), 20) as connection:
        connection.sendall(b"POST /pause HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n")
        reply = received_all(connection)
        assert reply is not None
        assert reply.startswith(b"HTTP/1.1 431"), "a head without end is not read to the end"


def test_many_who_say_nothing_do_not_use_the_node_up(ottla_broker: Broker, port: Port) -> None:
    silent = [socket.create_connection(("127.0.0.1", port.number), 20) for _ in range(40)]

    def answers() -> bool:
        try:
            return ottla_broker._ask("faults")["faults"] == []
        except ConnectionError:  # The node has not seen yet that they are gone.
            return False

    eventually(answers, True)
    for connection in silent:
        connection.close()


def received_all(connection: socket.socket, timeout_s: float = 20) -> bytes | None:
    """What came until the other side hung up; None if it has not."""
    connection.settimeout(timeout_s)
    data = b""
    try:
        while more := connection.recv(4096):
            data += more
    except ConnectionError:
        return b""
    except TimeoutError:
        return None
    return data


# Not there unless asked for


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_node_without_faults_has_no_such_port_and_one_with_them_has_it_on_loopback() -> None:
    with RunningNode() as without, RunningNode(options=("--faults", "0")) as with_faults:
        assert len(listening_addresses(with_faults.pid)) == len(listening_addresses(without.pid)) + 1
        assert set(listening_addresses(with_faults.pid)) == {"0100007F"}
        assert "faults" not in without.log.read_text()
    with Broker(faults=False) as broker, pytest.raises(FaultRefused, match="faults=False"):
        broker.pause()


class Started(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    token: str


@pytest.fixture
def started() -> Iterator[Started]:
    """As a person or another language starts it."""
    command = [sys.executable, "-m", "ottla.cli.main", "start", "--ephemeral", "--port", "0", "--faults", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        banner = "".join(process.stdout.readline() for _ in range(4))
        found = re.search(r"faults +http://127\.0\.0\.1:(\d+) \(token (\S+)\)", banner)
        assert found, banner
        yield Started(process, int(found[1]), found[2])
        process.kill()


def test_another_language_finds_port_and_token_in_what_is_printed_and_may_kill_the_node(started: Started) -> None:
    control = FaultControl(started.port, started.token)
    control.ask("fail_next", api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    assert len(control.ask("faults")["faults"]) == 1
    with pytest.raises(ConnectionError):
        control.ask("kill")
    assert started.process.wait(20) == -signal.SIGKILL


def test_a_node_that_was_restarted_stops_as_any_other(started: Started) -> None:
    control = FaultControl(started.port, started.token)
    control.ask("restart", clean=False)
    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(30) == 0
