"""Ports that a node can be told before it starts: nobody listens there, and no client is given them meanwhile."""

import socket
import sys
from pathlib import Path

import pytest

from ottla.testing import free_ports as module
from ottla.testing.free_ports import free_port, free_ports


def test_they_differ_and_a_server_can_have_each() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    servers = [socket.create_server(("127.0.0.1", port)) for port in ports]
    for server in servers:
        server.close()


def test_a_port_that_is_taken_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, other = free_ports(2)
    with socket.create_server(("127.0.0.1", taken)):
        monkeypatch.setattr(module, "_FIRST", min(taken, other))
        monkeypatch.setattr(module, "_LAST", max(taken, other))
        assert taken not in {free_port() for _ in range(20)}


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel which ports connections are given")
def test_no_connection_is_given_one_of_them() -> None:
    first, _last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert max(free_ports(50)) < int(first)
