"""A class of vulnerability that brokers have had: management ports on all interfaces. Ours are on loopback alone."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.testing.node import RunningNode

_LISTEN = "0A"
_LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


def listening_addresses(pid: int) -> list[str]:
    """The addresses that a process listens on, as /proc writes them."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # Closed since; what listens stays.
            target = os.readlink(link)
            if target.startswith("socket:"):
                inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTEN and words[9] in inodes:
                found.append(words[1].rpartition(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into Linux' tables of sockets")
def test_metrics_faults_and_default_listeners_are_on_loopback_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with RunningNode(options=("--metrics", str(port), "--faults", "0")) as node:
        assert node.pid is not None
        found = listening_addresses(node.pid)
    assert len(found) == 4, "clients, controllers, metrics and faults"
    assert set(found) <= _LOOPBACK
