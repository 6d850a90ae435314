"""Connecting over real sockets, on the loop that a node runs on."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.ports import Transport
from ottla.runtime.network import EpollPoller, LoopNetwork, LoopPoller
from ottla.runtime.tcp import TcpListener


@pytest.fixture(params=[EpollPoller, LoopPoller], ids=["epoll", "the loop's selector"])
def network(request: pytest.FixtureRequest) -> Iterator[LoopNetwork]:
    loop = asyncio.new_event_loop()
    made = LoopNetwork(loop, request.param)
    yield made
    made.close()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def listen(network: LoopNetwork) -> TcpListener:
    return network.listen("127.0.0.1", 0, backlog=5, receive_buffer_bytes=-1, send_buffer_bytes=-1)


def dial(network: LoopNetwork, host: str, port: int) -> Transport | OSError:
    """What comes of it, within some seconds."""
    outcome: asyncio.Future[Any] = network.loop.create_future()
    tell: Callable[[Any], None] = outcome.set_result
    network.dial(host, port, receive_buffer_bytes=-1, send_buffer_bytes=1 << 16, then=tell, failed=tell)
    assert not outcome.done(), "told within the call"
    result: Transport | OSError = network.loop.run_until_complete(asyncio.wait_for(outcome, 20))
    return result


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_both_ends_of_a_dialled_connection_can_talk(network: LoopNetwork, host: str) -> None:
    listener = listen(network)
    ours = dial(network, host, listener.address[1])
    assert not isinstance(ours, OSError)
    theirs = listener.accept()
    ours.send_parts([b"hello"], more=False)
    buffer = bytearray(10)
    arrived: asyncio.Future[None] = network.loop.create_future()

    class Watcher:
        def on_readable(self) -> None:
            theirs.watch(None, reading=False, writing=False)
            arrived.set_result(None)

        def on_writable(self) -> None:
            """Nobody watches for that."""

    theirs.watch(Watcher(), reading=True, writing=False)
    network.loop.run_until_complete(asyncio.wait_for(arrived, 20))
    assert buffer[: theirs.receive_into(buffer)] == b"hello"
    for end in (ours, theirs, listener):
        end.close()


def test_a_port_where_nobody_listens_fails(network: LoopNetwork) -> None:
    listener = listen(network)
    port = listener.address[1]
    listener.close()
    assert isinstance(dial(network, "127.0.0.1", port), ConnectionRefusedError)


def test_a_socket_that_would_be_connected_to_itself_fails_and_leaves_the_port(
    network: LoopNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may choose the port that is dialled, if nobody listens there: here it always does."""
    listener = listen(network)
    port = listener.address[1]
    listener.close()

    class Unlucky(socket.socket):
        def connect_ex(self, address: Any) -> int:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind(address)
            return super().connect_ex(address)

    monkeypatch.setattr(socket, "socket", Unlucky)
    assert isinstance(dial(network, "127.0.0.1", port), ConnectionRefusedError)
    monkeypatch.undo()
    with socket.socket() as node:
        node.bind(("127.0.0.1", port))


def test_a_name_that_nobody_has_fails_and_says_which(network: LoopNetwork) -> None:
    problem = dial(network, "no-such-host.invalid", 9092)
    assert isinstance(problem, OSError)
    assert "no-such-host.invalid" in str(problem)


def test_a_dialling_that_is_cancelled_calls_nobody(network: LoopNetwork) -> None:
    listener = listen(network)
    told: list[Any] = []
    dialling = network.dial(
        "127.0.0.1",
        listener.address[1],
        receive_buffer_bytes=-1,
        send_buffer_bytes=-1,
        then=told.append,
        failed=told.append,
    )
    dialling.cancel()
    network.loop.run_until_complete(asyncio.sleep(0.01))
    assert not told
    listener.close()


def test_an_address_is_dialled_without_the_tables_of_international_names() -> None:
    """They are half a megabyte of every node that has others to dial."""
    program = (
        "import sys; from ottla.base.tcp_connect import numeric_address as at; "
        "assert at('127.0.0.1', 9092) and at('::1', 9092) and at('näher', 1) is None; "
        "print(*({'encodings.idna', 'stringprep'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("\n", "")
