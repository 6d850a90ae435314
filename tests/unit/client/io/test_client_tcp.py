"""Which of a host's addresses a client connects to."""

import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ottla.base.tcp_connect import AddressInfo, SilentAddresses, TcpDialling
from ottla.client.io.tcp import TcpDialer


class TwoAddresses:
    """A poller that knows a name with two addresses, and watches nothing."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self._found = [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address) for address in addresses]

    def resolve(
        self, host: str, port: int, then: Callable[[Sequence[AddressInfo]], None], failed: Callable[[OSError], None]
    ) -> None:
        then(self._found)

    def watch(self, fd: int, watcher: Any, *, reading: bool, writing: bool) -> None:
        """The test says when something is ready."""


@pytest.fixture
def listening() -> Iterator[list[socket.socket]]:
    made = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    yield made
    for one in made:
        one.close()


def test_an_address_that_does_not_answer_in_time_is_tried_after_the_others(listening: list[socket.socket]) -> None:
    """As `client.dns.lookup=use_all_dns_ips` of Java's clients."""
    first, second = (one.getsockname() for one in listening)
    dialer = TcpDialer(TwoAddresses(first, second), lambda: 0.0)
    connected: list[Any] = []

    def dial() -> TcpDialling:
        return dialer.dial(
            "kafka.test", 9092, receive_buffer_bytes=-1, send_buffer_bytes=-1, then=connected.append, failed=print
        )

    def tried(dialling: TcpDialling) -> Any:
        assert dialling._socket is not None
        return dialling._address

    silent = dial()
    assert tried(silent) == first
    silent.cancel()
    answering = dial()
    assert tried(answering) == second
    while not connected:
        answering.on_writable()
    answering.cancel()  # a connection that was made and is closed later says nothing against its address
    connected[0].close()
    again = dial()
    assert tried(again) == second
    again.cancel()
    last = dial()
    assert tried(last) == first  # it was silent longer ago
    last.cancel()


def infos(*hosts: str) -> list[AddressInfo]:
    return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, 9092)) for host in hosts]


def hosts(found: list[AddressInfo]) -> list[str]:
    return [one[4][0] for one in found]


def test_an_address_that_was_silent_has_its_turn_again_after_a_while() -> None:
    """As long as another one answers, nobody would find out that it does, too."""
    now_s = 0.0
    silent = SilentAddresses(lambda: now_s)
    silent.on_silence(("near", 9092))
    assert hosts(silent.in_order(infos("near", "far"))) == ["far", "near"]
    now_s = 301.0
    assert hosts(silent.in_order(infos("near", "far"))) == ["near", "far"]


def test_when_all_addresses_are_silent_they_are_tried_in_turns() -> None:
    now_s = 0.0
    silent = SilentAddresses(lambda: now_s)
    tried = []
    for _ in range(7):
        now_s += 10
        first = silent.in_order(infos("a", "b", "c"))[0]
        tried.append(first[4][0])
        silent.on_silence(first[4])
    assert "".join(tried) == "abcabca"


def test_silent_addresses_of_hosts_that_change_are_not_kept_for_ever() -> None:
    silent = SilentAddresses(lambda: 0.0)
    for number in range(5000):
        silent.on_silence((f"10.0.{number >> 8}.{number & 255}", 9092))
    assert len(silent._silent_s) == 1000
    assert hosts(silent.in_order(infos("10.0.19.135", "10.0.0.0"))) == ["10.0.0.0", "10.0.19.135"]
