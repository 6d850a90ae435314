"""A class of vulnerability that brokers have had: management ports on all interfaces. Ours are on loopback alone."""

from pathlib import Path

import pytest

from ottla.testing.free_ports import free_port
from ottla.testing.node import RunningNode
from tests.clients.listening_addresses import listening_addresses

_LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into Linux' tables of sockets")
def test_vulnerability_metrics_faults_and_default_listeners_are_on_loopback_alone() -> None:
    with RunningNode(options=("--metrics", str(free_port()), "--faults", "0")) as node:
        found = listening_addresses(node.pid)
    assert len(found) == 4, "clients, controllers, metrics and faults"
    assert set(found) <= _LOOPBACK
